"""out = gelu(x) · 0.75 over flat arrays of n elements; GELU in its tanh form (see gelu.py).

Traffic in units of n elements: fused 1 + 1 = 2; step by step ten steps, of which seven read one array (2 each) and
three read two (3 each): 23. Expected gain 11.5.
"""

from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from kernels import gelu, torch_ops
from kernels import steps as step
from kernels.cuda_source import Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch

SOURCE = Source(("flat.cuh", "gelu.cuh", "gelu_scale.cu"), registers={"gelu_scale": 40})

BY = 0.75


def unfused(x: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    t, out = xp.empty_like(x), xp.empty_like(x)
    return launch(*gelu.library_calls(x, t, t), partial(xp.multiply, t, BY, out=out)), out


def steps(x: Any, **_: object) -> tuple[Launch, Any]:
    """The same ten steps with 16-byte accesses."""
    xp = array_module(x)
    t, out = xp.empty_like(x), xp.empty_like(x)
    return launch(*gelu.step_calls(x, t, t), step.flat("scale", out, t, by=BY)), out


def fused(x: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel, with one exponential in place of tanh."""
    out = array_module(x).empty_like(x)
    return launch(SOURCE.flat("gelu_scale", x.size, (x, out), np.float32(BY))), out


def torch_compile(x: Any, **_: object) -> tuple[Launch, Any]:
    """What PyTorch's compiler makes of it."""
    out = array_module(x).empty_like(x)
    return launch(torch_ops.on_current_stream(_compiled(), x, out)), out


@cache
def _compiled() -> Any:
    activation = import_module("torch.nn.functional").gelu

    def body(x: Any, out: Any) -> None:
        out.copy_(activation(x, approximate="tanh") * BY)

    return torch_ops.compiled(body)


def reference(x: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return gelu.reference(x) * BY


def traffic(*, dtype: str, n: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    array = n * element_bytes(dtype)
    moved = {"unfused": 23 * array, "steps": 23 * array, "fused": 2 * array, "torch_compile": 2 * array}
    return {"reads": array, "writes": array, "moved": moved, "flops": 10 * n}
