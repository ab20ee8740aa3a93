"""The CUDA sources of the kernels, by the module that owns them."""

from kernels import add_mul_relu as _add_mul_relu
from kernels import bias_gelu as _bias_gelu
from kernels import dropout_relu as _dropout_relu
from kernels import gemm_bias_mask_relu as _gemm_bias_mask_relu
from kernels import norm_scale_relu as _norm_scale_relu
from kernels import residual_layernorm as _residual_layernorm
from kernels import softmax as _softmax
from kernels import steps as _steps
from kernels.cuda_source import Source

SOURCES: dict[str, Source] = {
    "steps": _steps.SOURCE,
    "add_mul_relu": _add_mul_relu.SOURCE,
    "norm_scale_relu": _norm_scale_relu.SOURCE,
    "bias_gelu": _bias_gelu.SOURCE,
    "dropout_relu": _dropout_relu.SOURCE,
    "residual_layernorm": _residual_layernorm.SOURCE,
    "softmax": _softmax.SOURCE,
    "gemm_epilogue": _gemm_bias_mask_relu.EPILOGUE,
}
