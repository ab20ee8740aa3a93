"""out = x over flat arrays of n elements: a control that does nothing but move memory.

Traffic in units of n elements: 2 in every variant. No variant can be faster than the others by more than its code.
"""

from functools import partial
from typing import Any

from kernels import steps as step
from kernels.dtypes import element_bytes
from kernels.launch import Launch, array_module, launch


def unfused(x: Any, **_: object) -> tuple[Launch, Any]:
    """The library's call."""
    xp = array_module(x)
    out = xp.empty_like(x)
    return launch(partial(xp.copyto, out, x)), out


def fused(x: Any, **_: object) -> tuple[Launch, Any]:
    """The one step with 16-byte accesses; also what `steps` is."""
    out = array_module(x).empty_like(x)
    return launch(step.flat("copy_of", out, x)), out


steps = fused


def reference(x: Any, **_: object) -> Any:
    """The right answer."""
    return x


def traffic(*, dtype: str, n: int) -> dict[str, Any]:
    """Bytes of one call."""
    array = n * element_bytes(dtype)
    return {"reads": array, "writes": array, "moved": dict.fromkeys(("unfused", "steps", "fused"), 2 * array)}
