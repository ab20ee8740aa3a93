"""Attention by PyTorch's own kernels, as the variants that need PyTorch."""

from functools import partial
from importlib import import_module
from typing import Any

from kernels import torch_graph
from kernels.launch import Launch


def torch_flash(q: Any, k: Any, v: Any, *, mask: str = "none", **_: object) -> tuple[Launch, Any]:
    """`scaled_dot_product_attention` by FlashAttention."""
    return torch_graph.captured(partial(_attend, "FLASH_ATTENTION", causal=mask == "causal"), q, k, v)


def torch_cudnn(q: Any, k: Any, v: Any, *, mask: str = "none", **_: object) -> tuple[Launch, Any]:
    """`scaled_dot_product_attention` by cuDNN."""
    return torch_graph.captured(partial(_attend, "CUDNN_ATTENTION", causal=mask == "causal"), q, k, v)


def _attend(backend: str, q: Any, k: Any, v: Any, *, causal: bool) -> Any:
    choices = import_module("torch.nn.attention")
    with choices.sdpa_kernel(getattr(choices.SDPBackend, backend)):
        return import_module("torch.nn.functional").scaled_dot_product_attention(q, k, v, is_causal=causal)
