"""Single steps on [batch, channels, height, width] with a value a channel, and what batch normalisation's forms share.

That is the order of images in PyTorch, cuDNN and ONNX. Statistics and parameters are float32 whatever the elements are,
as they are kept in mixed-precision training.
"""

from typing import Any

import numpy as np

from kernels.cuda_source import FLAT_THREADS, Source, checked, packs_in_row
from kernels.launch import KernelCall
from kernels.rows import WARP

SOURCE = Source(
    ("row.cuh", "long_row.cuh", "batchnorm.cuh", "batchnorm_steps.cu"),
    registers={
        "subtract_channel": 32,
        "multiply_channel": 32,
        "add_channel": 32,
        "channel_sums": 64,
        "channel_means": 32,
        "rstd_of_channels": 32,
    },
)

EPSILON = 1e-5

PACKS_OF_A_PART = 2048
"""What a block takes of a channel at least, and in most cases: eight loads for each of 256 threads."""


def packs_of_plane(x: Any, *others: Any) -> int:
    """Packs of one channel of one image, after checking that pointers to the arrays mean what they should."""
    return packs_in_row(x.shape[2] * x.shape[3], checked(x, *others))


def parts_of_channel(x: Any) -> int:
    """How many blocks share a channel."""
    return -(-x.shape[0] * packs_of_plane(x) // PACKS_OF_A_PART)


def by_channel(kernel: str, out: Any, x: Any, value: Any) -> KernelCall:
    """`subtract_channel`, `multiply_channel`, `add_channel`."""
    return per_pack(SOURCE, kernel, x, (x, value, out))


def per_pack(source: Source, kernel: str, x: Any, arrays: tuple[Any, ...], *scalars: Any) -> KernelCall:
    """Bind a kernel with one pack a thread: arguments are arrays, packs, packs of a plane, channels, scalars."""
    plane = packs_of_plane(*arrays)
    packs = x.shape[0] * x.shape[1] * plane
    args = (*arrays, np.uint32(packs), np.uint32(plane), np.uint32(x.shape[1]), *scalars)
    return source.bind(kernel, str(x.dtype), -(-packs // FLAT_THREADS), FLAT_THREADS, args)


def mean_of_channels(means: Any, x: Any, sums: Any) -> tuple[KernelCall, KernelCall]:
    """The mean of each channel; `sums` is a buffer for `parts_of_channel` numbers a channel."""
    batch, channels, height, width = x.shape
    plane, parts = packs_of_plane(x, means, sums), parts_of_channel(x)
    sizes = (np.int32(batch * plane), np.int32(plane), np.int32(channels), np.int32(parts))
    dtype, share = str(x.dtype), np.float32(1 / (batch * height * width))
    return (
        SOURCE.bind("channel_sums", dtype, channels * parts, FLAT_THREADS, (x, sums, *sizes)),
        SOURCE.bind("channel_means", dtype, channels, WARP, (sums, means, np.int32(parts), share)),
    )


def rstd_of_channels(rstd: Any, variance: Any, x: Any) -> KernelCall:
    """1 / √(variance + ε) of each channel, in the module for elements of x."""
    checked(rstd, variance)
    args = (variance, rstd, np.int32(rstd.size), np.float32(EPSILON))
    return SOURCE.bind("rstd_of_channels", str(x.dtype), -(-rstd.size // FLAT_THREADS), FLAT_THREADS, args)
