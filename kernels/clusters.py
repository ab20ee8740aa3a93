"""What the CUDA driver knows of clusters of blocks and CuPy does not ask it for."""

import ctypes
from ctypes import byref, c_int, c_uint, c_void_p

from kernels.launch import KernelCall

PORTABLE_BLOCKS = 8
"""What every card with clusters can do; larger ones must be allowed, and need as many multiprocessors in one place."""

_CLUSTER_DIMENSION = 4
_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14

_WITHOUT_A_CARD = 2
"""Clusters that are said to run at the same time where kernels run on the CPU."""


class _Attribute(ctypes.Structure):
    """The driver's CUlaunchAttribute; its value is a union of 64 bytes."""

    _fields_ = (("id", c_int), ("padding", c_int), ("value", c_uint * 16))


class _Config(ctypes.Structure):
    """The driver's CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("attribute_count", c_uint),
    )


def most_at_once(call: KernelCall, blocks: int) -> int:
    """How many clusters of `blocks` blocks run `call` at the same time; 0 where the card has no such clusters.

    It is less than the multiprocessors would hold: a cluster has all its blocks in one part of the chip.
    """
    if not hasattr(call.kernel, "kernel"):
        return _WITHOUT_A_CARD
    driver, function = ctypes.CDLL("libcuda.so.1"), c_void_p(call.kernel.kernel.ptr)
    if blocks > PORTABLE_BLOCKS and driver.cuFuncSetAttribute(function, _NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1):
        return 0
    size = _Attribute(_CLUSTER_DIMENSION, 0, (c_uint * 16)(blocks, 1, 1))
    grid, block = (c_uint * 3)(blocks, 1, 1), (c_uint * 3)(*call.block, 1, 1)
    config = _Config(grid, block, call.shared_bytes, None, ctypes.addressof(size), 1)
    found = c_int()
    if driver.cuOccupancyMaxActiveClusters(byref(found), function, byref(config)):
        return 0
    return found.value


def resident(call: KernelCall, blocks: int) -> KernelCall:
    """The call with no more clusters than run at the same time: those take all the work among them."""
    most = most_at_once(call, blocks)
    if not most:
        raise ValueError(f"this card does not run clusters of {blocks} blocks; take the variant fused")
    return call._replace(grid=(min(call.grid[0], most * blocks),))
