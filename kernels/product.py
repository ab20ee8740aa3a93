"""Matrix products as steps of a launch: cuBLASLt for CuPy arrays, NumPy for NumPy arrays."""

from functools import partial
from typing import Any

import numpy as np

from kernels.cublaslt import Product
from kernels.launch import KernelCall, Launch, Step, array_module, launch

CUBIC = 0.044715
SLOPE = 0.7978845608028654
"""√(2/π): GELU is in its tanh form, as in cuBLASLt."""


def product(
    a: Any,
    b: Any,
    out: Any,
    *,
    transposed: bool = False,
    scale: float = 1.0,
    add: Any = None,
    bias: Any = None,
    activation: str = "",
) -> Step:
    """The step `out = activation(scale · a @ b + add + bias)`, of matrices or of stacks of them.

    `b` is [k, n], or [n, k] if `transposed`; `add` has the shape of `out`, `bias` a value per column; `activation`
    is "relu", "gelu" or none.
    """
    make: Any = partial(partial, _on_cpu) if array_module(a) is np else Product
    return make(a, b, out, transposed=transposed, scale=scale, add=add, bias=bias, activation=activation)


def _on_cpu(a: Any, b: Any, out: Any, *, transposed: bool, scale: float, add: Any, bias: Any, activation: str) -> None:
    wide = np.float64 if out.dtype == np.float64 else np.float32
    factor = b.swapaxes(-1, -2) if transposed else b
    sums = np.matmul(a.astype(wide), factor.astype(wide)) * wide(scale)
    for addend in (add, bias):
        if addend is not None:
            sums += addend.astype(wide)
    out[...] = _ACTIVATION[activation](sums).astype(out.dtype)


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(SLOPE * (x + CUBIC * x * x * x)))


_ACTIVATION = {"": lambda x: x, "relu": lambda x: np.maximum(x, 0), "gelu": _gelu}


def joined(*parts: Launch | KernelCall | Step) -> Launch:
    """One launch of several parts, in order."""
    whole = [part if isinstance(part, Launch) else launch(part) for part in parts]
    return Launch(
        steps=tuple(step for part in whole for step in part.steps),
        kernels=tuple(use for part in whole for use in part.kernels),
        source="\n".join(dict.fromkeys(part.source for part in whole if part.source)),
    )
