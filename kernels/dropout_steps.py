"""The steps that only dropout has, as CUDA kernels, and what all dropout here has in common.

An element is dropped when its 16-bit draw (see philox.py) is below 6554: p = 6554 / 65536 ≈ 0.1, exactly the same rule
whether draws are compared as integers or as uniform numbers in float32.
"""

from typing import Any

import numpy as np

from kernels import philox
from kernels.cuda_source import FLAT_THREADS, Source, checked
from kernels.launch import KernelCall

SOURCE = Source(("philox.cuh", "dropout_steps.cu"), registers={"uniform": 40, "keep_mask": 40, "apply_mask": 40})

KEY = 1234567
DROP_BELOW = 6554
DROPPED_SHARE = DROP_BELOW / philox.LEVELS
SCALE = 1 / (1 - DROPPED_SHARE)

FUSED_SCALARS = (np.uint64(KEY), np.uint32(DROP_BELOW), np.float32(SCALE))
"""What a kernel needs that draws and scales as it goes: key, threshold, scale."""

_KEEP_MASK_ELEMENTS = 16


def uniform(u: Any, like: Any) -> KernelCall:
    """Fill `u` (float32) with the uniform number of each element of `like`."""
    args = (u, np.int64(u.size), np.uint64(KEY))
    return SOURCE.bind("uniform", checked(like, u), _blocks(u.size, philox.GROUP), FLAT_THREADS, args)


def keep_mask(keep: Any, u: Any, like: Any) -> KernelCall:
    """Whether each element is kept, as a byte."""
    args = (u, keep, np.int64(u.size), np.float32(DROPPED_SHARE))
    dtype = checked(like, u, keep)
    return SOURCE.bind("keep_mask", dtype, _blocks(u.size, _KEEP_MASK_ELEMENTS), FLAT_THREADS, args)


def apply_mask(out: Any, x: Any, keep: Any) -> KernelCall:
    """The product of x and a mask of bytes."""
    return SOURCE.flat("apply_mask", x.size, (x, keep, out))


def _blocks(elements: int, of_a_thread: int) -> int:
    return max(1, -(-elements // (of_a_thread * FLAT_THREADS)))
