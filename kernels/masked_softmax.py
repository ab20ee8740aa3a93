"""out = softmax(scale · x + mask) over the last axis of x, [heads, queries, keys]; mask is [queries, keys].

Formula: what stands between the two products of attention (Vaswani et al., 2017), the mask added and the same for all
heads; scale = 0.125, as for heads of 64. A row of which every element is masked by -inf gives NaN.
Traffic in units of heads × queries × keys elements: fused 1 + 1 = 2; step by step scale 2, mask 2, max 1, subtract 2,
exp 2, sum 1, divide 2: 12. Expected gain 6.0. The mask and row statistics count once.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import softmax
from kernels import steps as step
from kernels.cuda_source import MOST_THREADS, Source, checked, pack_elements, packs_in_row
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch
from kernels.rows import MOST_PACKS_OF_LANES, by_row, row_kernels

SOURCE = Source(
    ("row.cuh", "softmax.cuh", "masked_softmax.cu"),
    registers=dict.fromkeys(row_kernels("masked_softmax", 2), 80),
)

SCALE = 0.125
MOST_PACKS = 2 * MOST_THREADS

PACKS_A_THREAD = 2
HEADS_A_BLOCK = 32
"""Heads whose rows a block takes one after the other, with the mask's row in registers."""


def unfused(x: Any, mask: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already."""
    xp = array_module(x)
    t = xp.empty_like(x)
    after, out = softmax.unfused(t.reshape(-1, x.shape[2]))
    return launch(partial(xp.multiply, x, SCALE, out=t), partial(xp.add, t, mask, out=t), *after.steps), out.reshape(
        x.shape
    )


def steps(x: Any, mask: Any, **_: object) -> tuple[Launch, Any]:
    """The same seven steps with 16-byte accesses."""
    xp = array_module(x)
    heads, queries, keys = x.shape
    t, out = xp.empty_like(x), xp.empty_like(x)
    rows = (heads * queries, keys)
    most, total = xp.empty(rows[0], np.float32), xp.empty(rows[0], np.float32)
    # a mask that is the same for all heads is one value a column of [heads, queries · keys]
    beside_heads = step.beside("add_column", t.reshape(heads, -1), t.reshape(heads, -1), mask)
    flat = t.reshape(rows)
    return launch(
        step.flat("scale", t, x, by=SCALE),
        beside_heads,
        step.over_row("row_max", most, flat),
        step.beside("subtract_row", flat, flat, most),
        step.flat("exp_of", flat, flat),
        step.over_row("row_sum", total, flat),
        step.beside("divide_row", out.reshape(rows), flat, total),
    ), out


def fused(x: Any, mask: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel; a row stays in the registers of some lanes or of a block, which keeps the mask's for some heads."""
    out = array_module(x).empty_like(x)
    heads, queries, keys = x.shape
    arrays, packs = (x, mask, out), packs_in_row(keys, dtype := checked(x, mask, out))
    if packs <= MOST_PACKS_OF_LANES:
        scalars = (np.int32(queries), np.float32(SCALE))
        call = by_row(SOURCE, "masked_softmax", (heads * queries, keys), arrays, *scalars, packs_a_thread=1)
        return launch(call), out
    if packs > MOST_PACKS:
        most = MOST_PACKS * pack_elements(dtype)
        raise ValueError(f"a row of {keys} {dtype} elements and its mask do not fit in registers; the most is {most}")
    blocks = (queries * -(-heads // HEADS_A_BLOCK), keys)
    scalars = (np.int32(queries), np.int32(heads), np.int32(HEADS_A_BLOCK), np.float32(SCALE))
    call = SOURCE.by_row("masked_softmax", blocks, arrays, *scalars, packs_a_thread=PACKS_A_THREAD)
    return launch(call), out


def reference(x: Any, mask: Any, **_: object) -> Any:
    """The right answer, from float64 inputs."""
    scores = x * SCALE + mask
    e = np.exp(scores - scores.max(axis=2, keepdims=True))
    return e / e.sum(axis=2, keepdims=True)


def traffic(*, dtype: str, heads: int, queries: int, keys: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    scores, mask = heads * queries * keys * size, queries * keys * size
    apart = 12 * scores + mask + 2 * heads * queries * 4
    once = dict.fromkeys(("fused", "torch_compile", "triton"), 2 * scores + mask)
    return {
        "reads": scores + mask,
        "writes": scores,
        "moved": {"unfused": apart, "steps": apart, "torch": 6 * scores + mask, **once},  # scale, mask, softmax
        "flops": 6 * heads * queries * keys,
    }
