"""out = gelu(x + bias), x of [rows, cols], bias one value a column; GELU in its tanh form.

Formula: see gelu.py.
Traffic in units of rows × cols elements: fused 1 + 1 = 2; step by step ten steps, of which seven read one array
(2 each) and three read two (`t · y` twice, `t + y`; 3 each): 23. Expected gain 11.5. The bias counts once.
"""

from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from kernels import gelu, torch_ops
from kernels import steps as step
from kernels.cpu_exp import exponential
from kernels.cpu_threads import in_threads
from kernels.cuda_source import Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch

SOURCE = Source(("matrix.cuh", "gelu.cuh", "bias_gelu.cu"), registers={"bias_gelu": 64})


def unfused(x: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    y, t, out = (xp.empty_like(x) for _ in range(3))
    return launch(partial(xp.add, x, bias, out=y), *gelu.library_calls(y, t, out)), out


def steps(x: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """The same ten steps with 16-byte accesses."""
    xp = array_module(x)
    y, t, out = (xp.empty_like(x) for _ in range(3))
    return launch(step.beside("add_column", y, x, bias), *gelu.step_calls(y, t, out)), out


def fused(x: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel, with one exponential in place of tanh."""
    out = array_module(x).empty_like(x)
    return launch(SOURCE.matrix("bias_gelu", x.shape, (x, bias, out))), out


def fused_cpu(x: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """One compiled loop, with one exponential in place of tanh."""
    out = np.empty_like(x)
    return launch(in_threads(_loop(str(x.dtype)), (x, out), (bias,))), out


@cache
def _loop(dtype: str) -> Any:
    exp, real = exponential(dtype), np.dtype(dtype).type
    one, linear, cubic = real(1), real(-2 * gelu.SLOPE), real(-2 * gelu.SLOPE * gelu.CUBIC)

    def loop(_start: int, x: Any, out: Any, bias: Any) -> None:
        for r in range(x.shape[0]):
            for c in range(x.shape[1]):
                y = x[r, c] + bias[c]
                out[r, c] = y / (one + exp(y * (linear + cubic * y * y)))

    return loop


def torch_compile(x: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """What PyTorch's compiler makes of it."""
    out = array_module(x).empty_like(x)
    return launch(torch_ops.on_current_stream(_compiled(), x, bias, out)), out


@cache
def _compiled() -> Any:
    activation = import_module("torch.nn.functional").gelu

    def body(x: Any, bias: Any, out: Any) -> None:
        out.copy_(activation(x + bias, approximate="tanh"))

    return torch_ops.compiled(body)


def torch_jit(x: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """What TorchScript makes of it, with the copy that it takes to have the result in a given array."""
    out = array_module(x).empty_like(x)
    return launch(torch_ops.on_current_stream(_scripted(), x, bias, out)), out


@cache
def _scripted() -> Any:
    return torch_ops.scripted(_expression)


def _expression(x, bias):  # noqa: ANN001, ANN202  # pyright: ignore[reportMissingParameterType]
    y = x + bias
    return 0.5 * y * (1.0 + (0.7978845608028654 * (y + 0.044715 * y * y * y)).tanh())


def reference(x: Any, bias: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    return gelu.reference(x + bias)


def traffic(*, dtype: str, rows: int, cols: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    matrix, columns = rows * cols * size, cols * size
    apart = (7 * 2 + 3 * 3) * matrix + columns
    once = 2 * matrix + columns
    fused = dict.fromkeys(("fused", "torch_compile", "tensorrt"), once)
    moved = {"unfused": apart, "steps": apart, **fused, "torch_jit": once + 2 * matrix}
    return {"reads": matrix + columns, "writes": matrix, "moved": moved, "flops": 10 * rows * cols}
