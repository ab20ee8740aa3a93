"""y = (x - mean) / √(variance + ε) · gamma + beta of [batch, channels, height, width], with known values a channel.

Formula: batch normalisation (Ioffe and Szegedy, 2015) with the running statistics, as a trained network uses it;
ε = 1e-5. The four vectors are float32.
Traffic in units of elements of x: fused 1 + 1 = 2; step by step subtract 2, multiply 2, scale 2, shift 2: 8. Expected
gain 4.0. The vectors count once.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import batchnorm_steps as step
from kernels.batchnorm_steps import EPSILON
from kernels.cuda_source import Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch

SOURCE = Source(("batchnorm.cuh", "batchnorm_inference.cu"), registers={"batchnorm_inference": 40})


def unfused(x: Any, mean: Any, variance: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    rstd, t, y = xp.empty_like(variance), xp.empty_like(x), xp.empty_like(x)
    return launch(
        partial(xp.add, variance, EPSILON, out=rstd),
        partial(xp.sqrt, rstd, out=rstd),
        partial(xp.reciprocal, rstd, out=rstd),
        partial(xp.subtract, x, mean.reshape(-1, 1, 1), out=t),
        partial(xp.multiply, t, rstd.reshape(-1, 1, 1), out=t),
        partial(xp.multiply, t, gamma.reshape(-1, 1, 1), out=t),
        partial(xp.add, t, beta.reshape(-1, 1, 1), out=y),
    ), y


def steps(x: Any, mean: Any, variance: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """The same steps with 16-byte accesses; the three on one number a channel are one."""
    xp = array_module(x)
    rstd, t, y = xp.empty_like(variance), xp.empty_like(x), xp.empty_like(x)
    return launch(
        step.rstd_of_channels(rstd, variance, x),
        step.by_channel("subtract_channel", t, x, mean),
        step.by_channel("multiply_channel", t, t, rstd),
        step.by_channel("multiply_channel", t, t, gamma),
        step.by_channel("add_channel", y, t, beta),
    ), y


def fused(x: Any, mean: Any, variance: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel, one pack a thread."""
    y = array_module(x).empty_like(x)
    arrays = (x, mean, variance, gamma, beta, y)
    return launch(step.per_pack(SOURCE, "batchnorm_inference", x, arrays, np.float32(EPSILON))), y


def reference(x: Any, mean: Any, variance: Any, gamma: Any, beta: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    mean, variance, gamma, beta = (each.reshape(-1, 1, 1) for each in (mean, variance, gamma, beta))
    return (x - mean) / np.sqrt(variance + EPSILON) * gamma + beta


def traffic(*, dtype: str, batch: int, channels: int, pixels: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    elements = batch * channels * pixels
    images, vectors = elements * element_bytes(dtype), 4 * channels * 4
    apart = 8 * images + vectors
    once = dict.fromkeys(("fused", "torch", "torch_compile"), 2 * images + vectors)
    return {
        "reads": images + vectors,
        "writes": images,
        "moved": {"unfused": apart, "steps": apart, **once},
        "flops": 4 * elements,
    }
