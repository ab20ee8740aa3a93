"""The traffic models, in numbers counted by hand."""

from kernels import (
    add_mul_relu,
    bias_gelu,
    dropout_relu,
    gemm_bias_mask_relu,
    gemm_bias_relu,
    norm_scale_relu,
    relu,
    residual_layernorm,
    softmax,
)


def test_add_mul_relu_of_1000_floats() -> None:
    assert add_mul_relu.traffic(dtype="float32", n=1000) == {
        "reads": 12_000,
        "writes": 4_000,
        "moved": {"unfused": 32_000, "steps": 32_000, "fused": 16_000, "fused_shared": 16_000},
        "flops": 3_000,
    }


def test_relu_moves_the_same_in_every_variant() -> None:
    counts = relu.traffic(dtype="float32", n=1000)
    assert set(counts["moved"].values()) == {8_000}
    assert counts["reads"] + counts["writes"] == 8_000


def test_columns_count_once() -> None:
    # 10 x 100 halves are 2000 bytes, a column vector is 200
    counts = norm_scale_relu.traffic(dtype="float16", rows=10, cols=100)
    assert (counts["reads"], counts["writes"]) == (2_600, 2_000)
    assert counts["moved"] == {"unfused": 16_600, "steps": 16_600, "fused": 4_600}
    counts = bias_gelu.traffic(dtype="float16", rows=10, cols=100)
    assert counts["moved"] == {"unfused": 46_200, "steps": 46_200, "fused": 4_200}


def test_dropout_moves_uniform_numbers_and_masks() -> None:
    # float16, one element: 4 written and read as uniform number, 1 written and read as mask, 3 x 2 x 2
    assert dropout_relu.traffic(dtype="float16", n=1)["moved"]["steps"] == 4 + 4 + 1 + 1 + 12
    assert dropout_relu.traffic(dtype="float32", n=2**26)["moved"]["unfused"] == 2**26 * 34
    assert dropout_relu.traffic(dtype="float32", n=2**26)["moved"]["fused"] == 2**29


def test_row_kernels_of_10_rows_of_100_floats() -> None:
    # a matrix is 4000 bytes, a column vector 400, a number a row 40
    counts = residual_layernorm.traffic(dtype="float32", rows=10, cols=100)
    assert (counts["reads"], counts["writes"]) == (8_800, 8_000)
    assert counts["moved"] == {"unfused": 60_880, "steps": 60_880, "fused": 16_800}
    counts = softmax.traffic(dtype="float32", rows=10, cols=100)
    assert (counts["reads"], counts["writes"]) == (4_000, 4_000)
    assert counts["moved"] == {"unfused": 32_080, "steps": 32_080, "fused": 8_000}


def test_products() -> None:
    # a 2x3 and w 3x4 floats: 24 + 48 bytes; result and mask 32 each, bias 16
    counts = gemm_bias_mask_relu.traffic(dtype="float32", m=2, n=4, k=3)
    assert (counts["reads"], counts["writes"], counts["flops"]) == (120, 32, 48 + 24)
    assert counts["moved"] == {"unfused": 88 + 256, "steps": 88 + 256, "fused": 88 + 128}
    counts = gemm_bias_relu.traffic(dtype="float16", n=8192)
    assert counts["flops"] == 2 * 8192**3 + 2 * 8192**2
    assert counts["moved"]["fused"] == 5 * 2**27 + 16384
