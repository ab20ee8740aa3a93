"""relu(x) and y · 0.5, of n and of m elements: a control with two operations that share no data.

One kernel may do both ("horizontal" fusion). No array is read or written less often for it, so that on large arrays
nothing but one launch can be gained.
Traffic in units of elements: 2 n + 2 m in every variant.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels.cuda_source import FLAT_THREADS, Source, checked, pack_elements
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch

SOURCE = Source(("flat.cuh", "relu_and_scale.cu"), registers={"relu_and_scale": 40})

BY = 0.5


def unfused(x: Any, y: Any, **_: object) -> tuple[Launch, tuple[Any, Any]]:
    """One library call each."""
    xp = array_module(x)
    rectified, scaled = xp.empty_like(x), xp.empty_like(y)
    return launch(partial(xp.maximum, x, 0, out=rectified), partial(xp.multiply, y, BY, out=scaled)), (
        rectified,
        scaled,
    )


def steps(x: Any, y: Any, **_: object) -> tuple[Launch, tuple[Any, Any]]:
    """One kernel with 16-byte accesses each."""
    xp = array_module(x)
    rectified, scaled = xp.empty_like(x), xp.empty_like(y)
    return launch(step.flat("relu_of", rectified, x), step.flat("scale", scaled, y, by=BY)), (rectified, scaled)


def fused(x: Any, y: Any, **_: object) -> tuple[Launch, tuple[Any, Any]]:
    """One kernel for both."""
    xp = array_module(x)
    rectified, scaled = xp.empty_like(x), xp.empty_like(y)
    dtype = checked(x, y, rectified, scaled)
    first, second = (max(1, -(-array.size // (pack_elements(dtype) * FLAT_THREADS))) for array in (x, y))
    counts = (np.int64(x.size), np.int64(y.size), np.uint32(first), np.float32(BY))
    args = (x, y, rectified, scaled, *counts)
    return launch(SOURCE.bind("relu_and_scale", dtype, first + second, FLAT_THREADS, args)), (rectified, scaled)


def reference(x: Any, y: Any, **_: object) -> tuple[Any, Any]:
    """The right answer, from float64 inputs."""
    return np.maximum(x, 0), y * BY


def traffic(*, dtype: str, n: int, m: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    arrays = (n + m) * element_bytes(dtype)
    moved = dict.fromkeys(("unfused", "steps", "fused"), 2 * arrays)
    return {"reads": arrays, "writes": arrays, "moved": moved, "flops": n + m}
