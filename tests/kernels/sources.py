"""The CUDA sources of the kernels, by the module that owns them."""

from kernels import add_mul_relu as _add_mul_relu
from kernels import attention as _attention
from kernels import attention_decode as _attention_decode
from kernels import batchnorm_inference as _batchnorm_inference
from kernels import batchnorm_steps as _batchnorm_steps
from kernels import batchnorm_training as _batchnorm_training
from kernels import bias_gelu as _bias_gelu
from kernels import chain as _chain
from kernels import decoder_layer as _decoder_layer
from kernels import dropout_relu as _dropout_relu
from kernels import dropout_steps as _dropout_steps
from kernels import embedding_dropout as _embedding_dropout
from kernels import gelu_scale as _gelu_scale
from kernels import gemm_bias_mask_relu as _gemm_bias_mask_relu
from kernels import layernorm as _layernorm
from kernels import long_steps as _long_steps
from kernels import masked_softmax as _masked_softmax
from kernels import norm_scale_relu as _norm_scale_relu
from kernels import relu_and_scale as _relu_and_scale
from kernels import residual_layernorm as _residual_layernorm
from kernels import residual_rmsnorm as _residual_rmsnorm
from kernels import rmsnorm as _rmsnorm
from kernels import row_squares as _row_squares
from kernels import silu_mul as _silu_mul
from kernels import softmax as _softmax
from kernels import steps as _steps
from kernels.cuda_source import Source

SOURCES: dict[str, Source] = {
    "chain": _chain.SOURCE,
    "gelu_scale": _gelu_scale.SOURCE,
    "relu_and_scale": _relu_and_scale.SOURCE,
    "row_squares": _row_squares.SOURCE,
    "silu_mul": _silu_mul.SOURCE,
    "steps": _steps.SOURCE,
    "add_mul_relu": _add_mul_relu.SOURCE,
    "norm_scale_relu": _norm_scale_relu.SOURCE,
    "bias_gelu": _bias_gelu.SOURCE,
    "dropout_steps": _dropout_steps.SOURCE,
    "dropout_relu": _dropout_relu.SOURCE,
    "embedding_dropout": _embedding_dropout.SOURCE,
    "long_steps": _long_steps.SOURCE,
    "layernorm": _layernorm.SOURCE,
    "layernorm_long": _layernorm.LONG,
    "layernorm_cluster": _layernorm.CLUSTER,
    "residual_layernorm": _residual_layernorm.SOURCE,
    "rmsnorm": _rmsnorm.SOURCE,
    "residual_rmsnorm": _residual_rmsnorm.SOURCE,
    "batchnorm_steps": _batchnorm_steps.SOURCE,
    "batchnorm_inference": _batchnorm_inference.SOURCE,
    "batchnorm_training": _batchnorm_training.SOURCE,
    "softmax": _softmax.SOURCE,
    "softmax_long": _softmax.LONG,
    "masked_softmax": _masked_softmax.SOURCE,
    "attention": _attention.FLASH,
    "attention_softmax": _attention.SOFTMAX,
    "attention_decode": _attention_decode.SOURCE,
    "decoder_layer": _decoder_layer.SOURCE,
    "gemm_epilogue": _gemm_bias_mask_relu.EPILOGUE,
}
