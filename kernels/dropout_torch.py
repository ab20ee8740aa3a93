"""Dropout from the generator of philox.py, written in PyTorch for `torch.compile`.

PyTorch's own dropout draws other numbers, so its result could not be checked. Here every element draws for itself.
"""

from functools import cache
from importlib import import_module
from typing import Any

from kernels import philox
from kernels.dropout_steps import DROP_BELOW, KEY, SCALE
from kernels.launch import Launch, array_module, launch
from kernels.torch_ops import compiled, on_current_stream


def kept(element: Any, where: Any) -> Any:
    """Whether each element is kept: `element` is an int64 array or tensor of numbers, `where` its library's."""
    words = philox.four_words(element // philox.GROUP, KEY)
    pair = element // 2 % 4
    word = where(pair == 0, words[0], where(pair == 1, words[1], where(pair == 2, words[2], words[3])))
    return (word >> (element % 2 * 16) & 0xFFFF) >= DROP_BELOW


def dropout_relu(x: Any, **_: object) -> tuple[Launch, Any]:
    """One kernel by `torch.compile`."""
    out = array_module(x).empty_like(x)
    return launch(on_current_stream(_compiled_dropout_relu(), x, out)), out


@cache
def _compiled_dropout_relu() -> Any:
    torch = import_module("torch")

    def body(x: Any, out: Any) -> None:
        element = torch.arange(x.numel(), device=x.device)
        out.copy_(torch.where(kept(element, torch.where), torch.relu(x) * SCALE, 0.0))

    return compiled(body)
