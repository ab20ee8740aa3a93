"""Launching kernels that work row by row: several short rows a block, one row a block, or several blocks a row."""

from typing import Any, NamedTuple

import numpy as np

from kernels.clusters import PORTABLE_BLOCKS
from kernels.cuda_source import ACCESS_BYTES, FLAT_THREADS, MOST_THREADS, Source, checked, pack_elements, packs_in_row
from kernels.launch import KernelCall

WARP = 32
PACKS_A_LANE = (1, 2)
MOST_PACKS_OF_LANES = max(PACKS_A_LANE) * WARP
"""Longer rows belong to a block."""

MOST_PACKS_IN_REGISTERS = 2048
"""Longer rows are held in shared memory too: in registers alone, so few blocks fit a multiprocessor that it waits."""

HELD_THREADS = 512
HELD_PACKS_A_THREAD = 4
"""What the kernels that hold a long row on the chip keep of it in registers; the rest is in shared memory."""

STREAM_THREADS = 1024

ALL_SHARED = 100
"""The share in per cent of a multiprocessor's memory that is no cache, so that as many blocks fit as can."""

_STATIC_SHARED_BYTES = 1024
"""Kept free for what the kernels declare themselves and what the system takes of a block's shared memory."""

_SHARED_BYTES = 227 * 1024
"""What a block may have where there is no card to ask: that of sm_90."""


def row_kernels(kernel: str, most_packs_a_thread: int) -> tuple[str, ...]:
    """The names of the kernels among which `by_row` chooses."""
    blocks = tuple(f"{kernel}_{packs}" for packs in (1, 2, 4) if packs <= most_packs_a_thread)
    return *blocks, *(f"{kernel}_lanes_{packs}" for packs in PACKS_A_LANE)


def by_row(
    source: Source,
    kernel: str,
    shape: tuple[int, int],
    arrays: tuple[Any, ...],
    *scalars: Any,
    packs_a_thread: int,
    most_threads: int = MOST_THREADS,
    packs_of_a_lane: int = 2,
) -> KernelCall:
    """Bind a kernel with the row in registers, for its length: arguments are arrays, packs a row, …, scalars.

    A row of up to 64 packs belongs to some lanes of a warp: `kernel_lanes_P` for P = 1 or 2 packs a lane has lanes and
    rows before the scalars; a lane holds `packs_of_a_lane` packs, of one row or of several. A longer one belongs to a
    block: `kernel_P` for P = 1, 2 and 4, up to what the row needs of `most_threads`, the launch bound.
    """
    dtype = checked(*arrays)
    rows, packs = shape[0], packs_in_row(shape[1], dtype)
    of_a_lane = next((of_a_lane for of_a_lane in PACKS_A_LANE if packs <= of_a_lane * WARP), 0)
    if not of_a_lane:
        return source.by_row(kernel, shape, arrays, *scalars, packs_a_thread=packs_a_thread, most_threads=most_threads)
    lanes = 1 << (-(-packs // of_a_lane) - 1).bit_length()
    args = (*arrays, np.int32(packs), np.int32(lanes), np.int64(rows), *scalars)
    blocks = -(-rows * lanes * of_a_lane // (FLAT_THREADS * packs_of_a_lane))
    return source.bind(f"{kernel}_lanes_{of_a_lane}", dtype, blocks, FLAT_THREADS, args)


class OnChip(NamedTuple):
    """How the packs of a row, divided among some blocks, are held by each of them."""

    blocks: int
    shared_bytes: int
    """A block's dynamic shared memory."""
    threads: int = HELD_THREADS


def cluster_size(packs: int, of_a_block: int) -> int:
    """Blocks among which a cluster divides a row: so many that none has more than `of_a_block` packs, up to eight."""
    blocks = 2
    while blocks < PORTABLE_BLOCKS and packs > blocks * of_a_block:
        blocks *= 2
    return blocks


def on_chip(packs: int, blocks: int, like: Any, *, threads: int = HELD_THREADS) -> OnChip:
    """Hold `packs` packs in `blocks` blocks on the card of the array `like`; a ValueError says what does not fit."""
    in_registers, most = threads * HELD_PACKS_A_THREAD, _most_shared_bytes(like)
    of_a_block = -(-packs // blocks)
    shared = max(0, of_a_block - in_registers) * ACCESS_BYTES
    if shared > most:
        where = "one block holds" if blocks == 1 else f"{blocks} blocks hold"
        fits = (most // ACCESS_BYTES + in_registers) * blocks * pack_elements(str(like.dtype))
        elements = packs * pack_elements(str(like.dtype))
        raise ValueError(f"{elements} {like.dtype} elements are too many; {where} at most {fits} on this card")
    return OnChip(blocks, shared, threads)


def held(
    source: Source, kernel: str, held_as: OnChip, groups: int, arrays: tuple[Any, ...], *scalars: Any
) -> KernelCall:
    """Bind a kernel that holds `groups` rows (or channels) on the chip; its arguments are arrays, scalars."""
    blocks, shared_bytes, threads = held_as
    call = source.bind(kernel, checked(*arrays), groups * blocks, threads, (*arrays, *scalars))
    # one kernel serves rows of several lengths, and what it has been allowed must do for all of them
    call.kernel.max_dynamic_shared_size_bytes = max(call.kernel.max_dynamic_shared_size_bytes, shared_bytes)
    call.kernel.preferred_shared_memory_carveout = ALL_SHARED
    return call._replace(shared_bytes=shared_bytes)


def streamed(source: Source, kernel: str, shape: tuple[int, int], arrays: tuple[Any, ...], *scalars: Any) -> KernelCall:
    """Bind a kernel with one block a row that reads the row as often as it needs: arguments as for `by_row`."""
    dtype = checked(*arrays)
    packs = packs_in_row(shape[1], dtype)
    threads = min(STREAM_THREADS, max(WARP, 1 << (packs - 1).bit_length()))
    return source.bind(kernel, dtype, shape[0], threads, (*arrays, np.int32(packs), *scalars))


def _most_shared_bytes(like: Any) -> int:
    if isinstance(like, np.ndarray):
        return _SHARED_BYTES - _STATIC_SHARED_BYTES
    import cupy

    return int(cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]) - _STATIC_SHARED_BYTES
