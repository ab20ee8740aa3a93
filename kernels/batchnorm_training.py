"""y = (x - mean(x)) / √(var(x) + ε) · gamma + beta of [batch, channels, height, width], statistics over each channel.

Formula: batch normalisation (Ioffe and Szegedy, 2015) in training, with the biased variance; ε = 1e-5. Mean and
1 / √(var + ε) of each channel are outputs too, for the backward pass and for running statistics; they, gamma and beta
are float32.
Traffic in units of elements of x: fused_cluster 1 + 1 = 2; fused, which reads x for the statistics and again to
normalise it, 3 (what the first kernel read last comes from the cache); step by step mean 1, subtract 2, square 2,
mean 1, multiply 2, scale 2, shift 2: 12. Expected gain 6.0 and 4.0. The vectors count
once. A channel is in as many pieces as there are images, and to find a pack by a division would take as many
instructions as to sum it.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import batchnorm_steps as step
from kernels import steps as flat_step
from kernels.batchnorm_steps import EPSILON
from kernels.clusters import PORTABLE_BLOCKS, most_at_once
from kernels.cuda_source import FLAT_THREADS, Source
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch
from kernels.rows import HELD_THREADS, held, on_chip

SOURCE = Source(
    ("row.cuh", "long_row.cuh", "cluster.cuh", "moments.cuh", "batchnorm.cuh", "batchnorm_training.cu"),
    registers={
        "batchnorm_parts": 80,
        "batchnorm_of_parts": 80,
        "batchnorm_cluster_8": 64,
        "batchnorm_cluster_16": 64,
    },
)

CLUSTER_BLOCKS = (16, PORTABLE_BLOCKS)
"""The more, the less a block holds, and the more blocks fit a multiprocessor; not every card has clusters of 16."""

SMALL_THREADS, PACKS_OF_A_SMALL_BLOCK = 256, 3200
"""Six blocks that hold no more fit a multiprocessor with so few threads, three with the usual number."""


def unfused(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    t, y = xp.empty_like(x), xp.empty_like(x)
    mean, rstd = xp.empty_like(gamma), xp.empty_like(gamma)
    whole = (1, -1, 1, 1)
    over_channel = partial(xp.mean, axis=(0, 2, 3), dtype=gamma.dtype, keepdims=True)
    return launch(
        partial(over_channel, x, out=mean.reshape(whole)),
        partial(xp.subtract, x, mean.reshape(whole), out=t),
        partial(xp.multiply, t, t, out=y),
        partial(over_channel, y, out=rstd.reshape(whole)),
        partial(xp.add, rstd, EPSILON, out=rstd),
        partial(xp.sqrt, rstd, out=rstd),
        partial(xp.reciprocal, rstd, out=rstd),
        partial(xp.multiply, t, rstd.reshape(whole), out=t),
        partial(xp.multiply, t, gamma.reshape(whole), out=t),
        partial(xp.add, t, beta.reshape(whole), out=y),
    ), (y, mean, rstd)


def steps(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """The same steps with 16-byte accesses; the three on one number a channel are one."""
    xp = array_module(x)
    t, y = xp.empty_like(x), xp.empty_like(x)
    mean, variance, rstd = (xp.empty_like(gamma) for _ in range(3))
    sums = xp.empty(x.shape[1] * step.parts_of_channel(x), np.float32)
    return launch(
        *step.mean_of_channels(mean, x, sums),
        step.by_channel("subtract_channel", t, x, mean),
        flat_step.flat("multiply", y, t, t),
        *step.mean_of_channels(variance, y, sums),
        step.rstd_of_channels(rstd, variance, x),
        step.by_channel("multiply_channel", t, t, rstd),
        step.by_channel("multiply_channel", t, t, gamma),
        step.by_channel("add_channel", y, t, beta),
    ), (y, mean, rstd)


def fused(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """Two kernels, several blocks a channel in each: the statistics of every part, then all parts normalised."""
    xp = array_module(x)
    y, mean, rstd = xp.empty_like(x), xp.empty_like(gamma), xp.empty_like(gamma)
    channels, parts = x.shape[1], step.parts_of_channel(x)
    plane = step.packs_of_plane(x, gamma, beta, y)
    of_parts = xp.empty((channels * parts, 3), np.float32)
    sizes = (np.int32(x.shape[0] * plane), np.int32(plane), np.int32(channels), np.int32(parts))
    arrays = (x, of_parts, gamma, beta, y, mean, rstd)
    blocks, dtype = channels * parts, str(x.dtype)
    return launch(
        SOURCE.bind("batchnorm_parts", dtype, blocks, FLAT_THREADS, (x, of_parts, *sizes)),
        SOURCE.bind("batchnorm_of_parts", dtype, blocks, FLAT_THREADS, (*arrays, *sizes, np.float32(EPSILON))),
    ), (y, mean, rstd)


def fused_cluster(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel; a channel is held on the chip by the blocks of a cluster, which exchange its statistics (sm_90)."""
    xp = array_module(x)
    y, mean, rstd = xp.empty_like(x), xp.empty_like(gamma), xp.empty_like(gamma)
    plane = step.packs_of_plane(x)
    packs = x.shape[0] * plane
    sizes = (np.int32(packs), np.int32(plane), np.int32(x.shape[1]), np.float32(EPSILON))
    for blocks in CLUSTER_BLOCKS:
        threads = SMALL_THREADS if packs <= blocks * PACKS_OF_A_SMALL_BLOCK else HELD_THREADS
        held_as = on_chip(packs, blocks, x, threads=threads)
        arrays = (x, gamma, beta, y, mean, rstd)
        call = held(SOURCE, f"batchnorm_cluster_{blocks}", held_as, x.shape[1], arrays, *sizes)
        if at_once := most_at_once(call, blocks):
            apart = np.int32(at_once if x.shape[1] > at_once else 0)
            return launch(call._replace(args=(*call.args, apart))), (y, mean, rstd)
    raise ValueError(f"this card does not run clusters of {PORTABLE_BLOCKS} blocks; take the variant fused")


def reference(x: Any, gamma: Any, beta: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    mean = x.mean(axis=(0, 2, 3))
    centred = x - mean.reshape(-1, 1, 1)
    rstd = 1 / np.sqrt((centred * centred).mean(axis=(0, 2, 3)) + EPSILON)
    return centred * (rstd * gamma).reshape(-1, 1, 1) + beta.reshape(-1, 1, 1), mean, rstd


def traffic(*, dtype: str, batch: int, channels: int, pixels: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    elements = batch * channels * pixels
    images, vector = elements * element_bytes(dtype), channels * 4
    apart = 12 * images + 4 * vector
    return {
        "reads": images + 2 * vector,
        "writes": images + 2 * vector,
        "moved": {
            "unfused": apart,
            "steps": apart,
            "fused": 3 * images + 4 * vector,
            "fused_cluster": 2 * images + 4 * vector,
            "torch": 3 * images + 4 * vector,
            "torch_compile": 3 * images + 4 * vector,
        },
        "flops": 8 * elements,
    }
