"""Softmax by PyTorch: its own kernels, and what `torch.compile` makes of the same functions."""

from functools import cache
from importlib import import_module
from typing import Any

from kernels.launch import Launch, array_module, launch
from kernels.masked_softmax import SCALE
from kernels.torch_graph import captured
from kernels.torch_ops import compiled, on_current_stream


def softmax(x: Any, **_: object) -> tuple[Launch, Any]:
    """PyTorch's own kernel, which takes an output."""
    out = array_module(x).empty_like(x)
    torch = import_module("torch")
    return launch(on_current_stream(lambda x, out: torch.softmax(x, dim=-1, out=out), x, out)), out


def masked_softmax(x: Any, mask: Any, **_: object) -> tuple[Launch, Any]:
    """PyTorch's own kernels, one a step."""
    return captured(_masked_softmax_of, x, mask)


def _masked_softmax_of(x: Any, mask: Any) -> Any:
    return import_module("torch").softmax(x * SCALE + mask, dim=-1)


def softmax_compiled(x: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel by `torch.compile`."""
    out = array_module(x).empty_like(x)
    return launch(on_current_stream(_compiled_softmax(), x, out)), out


def masked_softmax_compiled(x: Any, mask: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel by `torch.compile`."""
    out = array_module(x).empty_like(x)
    return launch(on_current_stream(_compiled_masked_softmax(), x, mask, out)), out


@cache
def _compiled_softmax() -> Any:
    functional = import_module("torch.nn.functional")

    def body(x: Any, out: Any) -> None:
        out.copy_(functional.softmax(x, dim=-1))

    return compiled(body)


@cache
def _compiled_masked_softmax() -> Any:
    functional = import_module("torch.nn.functional")

    def body(x: Any, mask: Any, out: Any) -> None:
        out.copy_(functional.softmax(x * SCALE + mask, dim=-1))

    return compiled(body)
