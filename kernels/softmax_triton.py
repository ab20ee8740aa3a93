"""Softmax in Triton, as its tutorial writes it: a program a row, which stays in registers."""

from functools import cache
from importlib import import_module
from typing import Any

from kernels.launch import Launch, array_module, launch
from kernels.masked_softmax import SCALE
from kernels.torch_ops import on_current_stream

ELEMENTS_A_THREAD = 16
MOST_WARPS = 16


def softmax(x: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel."""
    out = array_module(x).empty_like(x)
    return launch(on_current_stream(softmax_into, x, out)), out


def masked_softmax(x: Any, mask: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel."""
    out = array_module(x).empty_like(x)
    return launch(on_current_stream(masked_softmax_into, x, mask, out)), out


def softmax_into(x: Any, out: Any) -> None:
    """Launch on tensors of [rows, columns]."""
    rows, columns = x.shape
    block = _power_of_two(columns)
    _softmax_kernel()[(rows,)](x, out, columns, BLOCK=block, num_warps=_warps(block))


def masked_softmax_into(x: Any, mask: Any, out: Any) -> None:
    """Launch on tensors of [heads, queries, keys] and [queries, keys]."""
    heads, queries, keys = x.shape
    block = _power_of_two(keys)
    grid = (heads * queries,)
    _masked_softmax_kernel()[grid](x, mask, out, queries, keys, FACTOR=SCALE, BLOCK=block, num_warps=_warps(block))


def _power_of_two(count: int) -> int:
    return 1 << (count - 1).bit_length()


def _warps(block: int) -> int:
    return min(MOST_WARPS, max(1, block // (32 * ELEMENTS_A_THREAD)))


@cache
def _softmax_kernel() -> Any:
    triton, tl = import_module("triton"), import_module("triton.language")

    # Triton reads annotations as code, and knows no names of ours: they are strings
    @triton.jit
    def kernel(
        x: "Any",
        out: "Any",
        columns: "Any",
        BLOCK: tl.constexpr,  # pyright: ignore[reportInvalidTypeForm]
    ) -> None:
        start = tl.program_id(0).to(tl.int64) * columns
        column = tl.arange(0, BLOCK)
        inside = column < columns
        v = tl.load(x + start + column, mask=inside, other=float("-inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + start + column, e / tl.sum(e, axis=0), mask=inside)

    return kernel


@cache
def _masked_softmax_kernel() -> Any:
    triton, tl = import_module("triton"), import_module("triton.language")

    @triton.jit
    def kernel(
        x: "Any",
        beside: "Any",
        out: "Any",
        queries: "Any",
        keys: "Any",
        FACTOR: tl.constexpr,  # pyright: ignore[reportInvalidTypeForm]
        BLOCK: tl.constexpr,  # pyright: ignore[reportInvalidTypeForm]
    ) -> None:
        row = tl.program_id(0)
        start, beside_start = row.to(tl.int64) * keys, (row % queries).to(tl.int64) * keys
        key = tl.arange(0, BLOCK)
        inside = key < keys
        v = tl.load(x + start + key, mask=inside, other=float("-inf")).to(tl.float32) * FACTOR
        v += tl.load(beside + beside_start + key, mask=inside, other=0).to(tl.float32)
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + start + key, e / tl.sum(e, axis=0), mask=inside)

    return kernel
