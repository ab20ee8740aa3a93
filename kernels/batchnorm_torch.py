"""Batch normalisation by PyTorch: its own kernels, and what `torch.compile` makes of the same functions."""

from functools import cache
from importlib import import_module
from typing import Any

from kernels.batchnorm_steps import EPSILON
from kernels.launch import Launch, array_module, launch
from kernels.torch_graph import captured
from kernels.torch_ops import compiled, on_current_stream

# The functions are looked up outside what is compiled: imports inside could not be traced.


@cache
def _inference() -> Any:
    functional = import_module("torch.nn.functional")

    def norm(x: Any, mean: Any, variance: Any, gamma: Any, beta: Any) -> Any:
        return functional.batch_norm(x, mean, variance, gamma, beta, training=False, eps=EPSILON)

    return norm


@cache
def _training() -> Any:
    torch = import_module("torch")

    def norm(x: Any, gamma: Any, beta: Any) -> Any:
        """What `torch.nn.functional.batch_norm` does without cuDNN: y, mean, 1 / √(var + ε)."""
        return torch.native_batch_norm(x, gamma, beta, None, None, True, 0.0, EPSILON)  # noqa: FBT003 - its own order

    return norm


def inference(x: Any, mean: Any, variance: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """PyTorch's own kernel."""
    return captured(_inference(), x, mean, variance, gamma, beta)


def training(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """PyTorch's own kernels."""
    return captured(_training(), x, gamma, beta)


def inference_compiled(x: Any, mean: Any, variance: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel by `torch.compile`."""
    y = array_module(x).empty_like(x)
    return launch(on_current_stream(_compiled_inference(), x, mean, variance, gamma, beta, y)), y


def training_compiled(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """As many kernels as `torch.compile` makes."""
    xp = array_module(x)
    outputs = xp.empty_like(x), xp.empty_like(gamma), xp.empty_like(gamma)
    return launch(on_current_stream(_compiled_training(), x, gamma, beta, *outputs)), outputs


@cache
def _compiled_inference() -> Any:
    norm = _inference()

    def body(x: Any, mean: Any, variance: Any, gamma: Any, beta: Any, y: Any) -> None:
        y.copy_(norm(x, mean, variance, gamma, beta))

    return compiled(body)


@cache
def _compiled_training() -> Any:
    norm = _training()

    def body(x: Any, gamma: Any, beta: Any, y: Any, mean: Any, rstd: Any) -> None:
        made = norm(x, gamma, beta)
        y.copy_(made[0])
        mean.copy_(made[1])
        rstd.copy_(made[2])

    return compiled(body)
