"""Normalisation of rows by PyTorch: its own kernels, and what `torch.compile` makes of the same functions."""

from functools import cache
from importlib import import_module
from typing import Any

from kernels import layernorm as _layernorm
from kernels import rmsnorm as _rmsnorm
from kernels.launch import Launch, array_module, launch
from kernels.torch_graph import captured
from kernels.torch_ops import compiled, on_current_stream

# The functions are looked up outside what is compiled: imports inside could not be traced.


@cache
def _layer_norm() -> Any:
    functional = import_module("torch.nn.functional")

    def norm(x: Any, gamma: Any, beta: Any) -> Any:
        return functional.layer_norm(x, gamma.shape, gamma, beta, _layernorm.EPSILON)

    return norm


@cache
def _rms_norm() -> Any:
    functional = import_module("torch.nn.functional")

    def norm(x: Any, gamma: Any) -> Any:
        return functional.rms_norm(x, gamma.shape, gamma, _rmsnorm.EPSILON)

    return norm


def layernorm(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """PyTorch's own kernel."""
    return captured(_layer_norm(), x, gamma, beta)


def rmsnorm(x: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """PyTorch's own kernel."""
    return captured(_rms_norm(), x, gamma)


def residual_layernorm(x: Any, residual: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """PyTorch's own kernels, one for the sum and one for the norm."""
    return captured(_add_layer_norm, x, residual, gamma, beta)


def _add_layer_norm(x: Any, residual: Any, gamma: Any, beta: Any) -> Any:
    h = x + residual
    return h, _layer_norm()(h, gamma, beta)


def layernorm_compiled(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel by `torch.compile`."""
    y = array_module(x).empty_like(x)
    return launch(on_current_stream(_compiled_layer_norm(), x, gamma, beta, y)), y


def rmsnorm_compiled(x: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel by `torch.compile`."""
    y = array_module(x).empty_like(x)
    return launch(on_current_stream(_compiled_rms_norm(), x, gamma, y)), y


def residual_layernorm_compiled(x: Any, residual: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel by `torch.compile`."""
    xp = array_module(x)
    h, y = xp.empty_like(x), xp.empty_like(x)
    return launch(on_current_stream(_compiled_add_layer_norm(), x, residual, gamma, beta, h, y)), (h, y)


def residual_rmsnorm_compiled(x: Any, residual: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel by `torch.compile`."""
    xp = array_module(x)
    h, y = xp.empty_like(x), xp.empty_like(x)
    return launch(on_current_stream(_compiled_add_rms_norm(), x, residual, gamma, h, y)), (h, y)


@cache
def _compiled_layer_norm() -> Any:
    norm = _layer_norm()

    def body(x: Any, gamma: Any, beta: Any, y: Any) -> None:
        y.copy_(norm(x, gamma, beta))

    return compiled(body)


@cache
def _compiled_rms_norm() -> Any:
    norm = _rms_norm()

    def body(x: Any, gamma: Any, y: Any) -> None:
        y.copy_(norm(x, gamma))

    return compiled(body)


@cache
def _compiled_add_layer_norm() -> Any:
    norm = _layer_norm()

    def body(x: Any, residual: Any, gamma: Any, beta: Any, h: Any, y: Any) -> None:
        total = x + residual
        h.copy_(total)
        y.copy_(norm(total, gamma, beta))

    return compiled(body)


@cache
def _compiled_add_rms_norm() -> Any:
    norm = _rms_norm()

    def body(x: Any, residual: Any, gamma: Any, h: Any, y: Any) -> None:
        total = x + residual
        h.copy_(total)
        y.copy_(norm(total, gamma))

    return compiled(body)
