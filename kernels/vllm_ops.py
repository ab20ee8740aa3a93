"""vLLM's own CUDA operators, called outside its engine, for variants declared with `requires=["torch", "vllm"]`.

Importing `vllm._custom_ops` loads them into PyTorch as `torch.ops._C`. What is called here:
`rms_norm(out, input, weight, epsilon)` and `silu_and_mul(out, input)`, where a row of `input` is the gate and then the
other factor (https://github.com/vllm-project/vllm). Its `fused_add_rms_norm` has no variant: it overwrites its inputs.
"""

from importlib import import_module
from typing import Any

from kernels.launch import Launch, array_module, launch
from kernels.rmsnorm import EPSILON
from kernels.torch_ops import on_current_stream

WIDTH = 4096
"""Elements of a row into which flat arrays are cut for `silu_and_mul`, which gives each row to one block."""


def rmsnorm(x: Any, gamma: Any, **_: object) -> tuple[Launch, Any]:
    """`rms_norm` of x, see rmsnorm.py; it rounds the normed row before it multiplies by gamma."""
    if gamma.dtype != x.dtype:
        raise ValueError(f"gamma is {gamma.dtype}; vLLM's rms_norm wants it as x is, {x.dtype}")
    norm = import_module("vllm._custom_ops").rms_norm

    def body(x: Any, gamma: Any, out: Any) -> None:
        norm(out, x, gamma, EPSILON)

    out = array_module(x).empty_like(x)
    return launch(on_current_stream(body, x, gamma, out)), out


def silu_mul(x: Any, y: Any, **_: object) -> tuple[Launch, Any]:
    """`silu_and_mul`, see silu_mul.py; x and y lie in one array, as its users have them, which is made beforehand."""
    rows, rest = divmod(x.size, WIDTH)
    if rest or y.shape != x.shape:
        raise ValueError(
            f"x and y have shapes {x.shape} and {y.shape}; they must be equal and a multiple of {WIDTH} long"
        )
    import_module("vllm._custom_ops")
    multiply = import_module("torch").ops._C.silu_and_mul  # noqa: SLF001 - its name at vLLM's

    def body(joined: Any, out: Any) -> None:
        multiply(out, joined)

    xp = array_module(x)
    joined, out = xp.empty((rows, 2 * WIDTH), x.dtype), xp.empty_like(x)
    joined[:, :WIDTH], joined[:, WIDTH:] = x.reshape(rows, WIDTH), y.reshape(rows, WIDTH)
    return launch(on_current_stream(body, joined, out.reshape(rows, WIDTH))), out
