"""GELU in its tanh form, step by step: what bias_gelu.py and gelu_scale.py share.

gelu(y) = 0.5 y (1 + tanh(√(2/π) (y + 0.044715 y³))) (Hendrycks and Gimpel, 2016): nine steps, of which six read one
array and three read two (`t · y` twice, `t + y`).
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels.launch import KernelCall, Step, array_module

CUBIC = 0.044715
SLOPE = 0.7978845608028654
"""√(2/π)"""


def library_calls(y: Any, t: Any, out: Any) -> tuple[Step, ...]:
    """One library call a step; `t` is a temporary, and may be `out`."""
    xp = array_module(y)
    return (
        partial(xp.multiply, y, y, out=t),
        partial(xp.multiply, t, y, out=t),
        partial(xp.multiply, t, CUBIC, out=t),
        partial(xp.add, t, y, out=t),
        partial(xp.multiply, t, SLOPE, out=t),
        partial(xp.tanh, t, out=t),
        partial(xp.add, t, 1, out=t),
        partial(xp.multiply, t, y, out=t),
        partial(xp.multiply, t, 0.5, out=out),
    )


def step_calls(y: Any, t: Any, out: Any) -> tuple[KernelCall, ...]:
    """The same nine steps with 16-byte accesses."""
    return (
        step.flat("multiply", t, y, y),
        step.flat("multiply", t, t, y),
        step.flat("scale", t, t, by=CUBIC),
        step.flat("add", t, t, y),
        step.flat("scale", t, t, by=SLOPE),
        step.flat("tanh_of", t, t),
        step.flat("shift", t, t, by=1),
        step.flat("multiply", t, t, y),
        step.flat("scale", out, t, by=0.5),
    )


def reference(y: Any) -> Any:
    """The right answer, from float64 inputs."""
    return 0.5 * y * (1 + np.tanh(SLOPE * (y + CUBIC * y * y * y)))
