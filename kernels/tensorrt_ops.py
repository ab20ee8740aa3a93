"""Operations as small networks of NVIDIA TensorRT, for variants that are declared with `requires=["tensorrt"]`.

A network of fixed shapes is built once a process; each build() gets an execution context of its own, which reads and
writes the arrays it was given, on the stream that is CuPy's then. By TensorRT's Python API of versions 10 and 11: named
tensors, `execute_async_v3`, strongly typed networks (https://docs.nvidia.com/deeplearning/tensorrt/).
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any

from kernels.launch import Launch, array_module, launch

DATA_TYPES = {"float32": "FLOAT", "float16": "HALF", "bfloat16": "BF16"}
"""Element types by name → names in `tensorrt.DataType`."""


def bias_gelu(x: Any, bias: Any, **_: object) -> tuple[Launch, Any]:
    """gelu(x + bias), see bias_gelu.py: a sum and an activation; how many kernels that makes is TensorRT's affair."""
    rows, cols = _matrix_shape(x)
    if bias.shape != (cols,) or bias.dtype != x.dtype:
        raise ValueError(f"bias is {bias.dtype} {bias.shape}; it must be {x.dtype} ({cols},), as the columns of x are")
    out = array_module(x).empty_like(x)
    return launch(_execution(_bias_gelu(rows, cols, str(x.dtype)), {"x": x, "bias": bias, "out": out})), out


def _matrix_shape(x: Any) -> tuple[int, int]:
    if str(x.dtype) not in DATA_TYPES:
        raise ValueError(f"TensorRT variants take elements of {', '.join(DATA_TYPES)}, not {x.dtype}")
    if x.ndim != 2 or not x.flags.c_contiguous:
        raise ValueError(f"x has shape {x.shape}; it must be a matrix whose rows follow each other in memory")
    rows, cols = map(int, x.shape)
    return rows, cols


@cache
def _bias_gelu(rows: int, cols: int, dtype: str) -> Any:
    def fill(trt: Any, network: Any, kind: Any) -> Any:
        x = network.add_input("x", kind, (rows, cols))
        bias = network.add_input("bias", kind, (1, cols))
        total = network.add_elementwise(x, bias, trt.ElementWiseOperation.SUM).get_output(0)
        return network.add_activation(total, trt.ActivationType.GELU_TANH).get_output(0)

    return _engine(fill, dtype)


def _engine(fill: Callable[[Any, Any, Any], Any], dtype: str) -> Any:
    """The engine of the network that `fill(tensorrt, network, data type)` describes; the tensor it returns is `out`."""
    trt = import_module("tensorrt")
    builder = trt.Builder(_logger())
    # the types of the inputs decide all others; version 11 knows nothing else and ignores the flag
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    result = fill(trt, network, getattr(trt.DataType, DATA_TYPES[dtype]))
    result.name = "out"
    network.mark_output(result)
    plan = builder.build_serialized_network(network, builder.create_builder_config())
    engine = None if plan is None else _runtime().deserialize_cuda_engine(plan)
    if engine is None:
        raise RuntimeError("TensorRT could not build the network; what it logged says why")
    return engine


@cache
def _logger() -> Any:
    logger = import_module("tensorrt").Logger
    return logger(logger.WARNING)


@cache
def _runtime() -> Any:
    """Kept, since engines live no longer than their runtime."""
    return import_module("tensorrt").Runtime(_logger())


def _execution(engine: Any, arrays: Mapping[str, Any]) -> Callable[[], None]:
    """A call that computes on these arrays, by the name of their tensors; made once already."""
    import cupy

    context = engine.create_execution_context()
    for name, array in arrays.items():
        if not context.set_tensor_address(name, array.data.ptr):
            raise RuntimeError(f"TensorRT takes no tensor {name!r} at {array.data.ptr:#x}")
    call = partial(_execute, context, cupy.cuda.get_current_stream().ptr, tuple(arrays.values()))
    call()  # the first one may load kernels, which a capture or a sample must not
    return call


def _execute(context: Any, stream: int, _kept: tuple[Any, ...]) -> None:
    """`_kept` holds the arrays whose addresses the context knows."""
    if not context.execute_async_v3(stream):
        raise RuntimeError("TensorRT did not enqueue the network; what it logged says why")
