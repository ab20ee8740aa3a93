"""Attention: every variant on the CPU against the float64 reference, and what it counts as traffic."""

from typing import Any

import numpy as np
import pytest
from agreement import Normal, assert_agrees, assert_close, run

from kernels import attention, attention_decode

pytestmark = pytest.mark.usefixtures("cuda_on_cpu")

VARIANTS = ("flash", "fused_softmax", "steps", "unfused")
SHAPES = (
    ((1, 1), 140, 140, 64, "causal"),
    ((1, 1), 130, 150, 128, "causal"),
    ((2, 1), 33, 130, 64, "none"),
    ((1, 1), 1, 65, 128, "none"),
)
"""Batch and heads, queries, keys, head dimension: tiles and packs that are not full, one row, keys without a query."""


def inputs_of(
    dtype: str, heads: tuple[int, int], queries: int, keys: int, dim: int, growth: float = 0
) -> tuple[Any, ...]:
    normal = Normal(dtype)
    q, k, v = normal(*heads, queries, dim), normal(*heads, keys, dim), normal(*heads, keys, dim)
    k *= np.linspace(1, 1 + growth, keys)[:, None].astype(k.dtype)
    return q, k, v


@pytest.mark.parametrize(("heads", "queries", "keys", "dim", "mask"), SHAPES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_attention(heads: tuple[int, int], queries: int, keys: int, dim: int, mask: str, variant: str) -> None:
    factor = {"flash": 1, "fused_softmax": 4}.get(variant, 1)  # of steps, agreement.py knows that they round often
    assert_agrees(attention, variant, inputs_of("float16", heads, queries, keys, dim), factor, mask=mask)


def assert_close_to_reference(module: Any, variant: str, inputs: tuple[Any, ...], **params: Any) -> None:
    (out,) = run(getattr(module, variant), inputs, **params)
    right = module.reference(*(array.astype(np.float64) for array in inputs), **params)
    assert_close(out, right, 1 if variant in {"flash", "fused"} else 4)


def test_flash_follows_scores_that_grow_from_tile_to_tile() -> None:
    q, k, v = inputs_of("float16", (1, 1), 20, 190, 128, growth=9)
    assert_close_to_reference(attention, "flash", (q * 2, k, v))


def test_what_flash_is_not_for_is_refused() -> None:
    with pytest.raises(ValueError, match="head dimensions of 64 and 128, not 32"):
        attention.flash(*inputs_of("float16", (1, 1), 8, 8, 32))
    with pytest.raises(ValueError, match="9 queries need at least as many keys, not 8"):
        attention.flash(*inputs_of("float16", (1, 1), 9, 8, 64), mask="causal")
    with pytest.raises(ValueError, match="flash_64 is for elements of float16, bfloat16, not float32"):
        attention.flash(*inputs_of("float32", (1, 1), 8, 8, 64))


@pytest.mark.parametrize(
    ("heads", "keys", "dim"), [((1, 2), 200, 64), ((2, 1), 777, 128), ((1, 1), 1, 64), ((1, 1), 300, 128)]
)
@pytest.mark.parametrize("variant", ["fused", "fused_softmax", "steps"])
def test_decoding(heads: tuple[int, int], keys: int, dim: int, variant: str) -> None:
    assert_close_to_reference(attention_decode, variant, inputs_of("float16", heads, 1, keys, dim, growth=3))


def test_decoding_reads_the_first_keys_of_a_cache_with_room_for_more() -> None:
    q, k, v = inputs_of("float16", (2, 2), 1, 300, 128)
    k[:, :, 260:] = v[:, :, 260:] = np.nan
    out = np.empty_like(q)
    for call in attention_decode.calls(q, k, v, out, keys=260):
        call.step()
    right = attention_decode.reference(*(x.astype(np.float64) for x in (q, k[:, :, :260], v[:, :, :260])))
    assert_close(out, right, 1)


@pytest.mark.parametrize(("heads", "keys"), [(1, 1), (1, 129), (32, 32768), (1, 10**6), (1024, 4096), (48, 1000)])
def test_splits_cover_the_keys_and_none_is_without(heads: int, keys: int) -> None:
    splits, keys_a_split = attention_decode.split(heads, keys)
    assert (splits - 1) * keys_a_split < keys <= splits * keys_a_split
    assert splits <= attention_decode.MOST_SPLITS
    assert splits == 1 or heads < attention_decode.BLOCKS // 2


def test_traffic_of_attention() -> None:
    # 2 x 3 heads, 10 tokens, 64 halves each: 7680 bytes; their scores are 1200
    counts = attention.traffic(dtype="float16", batch=2, heads=3, seq=10, dim=64, mask="none")
    assert (counts["reads"], counts["writes"]) == (3 * 7680, 7680)
    assert counts["moved"]["flash"] == counts["moved"]["torch_cudnn"] == 4 * 7680
    assert counts["moved"]["unfused"] == counts["moved"]["steps"] == 4 * 7680 + 12 * 1200
    assert counts["moved"]["fused_softmax"] == 4 * 7680 + 4 * 1200
    assert counts["flops"] == 600 * (4 * 64 + 4)
    masked = attention.traffic(dtype="float16", batch=2, heads=3, seq=10, dim=64, mask="causal")
    assert masked["moved"]["unfused"] == 4 * 7680 + 14 * 1200 + 200
    assert masked["moved"]["steps"] == 4 * 7680 + 14 * 1200
    assert masked["flops"] == 6 * 55 * (4 * 64 + 4)


def test_traffic_of_decoding() -> None:
    # 2 heads of 64 halves: 256 bytes; both caches of 1000 keys 512 000; seven splits write and read 66 floats each
    counts = attention_decode.traffic(dtype="float16", batch=1, heads=2, keys=1000, dim=64)
    assert (counts["reads"], counts["writes"]) == (256 + 512_000, 256)
    assert counts["moved"]["torch_flash"] == 512 + 512_000
    assert counts["moved"]["fused"] == 512 + 512_000 + 2 * 2 * 7 * 66 * 4
    assert counts["moved"]["steps"] == 512 + 512_000 + 12 * 4000
