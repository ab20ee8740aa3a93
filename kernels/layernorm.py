"""y = (x - mean(x)) / √(var(x) + ε) · gamma + beta, row by row of [rows, cols].

Formula: layer normalisation (Ba, Kiros and Hinton, 2016), with the biased variance; ε = 1e-5.
Traffic in units of rows × cols elements: fused 1 + 1 = 2; step by step mean 1, subtract 2, square 2, mean 1, divide 2,
scale 2, shift 2: 12. Expected gain 6.0. Column vectors and row statistics count once. `fused_multipass` reads the row
twice and counts 3, though the second time a part of it comes from the cache. Where one block has a row, gamma and beta
come from the cache for every row, which of long rows is more than the row itself; `fused_cluster` reads them once.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import long_steps
from kernels import steps as step
from kernels.clusters import resident
from kernels.cuda_source import ACCESS_BYTES, Source, checked, packs_in_row
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch, row_statistics_dtype
from kernels.rows import MOST_PACKS_IN_REGISTERS, OnChip, by_row, cluster_size, held, on_chip, row_kernels, streamed

SOURCE = Source(("row.cuh", "norm.cuh", "layernorm.cu"), registers=dict.fromkeys(row_kernels("layernorm", 4), 64))
LONG = Source(
    ("row.cuh", "norm.cuh", "long_row.cuh", "moments.cuh", "layernorm_long.cu"),
    registers={"layernorm_held": 40, "layernorm_multipass": 64},
)
CLUSTER = Source(
    ("row.cuh", "norm.cuh", "long_row.cuh", "cluster.cuh", "ring.cuh", "layernorm_cluster.cu"),
    registers=dict.fromkeys(("layernorm_cluster_2", "layernorm_cluster_4", "layernorm_cluster_8"), 128),
)

EPSILON = 1e-5

PACKS_A_THREAD = 2
"""What a thread of `fused` holds of a row: with 1, too little is under way while the block waits for its sums; with 4,
fewer threads run at the same time."""
MOST_THREADS = 512
"""The launch bound of layernorm.cu for so many packs a thread."""

TEAMS, WARPS, SLOTS = 2, 8, 2
"""Of layernorm_cluster.cu: teams of a block, warps of a team, slots of a warp."""

PACKS_OF_A_CLUSTER_BLOCK = 2048
"""What a team holds of a row in registers; as much of gamma and of beta, and of each slot, is in shared memory."""


def unfused(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    t, y = xp.empty_like(x), xp.empty_like(x)
    kept = row_statistics_dtype(x)
    mean, deviation = xp.empty((x.shape[0], 1), kept), xp.empty((x.shape[0], 1), kept)
    return launch(
        partial(xp.mean, x, axis=1, dtype=kept, out=mean, keepdims=True),
        partial(xp.subtract, x, mean, out=t),
        partial(xp.multiply, t, t, out=y),
        partial(xp.mean, y, axis=1, dtype=kept, out=deviation, keepdims=True),
        partial(xp.add, deviation, EPSILON, out=deviation),
        partial(xp.sqrt, deviation, out=deviation),
        partial(xp.divide, t, deviation, out=t),
        partial(xp.multiply, t, gamma, out=t),
        partial(xp.add, t, beta, out=y),
    ), y


def steps(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """The same steps with 16-byte accesses; the two on one number a row are one."""
    xp = array_module(x)
    t, y = xp.empty_like(x), xp.empty_like(x)
    mean, deviation = xp.empty(x.shape[0], np.float32), xp.empty(x.shape[0], np.float32)
    return launch(
        long_steps.over_row("row_mean", mean, x),
        step.beside("subtract_row", t, x, mean),
        step.flat("multiply", y, t, t),
        long_steps.over_row("row_mean", deviation, y),
        step.root_of_rows(deviation, EPSILON, x.dtype),
        step.beside("divide_row", t, t, deviation),
        step.beside("multiply_column", t, t, gamma),
        step.beside("add_column", y, t, beta),
    ), y


def fused(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel; a row stays in the registers of some lanes or of a block, a long one in its shared memory too."""
    y = array_module(x).empty_like(x)
    arrays = (x, gamma, beta, y)
    packs = packs_in_row(x.shape[1], checked(*arrays))
    epsilon = np.float32(EPSILON)
    if packs <= MOST_PACKS_IN_REGISTERS:
        shape = {"packs_a_thread": PACKS_A_THREAD, "most_threads": MOST_THREADS}
        return launch(by_row(SOURCE, "layernorm", x.shape, arrays, epsilon, **shape)), y
    return launch(held(LONG, "layernorm_held", on_chip(packs, 1, x), x.shape[0], arrays, np.int32(packs), epsilon)), y


def fused_cluster(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel of clusters that stay; a block has some columns of each row and keeps their gamma and beta (sm_90)."""
    y = array_module(x).empty_like(x)
    arrays = (x, gamma, beta, y)
    rows, packs = x.shape[0], packs_in_row(x.shape[1], checked(*arrays))
    blocks = cluster_size(packs, PACKS_OF_A_CLUSTER_BLOCK)
    if packs > blocks * PACKS_OF_A_CLUSTER_BLOCK:
        most = blocks * PACKS_OF_A_CLUSTER_BLOCK * (x.shape[1] // packs)
        raise ValueError(f"{x.shape[1]} {x.dtype} elements are too many; {blocks} blocks hold at most {most}")
    shared = (TEAMS * SLOTS + 2) * WARPS * -(-packs // (blocks * WARPS)) * ACCESS_BYTES
    scalars = (np.int32(packs), np.int64(rows), np.float32(EPSILON))
    call = held(CLUSTER, f"layernorm_cluster_{blocks}", OnChip(blocks, shared), -(-rows // TEAMS), arrays, *scalars)
    return launch(resident(call, blocks)), y


def fused_multipass(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel, one block a row, which is read twice: for mean and variance together, and to write."""
    y = array_module(x).empty_like(x)
    return launch(streamed(LONG, "layernorm_multipass", x.shape, (x, gamma, beta, y), np.float32(EPSILON))), y


def reference(x: Any, gamma: Any, beta: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / np.sqrt(variance + EPSILON) * gamma + beta


def traffic(*, dtype: str, rows: int, cols: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    matrix, columns, statistics = rows * cols * size, 2 * cols * size, 2 * rows * 4
    apart = 12 * matrix + columns + statistics
    once = dict.fromkeys(("fused", "fused_cluster", "torch", "torch_compile", "liger", "cudnn"), 2 * matrix + columns)
    return {
        "reads": matrix + columns,
        "writes": matrix,
        "moved": {"unfused": apart, "steps": apart, "fused_multipass": 3 * matrix + columns, **once},
        "flops": 8 * rows * cols,
    }
