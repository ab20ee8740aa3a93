"""The traffic models, in numbers counted by hand."""

from kernels import (
    add_mul_relu,
    bias_gelu,
    chain,
    copy,
    dropout_relu,
    gelu_scale,
    gemm_bias_mask_relu,
    gemm_bias_relu,
    norm_scale_relu,
    relu,
    relu_and_scale,
    residual_layernorm,
    row_squares,
    silu_mul,
    softmax,
    tiny_chain,
)


def test_add_mul_relu_of_1000_floats() -> None:
    counts = add_mul_relu.traffic(dtype="float32", n=1000)
    assert (counts["reads"], counts["writes"], counts["flops"]) == (12_000, 4_000, 3_000)
    # TorchScript's result is copied: read and written once more
    apart, once = {"unfused": 32_000, "steps": 32_000, "torch_jit": 24_000}, 16_000
    assert counts["moved"] == apart | dict.fromkeys(counts["moved"].keys() - apart.keys(), once)
    halves = add_mul_relu.traffic(dtype="bfloat16", n=1000)
    assert halves["moved"] == {name: count // 2 for name, count in counts["moved"].items()}


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
    apart = {"unfused": 46_200, "steps": 46_200, "torch_jit": 8_200}
    assert counts["moved"] == apart | {"fused": 4_200, "torch_compile": 4_200, "tensorrt": 4_200}


def test_activations_of_1000_halves() -> None:
    counts = silu_mul.traffic(dtype="float16", n=1000)
    assert (counts["reads"], counts["writes"]) == (4_000, 2_000)
    assert counts["moved"] == {
        **dict.fromkeys(("unfused", "steps"), 24_000),
        **dict.fromkeys(("fused", "torch_compile", "vllm"), 6_000),
    }
    counts = gelu_scale.traffic(dtype="float16", n=1000)
    assert counts["moved"] == {"unfused": 46_000, "steps": 46_000, "fused": 4_000, "torch_compile": 4_000}


def test_a_chain_moves_two_arrays_a_step_and_a_graph_what_its_kernels_move() -> None:
    moved = chain.traffic(dtype="float32", n=1000, length=16)["moved"]
    assert moved == {"unfused": 128_000, "steps": 128_000, "fused": 8_000}
    graphs = tiny_chain.traffic(dtype="float32", n=1000, length=16, repeats=1)["moved"]
    assert graphs == moved | {"graph": 128_000, "fused_graph": 8_000}
    twice = tiny_chain.traffic(dtype="float32", n=1000, length=16, repeats=2)
    assert twice["moved"] == {name: 2 * count for name, count in graphs.items()}
    assert (twice["reads"], twice["writes"], twice["flops"]) == (4000, 4000, 32_000)


def test_controls_move_the_same_in_every_variant() -> None:
    for counts, both in (
        (copy.traffic(dtype="float32", n=1000), 8_000),
        (relu_and_scale.traffic(dtype="float32", n=1000, m=500), 12_000),
    ):
        assert set(counts["moved"].values()) == {both}
        assert counts["reads"] + counts["writes"] == both


def test_row_squares_of_10_rows_of_100_halves() -> None:
    # a matrix is 2000 bytes, a float a row 40
    counts = row_squares.traffic(dtype="float16", rows=10, cols=100)
    assert (counts["reads"], counts["writes"]) == (2_040, 40)
    assert counts["moved"] == {"unfused": 6_160, "steps": 6_160, "fused": 2_080, "fused_cupy": 2_160}


def test_dropout_moves_uniform_numbers_and_masks() -> None:
    # float16, one element: 4 written and read as uniform number, 1 written and read as mask, 3 x 2 x 2
    assert dropout_relu.traffic(dtype="float16", n=1)["moved"]["steps"] == 4 + 4 + 1 + 1 + 12
    assert dropout_relu.traffic(dtype="float32", n=2**26)["moved"]["unfused"] == 2**26 * 34
    assert dropout_relu.traffic(dtype="float32", n=2**26)["moved"]["fused"] == 2**29


def test_row_kernels_of_10_rows_of_100_floats() -> None:
    # a matrix is 4000 bytes, a column vector 400, a number a row 40
    counts = residual_layernorm.traffic(dtype="float32", rows=10, cols=100)
    assert (counts["reads"], counts["writes"]) == (8_800, 8_000)
    assert {"unfused": 60_880, "steps": 60_880, "fused": 16_800}.items() <= counts["moved"].items()
    counts = softmax.traffic(dtype="float32", rows=10, cols=100)
    assert (counts["reads"], counts["writes"]) == (4_000, 4_000)
    assert {"unfused": 32_080, "steps": 32_080, "fused": 8_000}.items() <= counts["moved"].items()


def test_products() -> None:
    # a 2x3 and w 3x4 floats: 24 + 48 bytes; result and mask 32 each, bias 16
    counts = gemm_bias_mask_relu.traffic(dtype="float32", m=2, n=4, k=3)
    assert (counts["reads"], counts["writes"], counts["flops"]) == (120, 32, 48 + 24)
    one, two = dict.fromkeys(("unfused", "steps"), 88 + 256), dict.fromkeys(("fused", "cublaslt", "torch"), 88 + 128)
    assert counts["moved"] == one | two
    counts = gemm_bias_relu.traffic(dtype="float16", n=8192)
    assert counts["flops"] == 2 * 8192**3 + 2 * 8192**2
    assert counts["moved"]["fused"] == 5 * 2**27 + 16384
