"""out[t] = table[ids[t]] / (1 - p) where an element is kept, else 0; table is [vocab, cols], ids are int32.

Formula: an embedding layer and inverted dropout (Srivastava et al., 2014), as a language model begins in training; see
dropout_steps.py for the rule by which an element of the output is dropped. An id outside the table is not looked for.
Traffic for n = tokens × cols elements of E bytes: the gather reads each distinct row once (a row that is asked for
again comes from the cache) and 4 bytes a token. Fused: that and n E. Step by step: that and gather n E, uniform numbers
4 n, mask 4 n + n, masking n (E + 1 + E), scaling 2 n E: n (10 + 5 E). With as many distinct rows as tokens the expected
gain is 5.5 in float16.
"""

from functools import partial
from typing import Any

import numpy as np

from kernels import dropout_steps as dropout_step
from kernels import philox
from kernels import steps as step
from kernels.cuda_source import FLAT_THREADS, Source, checked, packs_in_row
from kernels.dropout_steps import DROP_BELOW, DROPPED_SHARE, FUSED_SCALARS, KEY, SCALE
from kernels.dtypes import element_bytes
from kernels.launch import KernelCall, Launch, array_module, launch

SOURCE = Source(("philox.cuh", "embedding_dropout.cu"), registers={"embedding_dropout": 48, "gather_rows": 40})

TOKENS_A_THREAD = 2
"""The constant TOKENS of embedding_dropout.cu."""


def unfused(table: Any, ids: Any, **_: object) -> tuple[Launch, Any]:
    """One library call a step, into buffers that exist already, after filling an array with uniform numbers."""
    xp = array_module(table)
    t, out, u, keep = _buffers(table, ids, np.bool_)
    return launch(
        partial(xp.take, table, ids, axis=0, out=t),
        dropout_step.uniform(u, table),
        partial(xp.greater_equal, u, u.dtype.type(DROPPED_SHARE), out=keep),
        partial(xp.multiply, t, keep, out=t),
        partial(xp.multiply, t, SCALE, out=out),
    ), out


def steps(table: Any, ids: Any, **_: object) -> tuple[Launch, Any]:
    """The same five steps with 16-byte accesses."""
    t, out, u, keep = _buffers(table, ids, np.uint8)
    return launch(
        _gather("gather_rows", table, ids, t),
        dropout_step.uniform(u, table),
        dropout_step.keep_mask(keep, u, table),
        dropout_step.apply_mask(t, t, keep),
        step.flat("scale", out, t, by=SCALE),
    ), out


def fused(table: Any, ids: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel that draws as it goes; neither the gathered rows nor a mask are stored."""
    out = array_module(table).empty((ids.size, table.shape[1]), table.dtype)
    return launch(_gather("embedding_dropout", table, ids, out, *FUSED_SCALARS)), out


def _buffers(table: Any, ids: Any, mask: Any) -> tuple[Any, ...]:
    xp, shape = array_module(table), (ids.size, table.shape[1])
    return tuple(xp.empty(shape, dtype) for dtype in (table.dtype, table.dtype, np.float32, mask))


def _gather(kernel: str, table: Any, ids: Any, out: Any, *scalars: Any) -> KernelCall:
    dtype = checked(table, ids, out)
    packs = packs_in_row(table.shape[1], dtype)
    across = -(-packs // FLAT_THREADS)
    threads = min(FLAT_THREADS, max(32, 1 << (packs - 1).bit_length()))
    args = (table, ids, out, np.int64(ids.size), np.int32(packs), np.int32(across), *scalars)
    return SOURCE.bind(kernel, dtype, across * -(-ids.size // TOKENS_A_THREAD), threads, args)


def reference(table: Any, ids: Any, **_: object) -> Any:
    """The right answer, from a float64 table."""
    rows = table[ids]
    keep = philox.draws(array_module(table), rows.size, KEY).reshape(rows.shape) >= DROP_BELOW
    return np.where(keep, rows * SCALE, 0)


def traffic(*, dtype: str, tokens: int, distinct: int, cols: int) -> dict[str, Any]:
    """Bytes and operations of one call that asks for `distinct` different rows."""
    size, n = element_bytes(dtype), tokens * cols
    reads = distinct * cols * size + 4 * tokens
    apart = reads + n * (10 + 5 * size)
    return {
        "reads": reads,
        "writes": n * size,
        "moved": {"unfused": apart, "steps": apart, "fused": reads + n * size},
        "flops": n,
    }
