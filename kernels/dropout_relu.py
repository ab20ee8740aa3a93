"""out = relu(x) / (1 - p) where an element is kept, else 0, over flat arrays of n elements.

Formula: inverted dropout (Srivastava et al., 2014) from a counter-based generator, so that the mask is a function
of seed and element only: the same in every variant, dtype and launch shape, and never stored by the fused one.
See dropout_steps.py for the rule by which an element is dropped.
Traffic for elements of E bytes: fused 2 E; step by step, uniform numbers 4, mask 4 + 1, masking E + 1 + E, scaling
2 E, relu 2 E: 10 + 6 E. Expected gain 4.25 in float32, 5.5 in float16.
"""

from functools import cache, partial
from typing import Any

import numpy as np

from kernels import dropout_steps as dropout_step
from kernels import philox
from kernels import steps as step
from kernels.cpu_threads import in_threads
from kernels.cuda_source import Source
from kernels.dropout_steps import DROP_BELOW, DROPPED_SHARE, FUSED_SCALARS, KEY, SCALE
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch

SOURCE = Source(("philox.cuh", "dropout_relu.cu"), registers={"dropout_relu": 48})


def unfused(x: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already, after filling an array with uniform numbers.

    Neither library has this generator: on a GPU the numbers come from a kernel of ours, on a CPU from NumPy steps.
    """
    xp = array_module(x)
    on_cpu = xp is np
    u, keep = xp.empty(x.size, x.dtype if on_cpu else np.float32), xp.empty(x.size, np.bool_)
    t, out = xp.empty_like(x), xp.empty_like(x)
    return launch(
        *(philox.uniform_steps(KEY, u) if on_cpu else (dropout_step.uniform(u, x),)),
        partial(xp.greater_equal, u, u.dtype.type(DROPPED_SHARE), out=keep),
        partial(xp.multiply, x, keep, out=t),
        partial(xp.multiply, t, SCALE, out=t),
        partial(xp.maximum, t, 0, out=out),
    ), out


def steps(x: Any, **_: object) -> tuple[Launch, Any]:
    """The same five steps with 16-byte accesses."""
    xp = array_module(x)
    u, keep = xp.empty(x.size, np.float32), xp.empty(x.size, np.uint8)
    t, out = xp.empty_like(x), xp.empty_like(x)
    return launch(
        dropout_step.uniform(u, x),
        dropout_step.keep_mask(keep, u, x),
        dropout_step.apply_mask(t, x, keep),
        step.flat("scale", t, t, by=SCALE),
        step.flat("relu_of", out, t),
    ), out


def fused(x: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel that draws as it goes; no mask is stored."""
    out = array_module(x).empty_like(x)
    return launch(SOURCE.flat("dropout_relu", x.size, (x, out), *FUSED_SCALARS)), out


def fused_cpu(x: Any, **_: object) -> tuple[Launch, Any]:
    """One compiled loop that draws as it goes."""
    out = np.empty_like(x)
    return launch(in_threads(_loop(str(x.dtype)), (x, out), multiple=philox.GROUP)), out


@cache
def _loop(dtype: str) -> Any:
    four, real = philox.compiled_words(), np.dtype(dtype).type
    scale, zero, key, tile = real(SCALE), real(0), np.uint64(KEY), 64

    def loop(start: int, x: Any, out: Any) -> None:
        drawn = np.empty((tile, 4), np.uint32)
        halves = drawn.view(np.uint16).reshape(-1)
        for first in range(0, x.size, tile * 8):
            counter = np.uint64((start + first) // 8)
            for g in range(tile):
                drawn[g, 0], drawn[g, 1], drawn[g, 2], drawn[g, 3] = four(counter + np.uint64(g), key)
            inside, outside = x[first : first + tile * 8], out[first : first + tile * 8]
            for i in range(inside.size):
                kept = halves[i] >= DROP_BELOW and inside[i] > zero
                outside[i] = inside[i] * scale if kept else zero

    return loop


def reference(x: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    keep = philox.draws(array_module(x), x.size, KEY) >= DROP_BELOW
    return np.where(keep, np.maximum(x, 0) * SCALE, 0)


def traffic(*, dtype: str, n: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    apart = n * (10 + 6 * size)
    return {
        "reads": n * size,
        "writes": n * size,
        "moved": {"unfused": apart, "steps": apart, "fused": 2 * n * size, "torch_compile": 2 * n * size},
        "flops": 2 * n,
    }
