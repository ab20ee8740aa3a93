"""The CUDA C++ itself, run on the CPU thread by thread, against the NumPy reference."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from agreement import Normal, assert_agrees, assert_close, run
from cuda_on_cpu import CpuKernels

from kernels import (
    add_mul_relu,
    bias_gelu,
    cuda_source,
    dropout_relu,
    gemm_bias_mask_relu,
    gemm_bias_relu,
    norm_scale_relu,
    philox,
    relu,
    residual_layernorm,
    softmax,
    steps,
)
from kernels.launch import launch

pytestmark = pytest.mark.usefixtures("cuda_on_cpu")

DTYPES = tuple(cuda_source.ELEMENT)
WIDTH = {dtype: cuda_source.pack_elements(dtype) for dtype in DTYPES}
FLAT = (1, 3, 8, 40, 4099, 8191)
"""Below one pack, whole packs, packs and a tail; the last two need several blocks."""

MATRIX_PACKS = ((1, 1), (3, 40), (7, 40), (9, 300), (4, 256))
"""Rows and packs a row: rows that fill no group of four, rows wider than a block."""

ROW_PACKS = (1, 20, 33, 256, 1000, 1500, 3000)
"""Packs a row for the kernels with one block a row: 1, 2 and 4 packs a thread, and idle threads."""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", FLAT)
@pytest.mark.parametrize("variant", ["steps", "fused", "fused_shared"])
def test_add_mul_relu(dtype: str, n: int, variant: str) -> None:
    normal = Normal(dtype)
    assert_agrees(add_mul_relu, variant, (normal(n), normal(n), normal(n)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", FLAT)
def test_relu(dtype: str, n: int) -> None:
    (out,) = run(relu.fused, (x := Normal(dtype)(n),))
    np.testing.assert_array_equal(out, np.maximum(x, 0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "packs"), MATRIX_PACKS)
@pytest.mark.parametrize("variant", ["steps", "fused"])
def test_norm_scale_relu(dtype: str, rows: int, packs: int, variant: str) -> None:
    normal, cols = Normal(dtype), packs * WIDTH[dtype]
    columns = (normal(cols, shift=1, scale=0.1) for _ in range(3))
    assert_agrees(norm_scale_relu, variant, (normal(rows, cols, scale=2, shift=1), *columns))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "packs"), MATRIX_PACKS)
@pytest.mark.parametrize("variant", ["steps", "fused"])
def test_bias_gelu(dtype: str, rows: int, packs: int, variant: str) -> None:
    normal, cols = Normal(dtype), packs * WIDTH[dtype]
    assert_agrees(bias_gelu, variant, (normal(rows, cols, scale=3), normal(cols)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gelu_of_large_values_is_the_value_or_zero(dtype: str) -> None:
    x = Normal(dtype)(1, WIDTH[dtype])
    x[:] = np.linspace(-60, 60, x.size)
    (out,) = run(bias_gelu.fused, (x, np.zeros_like(x[0])))
    assert_close(out, np.maximum(x.astype(np.float64), 0), 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", FLAT)
@pytest.mark.parametrize("variant", ["steps", "fused"])
def test_dropout_relu(dtype: str, n: int, variant: str) -> None:
    assert_agrees(dropout_relu, variant, (Normal(dtype)(n),))


@pytest.mark.parametrize("variant", ["steps", "fused"])
def test_dropout_keeps_the_same_elements_in_every_dtype(variant: str) -> None:
    kept = [run(getattr(dropout_relu, variant), (np.ones(5003, dtype),))[0] > 0 for dtype in DTYPES]
    np.testing.assert_array_equal(kept[0], kept[1])
    np.testing.assert_array_equal(kept[0], philox.draws(np, 5003, dropout_relu.KEY) >= dropout_relu.DROP_BELOW)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("packs", ROW_PACKS)
@pytest.mark.parametrize("variant", ["steps", "fused"])
def test_residual_layernorm(dtype: str, packs: int, variant: str) -> None:
    normal, cols = Normal(dtype), packs * WIDTH[dtype]
    rows = (normal(3, cols, shift=0.3), normal(3, cols))
    assert_agrees(residual_layernorm, variant, (*rows, normal(cols, scale=0.1, shift=1), normal(cols, scale=0.1)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", ["steps", "fused"])
def test_layernorm_of_a_constant_row_is_beta(dtype: str, variant: str) -> None:
    normal = Normal(dtype)
    two, gamma, beta = np.full((2, 64), 2, dtype), normal(64), normal(64)
    _, y = run(getattr(residual_layernorm, variant), (two, two.copy(), gamma, beta))
    np.testing.assert_array_equal(y, [beta, beta])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("packs", ROW_PACKS)
@pytest.mark.parametrize("variant", ["steps", "fused"])
def test_softmax(dtype: str, packs: int, variant: str) -> None:
    x = Normal(dtype)(4, packs * WIDTH[dtype], scale=3)
    x[0, :3] = -np.inf
    x[1] = 5
    x[2] += 60  # exp alone would overflow a half, and float32 with a little more
    x[3] = -np.inf
    assert_agrees(softmax, variant, (x,))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_widest_row_fits_and_a_wider_one_is_refused(dtype: str) -> None:
    widest = 4096 * WIDTH[dtype]
    inputs = _layernorm_inputs(dtype, widest)
    assert_agrees(residual_layernorm, "fused", inputs)
    with pytest.raises(ValueError, match=f"a row of {widest + WIDTH[dtype]} {dtype} .* the most is {widest}"):
        residual_layernorm.fused(*_layernorm_inputs(dtype, widest + WIDTH[dtype]))


def _layernorm_inputs(dtype: str, cols: int) -> tuple[Any, ...]:
    normal = Normal(dtype)
    return normal(2, cols), normal(2, cols), normal(cols), normal(cols)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", ["steps", "fused"])
def test_gemm_bias_mask_relu(dtype: str, variant: str) -> None:
    normal, cols = Normal(dtype), 5 * WIDTH[dtype]
    mask = (normal(9, cols) > -1).astype(dtype)
    factor = 5  # sums of products in an order of their own
    inputs = (normal(9, 64), normal(64, cols, scale=1 / 8), normal(cols), mask)
    assert_agrees(gemm_bias_mask_relu, variant, inputs, factor)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", ["steps", "fused"])
def test_gemm_bias_relu(dtype: str, variant: str) -> None:
    normal = Normal(dtype)
    assert_agrees(gemm_bias_relu, variant, (normal(72, 72), normal(72, 72, scale=1 / 8), normal(72)), 5)


def test_a_sum_in_bfloat16_is_rounded_to_the_nearest_even() -> None:
    ones, low = np.ones(2048, "bfloat16"), np.arange(2048, dtype=np.uint16).view("bfloat16")
    whole = np.concatenate([ones, -ones, low])
    part = np.concatenate([np.linspace(0, 2**-6, 4096), np.linspace(-1e-38, 1e-38, 2048)]).astype("bfloat16")
    out = np.empty_like(whole)
    launch(steps.flat("add", out, whole, part))()
    right = (whole.astype(np.float32) + part.astype(np.float32)).astype("bfloat16")
    np.testing.assert_array_equal(out.view(np.uint16), right.view(np.uint16))


ROW_LENGTH_MATTERS = {
    norm_scale_relu: lambda x: (x, x[0], x[0], x[0]),
    bias_gelu: lambda x: (x, x[0]),
    residual_layernorm: lambda x: (x, x, x[0], x[0]),
    softmax: lambda x: (x,),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("module", ROW_LENGTH_MATTERS)
@pytest.mark.parametrize("variant", ["steps", "fused"])
def test_rows_that_are_not_whole_packs_are_refused(dtype: str, module: ModuleType, variant: str) -> None:
    cols = 5 * WIDTH[dtype] + 1
    inputs = ROW_LENGTH_MATTERS[module](np.ones((2, cols), dtype))
    with pytest.raises(ValueError, match=rf"a row of {cols} {dtype} elements is not a multiple of {WIDTH[dtype]}"):
        getattr(module, variant)(*inputs)


def test_arrays_that_a_pointer_does_not_describe_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(8,\) is not contiguous"):
        relu.fused(np.ones(16, np.float32)[::2])
    room = np.ones(80, np.uint8)
    start = -room.ctypes.data % 16 + 4
    with pytest.raises(ValueError, match=r"shape \(8,\) is not aligned to 16 bytes"):
        relu.fused(room[start : start + 32].view(np.float32))
    with pytest.raises(ValueError, match="elements of float32, float16, bfloat16, not float64"):
        relu.fused(np.ones(8))


def test_a_launch_names_its_kernels_and_sources() -> None:
    launch, _ = residual_layernorm.fused(*_layernorm_inputs("float16", 4096))
    ((kernel, grid, block, shared_bytes),) = launch.kernels
    assert (kernel.name, grid, block, shared_bytes) == ("residual_layernorm_1", (2,), (512,), 0)
    assert "-DELEM=__half" in launch.source
    assert "residual_layernorm" in launch.source
    steps, _ = add_mul_relu.steps(*(np.ones(8, np.float32) for _ in range(3)))
    assert [use[0].name for use in steps.kernels] == ["add", "multiply", "relu_of"]
    assert steps.source.count("#include <cuda_fp16.h>") == 1, "a source shared by several kernels is named once"


PROBES = """
KERNEL left_early(T* out) {
  if (threadIdx.x >= 32) return;
  __syncthreads();
  out[threadIdx.x] = 1;
}
KERNEL diverged(T* out) {
  if (threadIdx.x % 2) __shfl_xor_sync(~0u, 1.f, 1);
  else __syncthreads();
}
KERNEL reads_shared(T* out) {
  __shared__ T unwritten[64];
  out[threadIdx.x] = unwritten[threadIdx.x];
  unwritten[threadIdx.x] = 1;
}
"""


def test_the_emulator_shows_what_a_gpu_would_hide(cpu_kernels: CpuKernels) -> None:
    text = cuda_source.Source((), {}).text + PROBES
    kernels = CpuKernels(cpu_kernels.folder, {text: ("left_early", "diverged", "reads_shared")})
    options, out = cuda_source.compile_options("float32"), np.zeros(64, np.float32)
    kernels.compiled(text, options, "left_early")((1,), (64,), (out,))
    assert list(out) == [1] * 32 + [0] * 32
    with pytest.raises(AssertionError, match="diverged: a thread waits at a barrier"):
        kernels.compiled(text, options, "diverged")((1,), (64,), (out,))
    kernels.compiled(text, options, "reads_shared")((2,), (64,), (out,))
    assert np.isnan(out).all(), "shared memory keeps nothing from block to block"
    with pytest.raises(AssertionError, match="arguments are not as the kernel declares them"):
        kernels.compiled(text, options, "left_early")((1,), (64,), (out, np.int32(1)))
