"""A chain of `length` cheap element-wise operations over a flat array: · 1.25, - 0.5, · 1.25, and so on.

Formula: y_0 = x, y_k = 1.25 y_(k-1) for odd k, else y_(k-1) - 0.5: operations that cost nothing beside their memory
traffic, so that what fusion gains is their number.
Traffic in units of n elements: fused 1 + 1 = 2 at any length; step by step 2 × length. Expected gain: the length.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels.cuda_source import Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch

LENGTHS = (1, 2, 3, 4, 8, 16)
"""For each there is a kernel."""

SOURCE = Source(("flat.cuh", "chain.cu"), registers={f"chain_{length}": 32 for length in LENGTHS})

BY = 1.25
UP = -0.5


def unfused(x: Any, *, length: int, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    out = xp.empty_like(x)
    calls = [
        partial(xp.add, source, UP, out=to) if k % 2 else partial(xp.multiply, source, BY, out=to)
        for k, (source, to) in enumerate(_buffers(x, out, length))
    ]
    return launch(*calls), out


def steps(x: Any, *, length: int, **_: object) -> tuple[Launch, Any]:
    """The same steps with 16-byte accesses."""
    out = array_module(x).empty_like(x)
    calls = [
        step.flat("shift", to, source, by=UP) if k % 2 else step.flat("scale", to, source, by=BY)
        for k, (source, to) in enumerate(_buffers(x, out, length))
    ]
    return launch(*calls), out


def fused(x: Any, *, length: int, **_: object) -> tuple[Launch, Any]:
    """One kernel for the whole chain."""
    out = array_module(x).empty_like(x)
    if length not in LENGTHS:
        raise ValueError(f"there is no fused chain of {length} operations; there are {', '.join(map(str, LENGTHS))}")
    return launch(SOURCE.flat(f"chain_{length}", x.size, (x, out), np.float32(BY), np.float32(UP))), out


def _buffers(x: Any, out: Any, length: int) -> list[tuple[Any, Any]]:
    """Source and target of each step; what lies between them is one temporary, changed in place."""
    between = [array_module(x).empty_like(x)] * (length - 1) if length > 1 else []
    return list(zip([x, *between], [*between, out], strict=True))


def reference(x: Any, *, length: int, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    y = x
    for k in range(length):
        y = y + UP if k % 2 else y * BY
    return y


def traffic(*, dtype: str, n: int, length: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    array = n * element_bytes(dtype)
    apart = 2 * length * array
    return {
        "reads": array,
        "writes": array,
        "moved": {"unfused": apart, "steps": apart, "fused": 2 * array},
        "flops": length * n,
    }
