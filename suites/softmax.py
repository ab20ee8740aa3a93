"""Softmax over rows, from short to long ones, and with a mask."""

from typing import Any

from kernels import masked_softmax as masked
from kernels import softmax as kernel
from kernels import softmax_torch, softmax_triton
from kernels.launch import array_module
from perftrack.declare import benchmark, variant


@benchmark(
    variants={
        "unfused": variant(kernel.unfused, tolerance=4),
        "steps": variant(cuda=kernel.steps, tolerance=4),
        "fused": variant(cuda=kernel.fused, cpu=kernel.fused_cpu, requires={"cpu": ["numba"]}),
        "fused_online": variant(cuda=kernel.fused_online),
        "torch": variant(cuda=softmax_torch.softmax, requires=["torch"]),
        "torch_compile": variant(cuda=softmax_torch.softmax_compiled, requires=["torch"]),
        "triton": variant(cuda=softmax_triton.softmax, requires=["torch", "triton"]),
    },
    reference=kernel.reference,
    axes={
        "cuda": [
            {"dtype": ["float32"], "rows": [16384], "cols": [4096]},
            {"dtype": ["float16", "bfloat16"], "rows": [32768], "cols": [4096]},
        ],
        "cpu": {"dtype": ["float32", "float64"], "rows": [256], "cols": [2048]},
    },
    traffic=kernel.traffic,
)
def softmax(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """Softmax of every row, safe against overflow."""
    return rng.normal((rows, cols), dtype) * 3


@benchmark(
    variants={
        "unfused": variant(kernel.unfused, tolerance=4),
        "steps": variant(cuda=kernel.steps, tolerance=4),
        "fused": variant(cuda=kernel.fused),
        "torch": variant(cuda=softmax_torch.softmax, requires=["torch"]),
        "torch_compile": variant(cuda=softmax_torch.softmax_compiled, requires=["torch"]),
        "triton": variant(cuda=softmax_triton.softmax, requires=["torch", "triton"]),
    },
    reference=kernel.reference,
    axes={
        "cuda": [
            {"dtype": ["float16"], "rows": [1048576], "cols": [128]},
            {"dtype": ["float16"], "rows": [524288], "cols": [1024]},
        ]
    },
    traffic=kernel.traffic,
)
def softmax_narrow(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """Softmax of many short rows, which some lanes of a warp hold."""
    return rng.normal((rows, cols), dtype) * 3


@benchmark(
    variants={
        "unfused": variant(kernel.unfused, tolerance=4),
        "steps": variant(cuda=kernel.steps, tolerance=4),
        "fused": variant(cuda=kernel.fused),
        "fused_online": variant(cuda=kernel.fused_online),
        "fused_split": variant(cuda=kernel.fused_split),
        "fused_cluster": variant(cuda=kernel.fused_cluster, requires=["sm_90"]),
        "torch": variant(cuda=softmax_torch.softmax, requires=["torch"]),
        "torch_compile": variant(cuda=softmax_torch.softmax_compiled, requires=["torch"]),
    },
    reference=kernel.reference,
    axes={"cuda": {"dtype": ["float16"], "rows": [4096], "cols": [32768, 65536, 131072]}},
    traffic=kernel.traffic,
)
def softmax_wide(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """Softmax of rows that no block holds in its registers."""
    return rng.normal((rows, cols), dtype) * 3


def _scores(sizes: str) -> tuple[int, int, int]:
    heads, queries, keys = map(int, sizes.split("x"))
    return heads, queries, keys


def _scores_traffic(*, dtype: str, scores: str) -> dict[str, Any]:
    heads, queries, keys = _scores(scores)
    return masked.traffic(dtype=dtype, heads=heads, queries=queries, keys=keys)


@benchmark(
    variants={
        "unfused": variant(masked.unfused, tolerance=4),
        "steps": variant(cuda=masked.steps, tolerance=4),
        "fused": variant(cuda=masked.fused),
        "torch": variant(cuda=softmax_torch.masked_softmax, requires=["torch"], tolerance=4),
        "torch_compile": variant(cuda=softmax_torch.masked_softmax_compiled, requires=["torch"]),
        "triton": variant(cuda=softmax_triton.masked_softmax, requires=["torch", "triton"]),
    },
    reference=masked.reference,
    axes={"cuda": {"dtype": ["float16", "bfloat16"], "scores": ["32x2048x2048"]}},
    traffic=_scores_traffic,
)
def masked_softmax(rng: Any, dtype: str, scores: str) -> Any:
    """Softmax of scaled scores plus a causal mask; the scores are heads x queries x keys."""
    _, queries, keys = _scores(scores)
    x = rng.normal(_scores(scores), dtype) * 3
    xp = array_module(x)
    hidden = xp.arange(keys) > xp.arange(queries)[:, None]
    return x, xp.where(hidden, -xp.inf, 0).astype(x.dtype)
