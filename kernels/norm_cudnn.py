"""Normalisation of rows by cuDNN, through the operators for PyTorch of its Python front end (`cudnn`)."""

from functools import partial
from importlib import import_module
from typing import Any

from kernels import layernorm as _layernorm
from kernels import rmsnorm as _rmsnorm
from kernels.launch import Launch
from kernels.torch_graph import captured


def layernorm(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """`cudnn.ops.norm.layer_norm`, which wants gamma and beta in float32; the conversion is not timed."""
    norm = _function("layer_norm")

    def body(x: Any, gamma: Any, beta: Any) -> Any:
        return norm(x, tuple(gamma.shape), gamma, beta, _layernorm.EPSILON)

    return captured(body, x, gamma.astype("float32"), beta.astype("float32"))


def rmsnorm(x: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """`cudnn.ops.norm.rms_norm`."""
    return captured(partial(_function("rms_norm"), eps=_rmsnorm.EPSILON), x, gamma)


def _function(name: str) -> Any:
    return getattr(import_module("cudnn.ops.norm"), name)
