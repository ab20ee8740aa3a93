"""The chain of chain.py on arrays so small that launching takes longer than computing, `repeats` times over.

Formula and traffic of one repeat as there; all repeats compute the same. What can be gained is launches: `length` ×
`repeats` of them step by step, `repeats` when fused, one for a CUDA graph of either, however many kernels it holds:
with one repeat the graph's own launch is what is timed, with twenty it is shared, as in a layer of a network. To be
timed with the launches (`issue="eager"`).
"""

from typing import Any

from kernels import chain
from kernels.chain import reference
from kernels.launch import Launch, captured

__all__ = ["fused", "fused_graph", "graph", "reference", "steps", "traffic", "unfused"]


def unfused(x: Any, *, length: int, repeats: int, **_: object) -> tuple[Launch, Any]:
    """One library call a step."""
    return _repeated(chain.unfused(x, length=length), repeats)


def steps(x: Any, *, length: int, repeats: int, **_: object) -> tuple[Launch, Any]:
    """The same steps with 16-byte accesses."""
    return _repeated(chain.steps(x, length=length), repeats)


def fused(x: Any, *, length: int, repeats: int, **_: object) -> tuple[Launch, Any]:
    """One kernel a repeat."""
    return _repeated(chain.fused(x, length=length), repeats)


def graph(x: Any, *, length: int, repeats: int, **_: object) -> tuple[Launch, Any]:
    """The library's calls as one CUDA graph."""
    made, out = unfused(x, length=length, repeats=repeats)
    return captured(made), out


def fused_graph(x: Any, *, length: int, repeats: int, **_: object) -> tuple[Launch, Any]:
    """The fused kernels as one CUDA graph."""
    made, out = fused(x, length=length, repeats=repeats)
    return captured(made), out


def _repeated(once: tuple[Launch, Any], repeats: int) -> tuple[Launch, Any]:
    made, out = once
    return Launch(made.steps * repeats, made.kernels * repeats, made.source), out


def traffic(*, dtype: str, n: int, length: int, repeats: int) -> dict[str, Any]:
    """Bytes and operations of one call; a graph moves what its kernels move."""
    counts = chain.traffic(dtype=dtype, n=n, length=length)
    moved = {name: count * repeats for name, count in counts["moved"].items()}
    graphs = {"graph": moved["unfused"], "fused_graph": moved["fused"]}
    return counts | {"flops": counts["flops"] * repeats, "moved": moved | graphs}
