"""Whole layers of a transformer, timed as a user's loop runs them: with the launches of their kernels."""

from typing import Any

from kernels import decoder_layer as kernel
from perftrack.declare import benchmark, variant


@benchmark(
    variants={
        "unfused": variant(cuda=kernel.unfused, tolerance=4),
        "graph": variant(cuda=kernel.graph, tolerance=4),
        "fused": variant(cuda=kernel.fused, tolerance=2),  # a chain of ten results in halves, even when fused
        "fused_graph": variant(cuda=kernel.fused_graph, tolerance=2),
    },
    reference=kernel.reference,
    axes={"cuda": {"dtype": ["float16"], "model": ["llama-2-7b"], "tokens": [1, 32], "past": [1023]}},
    traffic=kernel.traffic,
    issue="eager",
    min_effect=0.05,  # a host's launch times vary more than a card's kernels
)
def decoder_layer(rng: Any, dtype: str, model: str, tokens: int, past: int) -> Any:
    """A layer of Llama 2 7B writing the next token of some sequences, against cached keys and values."""
    hidden, inner = kernel.MODELS[model]
    cached = (tokens, hidden // kernel.HEAD_DIM, past, kernel.HEAD_DIM)
    x = rng.normal((tokens, hidden), dtype)

    def weights(rows: int, cols: int) -> Any:
        return (rng.normal((rows, cols)) * cols**-0.5).astype(x.dtype)

    def gamma() -> Any:
        return (rng.uniform(hidden) + 0.5).astype(x.dtype)

    return (
        *(x, rng.normal(cached, dtype), rng.normal(cached, dtype)),
        *(gamma(), *(weights(hidden, hidden) for _ in range(4))),
        *(gamma(), weights(inner, hidden), weights(inner, hidden), weights(hidden, inner)),
    )
