"""Dropout from a counter-based generator: every variant drops the same elements.

Libraries' own dropout has no variant here: it draws other numbers, so that its result could not be checked. PyTorch's
compiler is given the same rule instead.
"""

from typing import Any

from kernels import dropout_relu as dropout
from kernels import dropout_torch
from kernels import embedding_dropout as embedding
from perftrack.declare import benchmark, variant


@benchmark(
    variants={
        "unfused": variant(dropout.unfused, tolerance=4),
        "steps": variant(cuda=dropout.steps, tolerance=4),
        "fused": variant(cuda=dropout.fused, cpu=dropout.fused_cpu, requires={"cpu": ["numba"]}),
        "torch_compile": variant(cuda=dropout_torch.dropout_relu, requires=["torch"]),
    },
    reference=dropout.reference,
    axes={
        "cuda": [{"dtype": ["float32"], "n": [2**26]}, {"dtype": ["float16", "bfloat16"], "n": [2**27]}],
        "cpu": {"dtype": ["float32"], "n": [2**19]},
    },
    traffic=dropout.traffic,
)
def dropout_relu(rng: Any, dtype: str, n: int) -> Any:
    """Rectify, then drop a tenth of the elements."""
    return rng.normal(n, dtype)


def _embedding_traffic(*, dtype: str, tokens: int, distinct: int, cols: int, **_: int) -> dict[str, Any]:
    return embedding.traffic(dtype=dtype, tokens=tokens, distinct=distinct, cols=cols)


@benchmark(
    variants={
        "unfused": variant(embedding.unfused, tolerance=4),
        "steps": variant(cuda=embedding.steps, tolerance=4),
        "fused": variant(cuda=embedding.fused),
    },
    reference=embedding.reference,
    axes={
        "cuda": {"dtype": ["float16"], "tokens": [32768], "distinct": [32768, 2048], "vocab": [50304], "cols": [4096]}
    },
    traffic=_embedding_traffic,
)
def embedding_dropout(rng: Any, dtype: str, tokens: int, distinct: int, vocab: int, cols: int) -> Any:
    """Rows of a table by token, a tenth of their elements dropped; `distinct` different tokens, each as often."""
    table = rng.normal((vocab, cols), dtype)
    words = rng.uniform(vocab, "float32").argsort()[:distinct]
    return table, words[rng.uniform(tokens, "float32").argsort() % distinct].astype("int32")
