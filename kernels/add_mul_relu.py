"""out = relu((a + b) · c) over flat arrays of n elements.

Formula: three element-wise operations, the chain that every fusion tutorial begins with.
Traffic in units of n elements: fused 3 reads + 1 write = 4; step by step 3 + 3 + 2 = 8. Expected gain 2.0.
Staging the inputs in shared memory moves the same 4: nothing is used twice, so nothing can be gained.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels.cpu_threads import in_threads
from kernels.cuda_source import Source
from kernels.launch import Launch, array_module, launch

SOURCE = Source(("flat.cuh", "add_mul_relu.cu"), registers={"add_mul_relu": 40, "add_mul_relu_shared": 40})


def unfused(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(a)
    total, product, out = (xp.empty_like(a) for _ in range(3))
    return launch(
        partial(xp.add, a, b, out=total),
        partial(xp.multiply, total, c, out=product),
        partial(xp.maximum, product, 0, out=out),
    ), out


def steps(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """The same three steps with 16-byte accesses."""
    xp = array_module(a)
    total, product, out = (xp.empty_like(a) for _ in range(3))
    return launch(
        step.flat("add", total, a, b),
        step.flat("multiply", product, total, c),
        step.flat("relu_of", out, product),
    ), out


def fused(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel, one pack of each input a thread."""
    out = array_module(a).empty_like(a)
    return launch(SOURCE.flat("add_mul_relu", a.size, (a, b, c, out))), out


def fused_shared(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel that stages its inputs in shared memory first."""
    out = array_module(a).empty_like(a)
    return launch(SOURCE.flat("add_mul_relu_shared", a.size, (a, b, c, out))), out


def fused_cpu(a: Any, b: Any, c: Any, **_: object) -> tuple[Launch, Any]:
    """One compiled loop."""
    out = np.empty_like(a)
    return launch(in_threads(_loop, (a, b, c, out))), out


def _loop(_start: int, a: Any, b: Any, c: Any, out: Any) -> None:
    for i in range(out.size):
        x = (a[i] + b[i]) * c[i]
        out[i] = max(x, 0)


def reference(a: Any, b: Any, c: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return np.maximum((a + b) * c, 0)


def traffic(*, dtype: str, n: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    array = n * np.dtype(dtype).itemsize
    moved = {"unfused": 8 * array, "steps": 8 * array, "fused": 4 * array, "fused_shared": 4 * array}
    return {"reads": 3 * array, "writes": array, "moved": moved, "flops": 3 * n}
