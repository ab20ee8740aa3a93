"""out = softmax(scale · q kᵀ + mask) v for every head, q, k and v of [batch, heads, sequence, head dimension].

Formula: scaled dot-product attention (Vaswani et al., 2017), scale = 1 / √(head dimension); with the mask "causal" a
query sees the keys up to its own position. `flash` never stores the scores (Dao et al., 2022): see attention.cu.
Traffic in bytes: q, k and v read and out written once, and in units of one score each (batch × heads × queries × keys):
step by step product 1, scale 2, mask 2, maximum 1, subtract 2, exp 2, sum 1, divide 2, product 1: 14, without a mask
12; with one kernel between the two products 1 + 2 + 1 = 4; flash none. Masked scores count as the others do, except
in flops. The expected gain is one of time: flash is bound by the tensor cores.

The products are cuBLASLt's: `cupy.matmul` turns stacked halves into float32 arrays first, and takes the slow path of
integers for stacked bfloat16.
"""

import math
from functools import partial
from typing import Any

import numpy as np

from kernels import steps as step
from kernels.cuda_source import Source, checked, pack_elements
from kernels.dtypes import element_bytes
from kernels.launch import KernelCall, Launch, array_module, launch, row_statistics_dtype
from kernels.product import product

QUERY_ROWS = 128
KEY_ROWS = {64: 128, 128: 64}
"""By head dimension; the constants of attention.cu."""

HALVES = ("float16", "bfloat16")
FLASH = Source(
    ("row.cuh", "tensor_core.cuh", "attention.cu"),
    registers={f"flash_{dim}": 255 for dim in KEY_ROWS},
    dtypes=HALVES,
)
SOFTMAX = Source(
    ("row.cuh", "attention_softmax.cu"),
    registers={"causal_mask": 32, **{f"scale_mask_softmax_{packs}": 64 for packs in (1, 2, 4)}},
    dtypes=HALVES,
)
FLASH_THREADS = 128
MOST_STATIC_SHARED_BYTES = 48 << 10
LOG2_E = math.log2(math.e)


def unfused(q: Any, k: Any, v: Any, *, mask: str = "none", **_: object) -> tuple[Launch, Any]:
    """One library call a step, all of them in place on the scores."""
    xp, out = array_module(q), array_module(q).empty_like(q)
    shape = (*q.shape[:-1], k.shape[-2])
    scores, kept = xp.empty(shape, q.dtype), row_statistics_dtype(q)
    most, total = xp.empty((*shape[:-1], 1), q.dtype), xp.empty((*shape[:-1], 1), kept)
    hidden = xp.where(_seen(xp, *shape[-2:]), 0, -np.inf).astype(q.dtype) if mask == "causal" else None
    masked = () if hidden is None else (partial(xp.add, scores, hidden, out=scores),)
    return launch(
        product(q, k, scores, transposed=True),
        partial(xp.multiply, scores, _scale(q), out=scores),
        *masked,
        partial(xp.max, scores, axis=-1, out=most, keepdims=True),
        partial(xp.subtract, scores, most, out=scores),
        partial(xp.exp, scores, out=scores),
        partial(xp.sum, scores, axis=-1, dtype=kept, out=total, keepdims=True),
        partial(xp.divide, scores, total, out=scores),
        product(scores, v, out),
    ), out


def steps(q: Any, k: Any, v: Any, *, mask: str = "none", **_: object) -> tuple[Launch, Any]:
    """The same steps with 16-byte accesses, on rows of whole packs: what is added to a row is -inf."""
    xp, out = array_module(q), array_module(q).empty_like(q)
    padded, scores = _scores(q, k)
    weights = xp.empty_like(padded)
    most, total = (xp.empty(padded.shape[0], np.float32) for _ in range(2))
    rows, packs = padded.shape[0], padded.shape[1] // pack_elements(str(q.dtype))
    masked = () if mask == "none" else (_mask_step(weights, rows, packs, q.shape[-2], k.shape[-2]),)
    return launch(
        product(q, k, scores, transposed=True),
        step.flat("scale", weights, padded, by=_scale(q)),
        *masked,
        step.over_row("row_max", most, weights),
        step.beside("subtract_row", weights, weights, most),
        step.flat("exp_of", weights, weights),
        step.over_row("row_sum", total, weights),
        step.beside("divide_row", weights, weights, total),
        product(weights.reshape(*scores.shape[:-1], -1)[..., : k.shape[-2]], v, out),
    ), out


def fused_softmax(q: Any, k: Any, v: Any, *, mask: str = "none", **_: object) -> tuple[Launch, Any]:
    """The same products, and one kernel for all between them."""
    out = array_module(q).empty_like(q)
    padded, scores = _scores(q, k)
    causal, scale = np.int32(mask == "causal"), np.float32(_scale(q) * LOG2_E)
    lengths = (np.int32(q.shape[-2]), np.int32(k.shape[-2]))
    return launch(
        product(q, k, scores, transposed=True),
        SOFTMAX.by_row("scale_mask_softmax", padded.shape, (padded,), *lengths, causal, scale, packs_a_thread=2),
        product(scores, v, out),
    ), out


def flash(q: Any, k: Any, v: Any, *, mask: str = "none", **_: object) -> tuple[Launch, Any]:
    """One kernel on tensor cores; no scores in memory."""
    out = array_module(q).empty_like(q)
    *heads, queries, dim = q.shape
    keys, dtype = k.shape[-2], checked(q, k, v, out)
    if dim not in KEY_ROWS:
        raise ValueError(f"flash is for head dimensions of {' and '.join(map(str, KEY_ROWS))}, not {dim}")
    if mask == "causal" and keys < queries:
        raise ValueError(f"under a causal mask, {queries} queries need at least as many keys, not {keys}")
    tiles = -(-queries // QUERY_ROWS)
    lengths = (np.int32(queries), np.int32(keys), np.int32(mask == "causal"), np.int32(tiles))
    args = (q, k, v, out, *lengths, np.float32(_scale(q) * LOG2_E))
    call = FLASH.bind(f"flash_{dim}", dtype, tiles * math.prod(heads), FLASH_THREADS, args)
    rows = QUERY_ROWS + 2 * KEY_ROWS[dim]
    return launch(with_shared(call, rows * (dim + 8) * element_bytes(dtype))), out


def with_shared(call: KernelCall, shared_bytes: int) -> KernelCall:
    """The same call with dynamic shared memory, which the kernel has to be allowed beyond 48 KiB."""
    if shared_bytes > MOST_STATIC_SHARED_BYTES:
        call.kernel.max_dynamic_shared_size_bytes = shared_bytes
    return call._replace(shared_bytes=shared_bytes)


def reference(q: Any, k: Any, v: Any, *, mask: str = "none", **_: object) -> Any:
    """The right answer, from float64 inputs; one batch entry after the other, for the scores are large."""
    xp = array_module(q)
    out = xp.empty(q.shape)
    seen = _seen(xp, q.shape[-2], k.shape[-2])
    for b in range(q.shape[0]):
        scores = q[b] @ k[b].swapaxes(-1, -2)
        scores *= _scale(q)
        if mask == "causal":
            scores = xp.where(seen, scores, -np.inf)
        scores -= scores.max(axis=-1, keepdims=True)
        xp.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        out[b] = scores @ v[b]
    return out


def traffic(*, dtype: str, batch: int, heads: int, seq: int, dim: int, mask: str) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    vectors, scores = batch * heads * seq * dim * size, batch * heads * seq * seq * size
    hidden = seq * seq * size if mask == "causal" else 0
    pairs = batch * heads * (seq * (seq + 1) // 2 if mask == "causal" else seq * seq)
    apart = 4 * vectors + (14 if hidden else 12) * scores
    whole = ("flash", "torch_flash", "torch_cudnn")
    return {
        "reads": 3 * vectors,
        "writes": vectors,
        "moved": {
            "unfused": apart + hidden,
            "steps": apart,
            "fused_softmax": 4 * vectors + 4 * scores,
            **dict.fromkeys(whole, 4 * vectors),
        },
        "flops": 4 * pairs * dim + 4 * pairs,
    }


def _scale(q: Any) -> float:
    return q.shape[-1] ** -0.5


def _seen(xp: Any, queries: int, keys: int) -> Any:
    return xp.arange(keys) <= xp.arange(queries)[:, None] + (keys - queries)


def _scores(q: Any, k: Any) -> tuple[Any, Any]:
    """Room for the scores in rows of whole packs, -inf where none will be; and the scores themselves, in it."""
    xp, keys = array_module(q), k.shape[-2]
    width = pack_elements(str(q.dtype))
    padded = xp.empty((math.prod(q.shape[:-1]), -(-keys // width) * width), q.dtype)
    padded[:, keys:] = xp.full(1, -np.inf, np.float32).astype(q.dtype)
    return padded, padded.reshape(*q.shape[:-1], -1)[..., :keys]


def _mask_step(weights: Any, rows: int, packs: int, queries: int, keys: int) -> KernelCall:
    args = (weights, weights, np.int32(packs), np.int32(queries), np.int32(keys))
    return SOFTMAX.bind("causal_mask", checked(weights), rows, min(256, -(-packs // 32) * 32), args)
