"""Normalisation over rows and over channels."""

from typing import Any

from kernels import (
    batchnorm_inference,
    batchnorm_torch,
    batchnorm_training,
    layernorm,
    norm_cudnn,
    norm_liger,
    norm_torch,
    residual_rmsnorm,
    rmsnorm,
    vllm_ops,
)
from kernels import residual_layernorm as add_layernorm
from perftrack.declare import Variant, benchmark, variant


def _gain(rng: Any, like: Any, cols: int) -> Any:
    """Factors around 1, rounded to the dtype of `like` (sums of bfloat16 and Python's numbers may be float32)."""
    return (rng.uniform(cols, "float32") + 0.5).astype(like.dtype)


@benchmark(
    variants={
        "unfused": variant(add_layernorm.unfused, tolerance=4),
        "steps": variant(cuda=add_layernorm.steps, tolerance=4),
        "fused": variant(cuda=add_layernorm.fused, cpu=add_layernorm.fused_cpu, requires={"cpu": ["numba"]}),
        "torch": variant(cuda=norm_torch.residual_layernorm, requires=["torch"]),
        "torch_compile": variant(cuda=norm_torch.residual_layernorm_compiled, requires=["torch"]),
    },
    reference=add_layernorm.reference,
    axes={
        "cuda": [
            {"dtype": ["float32"], "rows": [16384], "cols": [4096]},
            {"dtype": ["float16", "bfloat16"], "rows": [32768], "cols": [4096]},
        ],
        "cpu": {"dtype": ["float32"], "rows": [512], "cols": [2048]},
    },
    traffic=add_layernorm.traffic,
)
def residual_layernorm(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """Layer normalisation of x plus a residual; the sum is an output too."""
    x, residual = rng.normal((rows, cols), dtype), rng.normal((rows, cols), dtype)
    return x, residual, _gain(rng, x, cols), rng.normal(cols, dtype)


def _layer_norm_inputs(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    x = rng.normal((rows, cols), dtype) * 2 + 1
    return x, _gain(rng, x, cols), rng.normal(cols, dtype)


@benchmark(
    variants={
        "unfused": variant(layernorm.unfused, tolerance=4),
        "steps": variant(cuda=layernorm.steps, tolerance=4),
        "fused": variant(cuda=layernorm.fused),
        "torch": variant(cuda=norm_torch.layernorm, requires=["torch"]),
        "torch_compile": variant(cuda=norm_torch.layernorm_compiled, requires=["torch"]),
        "liger": variant(cuda=norm_liger.layernorm, requires=["torch", "liger_kernel"]),
        "cudnn": variant(cuda=norm_cudnn.layernorm, requires=["torch", "cudnn"]),
    },
    reference=layernorm.reference,
    axes={"cuda": {"dtype": ["float16", "bfloat16"], "rows": [32768], "cols": [4096]}},
    traffic=layernorm.traffic,
)
def layer_norm(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """Layer normalisation of x."""
    return _layer_norm_inputs(rng, dtype, rows, cols)


@benchmark(
    variants={
        "unfused": variant(layernorm.unfused, tolerance=4),
        "steps": variant(cuda=layernorm.steps, tolerance=4),
        "fused": variant(cuda=layernorm.fused),
    },
    reference=layernorm.reference,
    axes={"cuda": {"dtype": ["float32"], "rows": [8], "cols": [768]}},
    traffic=layernorm.traffic,
)
def layer_norm_small(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """Layer normalisation of a few rows: the time is that of launching."""
    return _layer_norm_inputs(rng, dtype, rows, cols)


@benchmark(
    variants={
        "unfused": variant(layernorm.unfused, tolerance=4),
        "steps": variant(cuda=layernorm.steps, tolerance=4),
        "fused": variant(cuda=layernorm.fused),
        "fused_multipass": variant(cuda=layernorm.fused_multipass),
        "fused_cluster": variant(cuda=layernorm.fused_cluster, requires=["sm_90"]),
        "torch": variant(cuda=norm_torch.layernorm, requires=["torch"]),
        "torch_compile": variant(cuda=norm_torch.layernorm_compiled, requires=["torch"]),
    },
    reference=layernorm.reference,
    axes={"cuda": {"dtype": ["float16"], "rows": [4096], "cols": [65536, 131072]}},
    traffic=layernorm.traffic,
)
def layer_norm_wide(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """Layer normalisation of rows too long for the registers of a block."""
    return _layer_norm_inputs(rng, dtype, rows, cols)


def _rms_norm_variants() -> dict[str, Variant]:
    return {
        "unfused": variant(rmsnorm.unfused, tolerance=4),
        "steps": variant(cuda=rmsnorm.steps, tolerance=4),
        "fused": variant(cuda=rmsnorm.fused),
        "torch": variant(cuda=norm_torch.rmsnorm, requires=["torch"]),
        "torch_compile": variant(cuda=norm_torch.rmsnorm_compiled, requires=["torch"]),
        "liger": variant(cuda=norm_liger.rmsnorm, requires=["torch", "liger_kernel"]),
        "cudnn": variant(cuda=norm_cudnn.rmsnorm, requires=["torch", "cudnn"]),
        "vllm": variant(cuda=vllm_ops.rmsnorm, requires=["torch", "vllm"], tolerance=4),
    }


@benchmark(
    variants=_rms_norm_variants(),
    reference=rmsnorm.reference,
    axes={
        "cuda": [
            {"dtype": ["float32"], "rows": [16384], "cols": [4096]},
            {"dtype": ["bfloat16"], "rows": [32768], "cols": [4096]},
        ]
    },
    traffic=rmsnorm.traffic,
)
def rms_norm(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """RMS normalisation of x."""
    x = rng.normal((rows, cols), dtype)
    return x, _gain(rng, x, cols)


@benchmark(
    variants=_rms_norm_variants(),
    reference=rmsnorm.reference,
    axes={"cuda": {"dtype": ["bfloat16"], "rows": [1048576], "cols": [128]}},
    traffic=rmsnorm.traffic,
)
def rms_norm_heads(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """RMS normalisation of many short rows, as of the heads of queries and keys."""
    x = rng.normal((rows, cols), dtype)
    return x, _gain(rng, x, cols)


@benchmark(
    variants={
        "unfused": variant(residual_rmsnorm.unfused, tolerance=4),
        "steps": variant(cuda=residual_rmsnorm.steps, tolerance=4),
        "fused": variant(cuda=residual_rmsnorm.fused),
        "torch_compile": variant(cuda=norm_torch.residual_rmsnorm_compiled, requires=["torch"]),
        "liger": variant(cuda=norm_liger.residual_rmsnorm, requires=["torch", "liger_kernel"]),
    },
    reference=residual_rmsnorm.reference,
    axes={"cuda": {"dtype": ["float16", "bfloat16"], "rows": [32768], "cols": [4096]}},
    traffic=residual_rmsnorm.traffic,
)
def residual_rms_norm(rng: Any, dtype: str, rows: int, cols: int) -> Any:
    """RMS normalisation of x plus a residual; the sum is an output too."""
    x, residual = rng.normal((rows, cols), dtype), rng.normal((rows, cols), dtype)
    return x, residual, _gain(rng, x, cols)


def _sizes(images: str) -> tuple[int, int, int, int]:
    batch, channels, height, width = map(int, images.split("x"))
    return batch, channels, height, width


def _image_traffic(of: Any) -> Any:
    def traffic(*, dtype: str, images: str) -> dict[str, Any]:
        batch, channels, height, width = _sizes(images)
        return of(dtype=dtype, batch=batch, channels=channels, pixels=height * width)

    return traffic


@benchmark(
    variants={
        "unfused": variant(batchnorm_inference.unfused, tolerance=4),
        "steps": variant(cuda=batchnorm_inference.steps, tolerance=4),
        "fused": variant(cuda=batchnorm_inference.fused),
        "torch": variant(cuda=batchnorm_torch.inference, requires=["torch"]),
        "torch_compile": variant(cuda=batchnorm_torch.inference_compiled, requires=["torch"]),
    },
    reference=batchnorm_inference.reference,
    axes={"cuda": {"dtype": ["float16"], "images": ["128x256x56x56"]}},
    traffic=_image_traffic(batchnorm_inference.traffic),
)
def batch_norm_inference(rng: Any, dtype: str, images: str) -> Any:
    """Batch normalisation of images with known statistics; they are batch x channels x height x width."""
    sizes = _sizes(images)
    channels = sizes[1]
    mean, beta = (rng.normal(channels, "float32") for _ in range(2))
    variance, gamma = (rng.uniform(channels, "float32") + 0.5 for _ in range(2))
    return rng.normal(sizes, dtype), mean, variance, gamma, beta


@benchmark(
    variants={
        "unfused": variant(batchnorm_training.unfused, tolerance=4),
        "steps": variant(cuda=batchnorm_training.steps, tolerance=4),
        "fused": variant(cuda=batchnorm_training.fused),
        "fused_cluster": variant(cuda=batchnorm_training.fused_cluster, requires=["sm_90"]),
        "torch": variant(cuda=batchnorm_torch.training, requires=["torch"]),
        "torch_compile": variant(cuda=batchnorm_torch.training_compiled, requires=["torch"]),
    },
    reference=batchnorm_training.reference,
    axes={"cuda": {"dtype": ["float32", "float16"], "images": ["128x256x56x56"]}},
    traffic=_image_traffic(batchnorm_training.traffic),
)
def batch_norm_training(rng: Any, dtype: str, images: str) -> Any:
    """Batch normalisation of images with their own statistics, which are outputs too."""
    sizes = _sizes(images)
    channels = sizes[1]
    # a mean near zero would have a large relative error in any float32 sum
    return rng.normal(sizes, dtype) + 1, rng.uniform(channels, "float32") + 0.5, rng.normal(channels, "float32")
