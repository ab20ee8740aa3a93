"""out = exp(x - max(x)) / Σ exp(x - max(x)), row by row of [rows, cols].

Formula: the safe softmax; a row of which every element is -inf gives NaN. Where a row is read in pieces, maximum and
sum are kept together (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
Traffic in units of rows × cols elements: fused 1 + 1 = 2; step by step max 1, subtract 2, exp 2, sum 1, divide 2: 8.
Expected gain 4.0. Row statistics count once. What reads the row twice (`fused_online`, `fused_split`) counts 3, though
the second time a part of it comes from the cache.
"""

from functools import cache, partial
from typing import Any

import numpy as np

from kernels import long_steps
from kernels import steps as step
from kernels.cpu_exp import exponential
from kernels.cpu_threads import in_threads
from kernels.cuda_source import FLAT_THREADS, Source, checked, packs_in_row
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch, row_statistics_dtype
from kernels.rows import MOST_PACKS_IN_REGISTERS, by_row, cluster_size, held, on_chip, row_kernels, streamed

SOURCE = Source(("row.cuh", "softmax.cuh", "softmax.cu"), registers=dict.fromkeys(row_kernels("softmax", 2), 72))
LONG = Source(
    ("row.cuh", "softmax.cuh", "long_row.cuh", "cluster.cuh", "softmax_long.cu"),
    registers={
        "softmax_held": 64,
        "softmax_cluster_2": 64,
        "softmax_cluster_4": 64,
        "softmax_cluster_8": 64,
        "softmax_online": 64,
        "softmax_parts": 64,
        "softmax_of_parts": 64,
    },
)

PACKS_A_THREAD = 2

PACKS_OF_A_PART = 1024
"""What a block of `fused_split` is given: four loads for each of 256 threads."""

PACKS_OF_A_CLUSTER_BLOCK = 4096
"""What a block of `fused_cluster` holds, half of it in shared memory: three blocks fit a multiprocessor."""


def unfused(x: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    t, out = xp.empty_like(x), xp.empty_like(x)
    kept = row_statistics_dtype(x)
    most, total = xp.empty((x.shape[0], 1), x.dtype), xp.empty((x.shape[0], 1), kept)
    return launch(
        partial(xp.max, x, axis=1, out=most, keepdims=True),
        partial(xp.subtract, x, most, out=t),
        partial(xp.exp, t, out=t),
        partial(xp.sum, t, axis=1, dtype=kept, out=total, keepdims=True),
        partial(xp.divide, t, total, out=out),
    ), out


def steps(x: Any, **_: object) -> tuple[Launch, Any]:
    """The same five steps with 16-byte accesses."""
    xp = array_module(x)
    t, out = xp.empty_like(x), xp.empty_like(x)
    most, total = xp.empty(x.shape[0], np.float32), xp.empty(x.shape[0], np.float32)
    return launch(
        long_steps.over_row("row_max", most, x),
        step.beside("subtract_row", t, x, most),
        step.flat("exp_of", t, t),
        long_steps.over_row("row_sum", total, t),
        step.beside("divide_row", out, t, total),
    ), out


def fused(x: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel; a row stays in the registers of some lanes or of a block, a long one in its shared memory too."""
    out = array_module(x).empty_like(x)
    packs = packs_in_row(x.shape[1], checked(x, out))
    if packs <= MOST_PACKS_IN_REGISTERS:
        return launch(
            by_row(SOURCE, "softmax", x.shape, (x, out), packs_a_thread=PACKS_A_THREAD, packs_of_a_lane=4)
        ), out
    return launch(held(LONG, "softmax_held", on_chip(packs, 1, x), x.shape[0], (x, out), np.int32(packs))), out


def fused_online(x: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel, one block a row, which is read twice: for maximum and sum together, and to write."""
    out = array_module(x).empty_like(x)
    return launch(streamed(LONG, "softmax_online", x.shape, (x, out))), out


def fused_split(x: Any, **_: object) -> tuple[Launch, Any]:
    """Two kernels, several blocks a row in each: maximum and sum of every part, then all parts' written."""
    xp = array_module(x)
    out = xp.empty_like(x)
    dtype, rows = checked(x, out), x.shape[0]
    packs = packs_in_row(x.shape[1], dtype)
    parts = -(-packs // PACKS_OF_A_PART)
    of_parts = xp.empty((rows, parts, 2), np.float32)
    sizes = (np.int32(packs), np.int32(parts))
    return launch(
        LONG.bind("softmax_parts", dtype, rows * parts, FLAT_THREADS, (x, of_parts, *sizes)),
        LONG.bind("softmax_of_parts", dtype, rows * parts, FLAT_THREADS, (x, of_parts, out, *sizes)),
    ), out


def fused_cluster(x: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel; a row is divided among the blocks of a cluster, which exchange their maxima and sums (sm_90)."""
    out = array_module(x).empty_like(x)
    packs = packs_in_row(x.shape[1], checked(x, out))
    held_as = on_chip(packs, cluster_size(packs, PACKS_OF_A_CLUSTER_BLOCK), x)
    call = held(LONG, f"softmax_cluster_{held_as.blocks}", held_as, x.shape[0], (x, out), np.int32(packs))
    return launch(call), out


def fused_cpu(x: Any, **_: object) -> tuple[Launch, Any]:
    """One compiled loop; a row stays in the first-level cache."""
    out = np.empty_like(x)
    return launch(in_threads(_loop(str(x.dtype)), (x, out))), out


@cache
def _loop(dtype: str) -> Any:
    exp, real = exponential(dtype), np.dtype(dtype).type
    zero, one, least, nan = real(0), real(1), real(-np.inf), real(np.nan)

    def loop(_start: int, x: Any, out: Any) -> None:
        for r in range(x.shape[0]):
            most, total = least, zero
            for c in range(x.shape[1]):
                most = max(most, x[r, c])
            for c in range(x.shape[1]):
                e = exp(x[r, c] - most)
                out[r, c] = e
                total += e
            share = nan if most == least else one / total
            for c in range(x.shape[1]):
                out[r, c] *= share

    return loop


def reference(x: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def traffic(*, dtype: str, rows: int, cols: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    matrix = rows * cols * size
    apart = 8 * matrix + 2 * rows * np.dtype(dtype if dtype == "float64" else "float32").itemsize
    once = dict.fromkeys(("fused", "fused_cluster", "torch", "torch_compile", "triton"), 2 * matrix)
    twice = dict.fromkeys(("fused_online", "fused_split"), 3 * matrix)
    return {
        "reads": matrix,
        "writes": matrix,
        "moved": {"unfused": apart, "steps": apart, **once, **twice},
        "flops": 4 * rows * cols,
    }
