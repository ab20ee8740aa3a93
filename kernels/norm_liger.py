"""Normalisation of rows by the Triton kernels of the Liger project (`liger_kernel`), through its functions."""

from functools import partial
from importlib import import_module
from typing import Any

from kernels import layernorm as _layernorm
from kernels import rmsnorm as _rmsnorm
from kernels.launch import Launch
from kernels.torch_graph import captured


def layernorm(x: Any, gamma: Any, beta: Any, **_: object) -> tuple[Launch, Any]:
    """`liger_layer_norm`."""
    return captured(partial(_function("liger_layer_norm"), eps=_layernorm.EPSILON), x, gamma, beta)


def rmsnorm(x: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """`liger_rms_norm`."""
    return captured(partial(_function("liger_rms_norm"), eps=_rmsnorm.EPSILON), x, gamma)


def residual_rmsnorm(x: Any, residual: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """`liger_fused_add_rms_norm`, which returns the norm first."""
    both, (y, h) = captured(partial(_function("liger_fused_add_rms_norm"), eps=_rmsnorm.EPSILON), x, residual, gamma)
    return both, (h, y)


def _function(name: str) -> Any:
    return getattr(import_module("liger_kernel.transformers.functional"), name)
