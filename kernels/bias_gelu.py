"""out = gelu(x + bias), x of [rows, cols], bias one value a column; GELU in its tanh form.

Formula: gelu(y) = 0.5 y (1 + tanh(√(2/π) (y + 0.044715 y³))) (Hendrycks and Gimpel, 2016).
Traffic in units of rows × cols elements: fused 1 + 1 = 2; step by step ten steps, of which seven read one array
(2 each) and three read two (`t · y` twice, `t + y`; 3 each): 23. Expected gain 11.5. The bias counts once.
"""

from functools import cache, partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels.cpu_exp import exponential
from kernels.cpu_threads import in_threads
from kernels.cuda_source import Source
from kernels.launch import Launch, array_module, launch

SOURCE = Source(("matrix.cuh", "bias_gelu.cu"), registers={"bias_gelu": 64})

CUBIC = 0.044715
SLOPE = 0.7978845608028654
"""√(2/π)"""


def unfused(x: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    y, t, out = (xp.empty_like(x) for _ in range(3))
    return launch(
        partial(xp.add, x, bias, out=y),
        partial(xp.multiply, y, y, out=t),
        partial(xp.multiply, t, y, out=t),
        partial(xp.multiply, t, CUBIC, out=t),
        partial(xp.add, t, y, out=t),
        partial(xp.multiply, t, SLOPE, out=t),
        partial(xp.tanh, t, out=t),
        partial(xp.add, t, 1, out=t),
        partial(xp.multiply, t, y, out=t),
        partial(xp.multiply, t, 0.5, out=out),
    ), out


def steps(x: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """The same ten steps with 16-byte accesses."""
    xp = array_module(x)
    y, t, out = (xp.empty_like(x) for _ in range(3))
    return launch(
        step.beside("add_column", y, x, bias),
        step.flat("multiply", t, y, y),
        step.flat("multiply", t, t, y),
        step.flat("scale", t, t, by=CUBIC),
        step.flat("add", t, t, y),
        step.flat("scale", t, t, by=SLOPE),
        step.flat("tanh_of", t, t),
        step.flat("shift", t, t, by=1),
        step.flat("multiply", t, t, y),
        step.flat("scale", out, t, by=0.5),
    ), out


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
    one, linear, cubic = real(1), real(-2 * SLOPE), real(-2 * SLOPE * CUBIC)

    def loop(_start: int, x: Any, out: Any, bias: Any) -> None:
        for r in range(x.shape[0]):
            for c in range(x.shape[1]):
                y = x[r, c] + bias[c]
                out[r, c] = y / (one + exp(y * (linear + cubic * y * y)))

    return loop


def reference(x: Any, bias: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    y = x + bias
    return 0.5 * y * (1 + np.tanh(SLOPE * (y + CUBIC * y * y * y)))


def traffic(*, dtype: str, rows: int, cols: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = np.dtype(dtype).itemsize
    matrix, columns = rows * cols * size, cols * size
    apart = (7 * 2 + 3 * 3) * matrix + columns
    moved = {"unfused": apart, "steps": apart, "fused": 2 * matrix + columns}
    return {"reads": matrix + columns, "writes": matrix, "moved": moved, "flops": 10 * rows * cols}
