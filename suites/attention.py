"""Attention: whole sequences, and one new token against cached keys and values."""

from typing import Any

from kernels import attention as kernel
from kernels import attention_decode as decoding
from kernels import attention_torch as by_torch
from perftrack.declare import benchmark, variant

VARIANTS = {
    "unfused": variant(cuda=kernel.unfused, tolerance=4),
    "steps": variant(cuda=kernel.steps, tolerance=4),
    "fused_softmax": variant(cuda=kernel.fused_softmax, tolerance=4),  # scores and weights are rounded in between
    "flash": variant(cuda=kernel.flash),
    "torch_flash": variant(cuda=by_torch.torch_flash, requires=["torch"]),
    "torch_cudnn": variant(cuda=by_torch.torch_cudnn, requires=["torch"]),
}
DECODING = {
    "unfused": variant(cuda=decoding.unfused, tolerance=4),
    "steps": variant(cuda=decoding.steps, tolerance=4),
    "fused_softmax": variant(cuda=decoding.fused_softmax, tolerance=4),  # scores and weights are rounded in between
    "fused": variant(cuda=decoding.fused),
    "torch_flash": variant(cuda=by_torch.torch_flash, requires=["torch"]),
}


def _inputs(rng: Any, dtype: str, *shape: int) -> Any:
    return tuple(rng.normal(shape, dtype) for _ in range(3))


@benchmark(
    variants=VARIANTS,
    reference=kernel.reference,
    axes={
        "cuda": {
            "dtype": ["float16"],
            "batch": [4],
            "heads": [32],
            "seq": [2048],
            "dim": [128],
            "mask": ["none", "causal"],
        }
    },
    traffic=kernel.traffic,
)
def attention(rng: Any, dtype: str, batch: int, heads: int, seq: int, dim: int, mask: str) -> Any:
    """Attention with heads of 128, of every token to all or to the earlier ones."""
    del mask
    return _inputs(rng, dtype, batch, heads, seq, dim)


@benchmark(
    variants=VARIANTS,
    reference=kernel.reference,
    axes={
        "cuda": {
            "dtype": ["bfloat16"],
            "batch": [8],
            "heads": [16],
            "seq": [1024],
            "dim": [64],
            "mask": ["none"],
        }
    },
    traffic=kernel.traffic,
)
def attention_head_64(rng: Any, dtype: str, batch: int, heads: int, seq: int, dim: int, mask: str) -> Any:
    """Attention with heads of 64, of which the exponentials take a larger part."""
    del mask
    return _inputs(rng, dtype, batch, heads, seq, dim)


@benchmark(
    variants=VARIANTS,
    reference=kernel.reference,
    axes={
        "cuda": {
            "dtype": ["float16"],
            "batch": [64],
            "heads": [12],
            "seq": [197],
            "dim": [64],
            "mask": ["none"],
        }
    },
    traffic=kernel.traffic,
)
def attention_vit(rng: Any, dtype: str, batch: int, heads: int, seq: int, dim: int, mask: str) -> Any:
    """Attention over the 197 patches of a vision transformer: rows of scores that are no whole 16-byte accesses."""
    del mask
    return _inputs(rng, dtype, batch, heads, seq, dim)


def _decoding_inputs(rng: Any, dtype: str, batch: int, heads: int, keys: int, dim: int) -> Any:
    return rng.normal((batch, heads, 1, dim), dtype), *(rng.normal((batch, heads, keys, dim), dtype) for _ in range(2))


@benchmark(
    variants=DECODING,
    reference=decoding.reference,
    axes={"cuda": {"dtype": ["float16"], "batch": [1], "heads": [32], "keys": [32768], "dim": [128]}},
    traffic=decoding.traffic,
)
def attention_decode(rng: Any, dtype: str, batch: int, heads: int, keys: int, dim: int) -> Any:
    """One new token against a long cache: reading it is all there is to do."""
    return _decoding_inputs(rng, dtype, batch, heads, keys, dim)


@benchmark(
    variants=DECODING,
    reference=decoding.reference,
    axes={"cuda": {"dtype": ["float16"], "batch": [64], "heads": [32], "keys": [1023], "dim": [128]}},
    traffic=decoding.traffic,
)
def attention_decode_batch(rng: Any, dtype: str, batch: int, heads: int, keys: int, dim: int) -> Any:
    """One new token of each of many sequences, against shorter caches of an odd length."""
    return _decoding_inputs(rng, dtype, batch, heads, keys, dim)
