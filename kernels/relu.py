"""out = relu(x) over flat arrays of n elements: a control with one operation, where there is nothing to fuse.

Traffic in units of n elements: 2 in every variant. What `fused` gains over `unfused` is better code; against
`steps`, which is the same kernel, it must gain nothing.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels.cpu_threads import in_threads
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch


def unfused(x: Any, **_: object) -> tuple[Launch, Any]:
    """The library's call."""
    xp = array_module(x)
    out = xp.empty_like(x)
    return launch(partial(xp.maximum, x, 0, out=out)), out


def fused(x: Any, **_: object) -> tuple[Launch, Any]:
    """The one step with 16-byte accesses; also what `steps` is."""
    out = array_module(x).empty_like(x)
    return launch(step.flat("relu_of", out, x)), out


steps = fused


def fused_cpu(x: Any, **_: object) -> tuple[Launch, Any]:
    """One compiled loop."""
    out = np.empty_like(x)
    return launch(in_threads(_loop, (x, out))), out


def _loop(_start: int, x: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = max(x[i], 0)


def reference(x: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return np.maximum(x, 0)


def traffic(*, dtype: str, n: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    array = n * element_bytes(dtype)
    return {
        "reads": array,
        "writes": array,
        "moved": {"unfused": 2 * array, "steps": 2 * array, "fused": 2 * array},
        "flops": n,
    }
