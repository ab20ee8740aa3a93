"""out = silu(x) · y over flat arrays of n elements: the gate of a SwiGLU feed-forward layer.

Formula: silu(x) = x / (1 + exp(-x)) (Hendrycks and Gimpel, 2016; the gate: Shazeer, 2020).
Traffic in units of n elements: fused 2 + 1 = 3; step by step negate 2, exp 2, add 2, divide 3, multiply 3: 12.
Expected gain 4.0.
"""

from functools import cache, partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels import torch_ops
from kernels.cuda_source import Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch

SOURCE = Source(("flat.cuh", "silu_mul.cu"), registers={"silu_mul": 40})


def unfused(x: Any, y: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    t, out = xp.empty_like(x), xp.empty_like(x)
    return launch(
        partial(xp.negative, x, out=t),
        partial(xp.exp, t, out=t),
        partial(xp.add, t, 1, out=t),
        partial(xp.divide, x, t, out=t),
        partial(xp.multiply, t, y, out=out),
    ), out


def steps(x: Any, y: Any, **_: object) -> tuple[Launch, Any]:
    """The same five steps with 16-byte accesses."""
    xp = array_module(x)
    t, out = xp.empty_like(x), xp.empty_like(x)
    return launch(
        step.flat("scale", t, x, by=-1),
        step.flat("exp_of", t, t),
        step.flat("shift", t, t, by=1),
        step.flat("divide", t, x, t),
        step.flat("multiply", out, t, y),
    ), out


def fused(x: Any, y: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel, one pack of each input a thread."""
    out = array_module(x).empty_like(x)
    return launch(SOURCE.flat("silu_mul", x.size, (x, y, out))), out


def torch_compile(x: Any, y: Any, **_: object) -> tuple[Launch, Any]:
    """What PyTorch's compiler makes of it."""
    out = array_module(x).empty_like(x)
    return launch(torch_ops.on_current_stream(_compiled(), x, y, out)), out


@cache
def _compiled() -> Any:
    return torch_ops.compiled(_body)


def _body(x: Any, y: Any, out: Any) -> None:
    out.copy_(x * x.sigmoid() * y)


def reference(x: Any, y: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return x / (1 + np.exp(-x)) * y


def traffic(*, dtype: str, n: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    array = n * element_bytes(dtype)
    apart, once = ("unfused", "steps"), ("fused", "torch_compile", "vllm")
    moved = {**dict.fromkeys(apart, 12 * array), **dict.fromkeys(once, 3 * array)}
    return {"reads": 2 * array, "writes": array, "moved": moved, "flops": 5 * n}
