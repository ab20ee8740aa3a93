"""out = softmax(scale · q kᵀ) v for one new query a head, against caches of keys and values.

q is of [batch, heads, 1, head dimension], k and v of [batch, heads, keys, head dimension].
Formula: scaled dot-product attention (Vaswani et al., 2017) while a text is being written, one token at a time, with a
head's keys split over several blocks (flash-decoding: Dao, Haziza, Massa and Sizov, 2023): see attention_decode.cu.
Traffic in bytes: both caches are read once, and little else counts; in units of one score each (batch × heads × keys),
step by step product 1, scale 2, maximum 1, subtract 2, exp 2, sum 1, divide 2, product 1: 12; with one kernel between
the products 4; `fused` none, but 2 + head dimension floats for each split, written and read.
The expected gain is one of time: the library's products with one row seldom reach the memory's bandwidth.
"""

import math
from typing import Any

import numpy as np

from kernels import attention
from kernels.attention import HALVES, LOG2_E
from kernels.cuda_source import Source, checked
from kernels.dtypes import element_bytes
from kernels.launch import KernelCall, Launch, array_module, launch

HEAD_DIMENSIONS = (64, 128)
SOURCE = Source(
    ("row.cuh", "attention_decode.cu"),
    registers={**{f"decode_{dim}": 80 for dim in HEAD_DIMENSIONS}, "combine": 48},
    dtypes=HALVES,
)
THREADS = 128
COMBINE_GROUPS = 4
BLOCKS = 2048
"""As many as keep a large card busy for about two rounds; with half as many heads, none is split."""

MOST_SPLITS = 128
FEWEST_KEYS = 128
"""Keys of a split: with fewer, merging costs more than the split gains."""

unfused = attention.unfused
steps = attention.steps
fused_softmax = attention.fused_softmax
reference = attention.reference


def fused(q: Any, k: Any, v: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel that reads the caches, and one that merges the splits."""
    out = array_module(q).empty_like(q)
    return launch(*calls(q, k, v, out, keys=k.shape[-2])), out


def calls(q: Any, k: Any, v: Any, out: Any, *, keys: int) -> tuple[KernelCall, ...]:
    """The kernels: attention over the first `keys` keys of caches that may have room for more."""
    xp, dtype = array_module(q), checked(q, k, v, out)
    heads, dim = math.prod(q.shape[:-2]), q.shape[-1]
    if dim not in HEAD_DIMENSIONS or q.shape[-2] != 1:
        raise ValueError(f"decoding is for one query and head dimensions of 64 and 128, not a query of {q.shape}")
    splits, keys_a_split = split(heads, keys)
    partial = xp.empty(heads * splits * (dim + 2) if splits > 1 else 1, np.float32)
    lengths = (np.int32(keys), np.int32(k.shape[-2]), np.int32(splits), np.int32(keys_a_split))
    args = (q, k, v, out, partial, *lengths, np.float32(dim**-0.5 * LOG2_E))
    first = SOURCE.bind(f"decode_{dim}", dtype, heads * splits, THREADS, args)
    if splits == 1:
        return (first,)
    return first, SOURCE.bind("combine", dtype, heads, COMBINE_GROUPS * dim, (partial, out, np.int32(splits)))


def split(heads: int, keys: int) -> tuple[int, int]:
    """Over how many blocks a head's keys are split, and how many keys each of them has; none is without keys."""
    wanted = BLOCKS // heads if heads < BLOCKS // 2 else 1
    splits = max(1, min(wanted, MOST_SPLITS, keys // FEWEST_KEYS))
    keys_a_split = -(-keys // splits)
    return -(-keys // keys_a_split), keys_a_split


def traffic(*, dtype: str, batch: int, heads: int, keys: int, dim: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    vectors, caches, scores = batch * heads * dim * size, 2 * batch * heads * keys * dim * size, batch * heads * keys
    splits = split(batch * heads, keys)[0]
    merged = 2 * batch * heads * splits * (dim + 2) * 4 if splits > 1 else 0
    least = 2 * vectors + caches
    return {
        "reads": vectors + caches,
        "writes": vectors,
        "moved": {
            "unfused": least + 12 * scores * size,
            "steps": least + 12 * scores * size,
            "fused_softmax": least + 4 * scores * size,
            "fused": least + merged,
            "torch_flash": least,
        },
        "flops": 4 * scores * dim + 4 * scores,
    }
