"""q, k, v = x @ w_q, x @ w_k, x @ w_v, x of [tokens, hidden], the weights of [hidden, hidden].

Formula: the projections in front of attention (Vaswani et al., 2017), as three products or as one.
Traffic in bytes: the weights once, x once a product, the results once. The expected gain is 1 or little more: with many
tokens this is a control; with few, one product of three times the size keeps the card busier than three.
"""

from functools import partial
from typing import Any

from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch
from kernels.product import product


def unfused(x: Any, *weights: Any, **_: object) -> tuple[Launch, tuple[Any, ...]]:
    """Three products."""
    xp = array_module(x)
    outs = _apart(x, weights)
    return launch(*(partial(xp.matmul, x, w, out=out) for w, out in zip(weights, outs, strict=True))), outs


def steps(x: Any, *weights: Any, **_: object) -> tuple[Launch, tuple[Any, ...]]:
    """The same three, straight from cuBLASLt."""
    outs = _apart(x, weights)
    return launch(*(product(x, w, out) for w, out in zip(weights, outs, strict=True))), outs


def fused(x: Any, *weights: Any, **_: object) -> tuple[Launch, tuple[Any, ...]]:
    """One product with the weights side by side, as they would be stored; q, k and v are columns of its result."""
    xp = array_module(x)
    beside, outs = _beside(x, weights)
    return launch(partial(xp.matmul, x, xp.concatenate(weights, axis=1), out=beside)), outs


def cublaslt(x: Any, *weights: Any, **_: object) -> tuple[Launch, tuple[Any, ...]]:
    """The same, straight from cuBLASLt."""
    beside, outs = _beside(x, weights)
    return launch(product(x, array_module(x).concatenate(weights, axis=1), beside)), outs


def _apart(x: Any, weights: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(array_module(x).empty((x.shape[0], w.shape[1]), x.dtype) for w in weights)


def _beside(x: Any, weights: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Room for the results side by side, and each of them in it."""
    cols = weights[0].shape[1]
    beside = array_module(x).empty((x.shape[0], cols * len(weights)), x.dtype)
    return beside, tuple(beside[:, i * cols : (i + 1) * cols] for i in range(len(weights)))


def reference(x: Any, *weights: Any, **_: object) -> tuple[Any, ...]:
    """The right answer, from float64 inputs."""
    return tuple(x @ w for w in weights)


def traffic(*, dtype: str, tokens: int, hidden: int) -> dict[str, Any]:
    """Bytes and operations of one call."""
    size = element_bytes(dtype)
    source, weights, results = tokens * hidden * size, 3 * hidden * hidden * size, 3 * tokens * hidden * size
    apart, beside = 3 * source + weights + results, source + weights + results
    return {
        "reads": source + weights,
        "writes": results,
        "moved": {"unfused": apart, "steps": apart, "fused": beside, "cublaslt": beside},
        "flops": 6 * tokens * hidden * hidden,
    }
