"""The traffic models of norms, softmax and embeddings, in numbers counted by hand."""

from kernels import (
    batchnorm_inference,
    batchnorm_training,
    embedding_dropout,
    layernorm,
    masked_softmax,
    residual_layernorm,
    residual_rmsnorm,
    rmsnorm,
    softmax,
)


def test_norms_of_10_rows_of_100_halves() -> None:
    # a matrix is 2000 bytes, a column vector 200, a float a row 40
    counts = layernorm.traffic(dtype="float16", rows=10, cols=100)
    assert (counts["reads"], counts["writes"]) == (2_400, 2_000)
    assert counts["moved"]["steps"] == counts["moved"]["unfused"] == 12 * 2_000 + 2 * 200 + 2 * 40
    assert counts["moved"]["fused"] == 4_400
    assert counts["moved"]["fused_multipass"] == 6_400, "the row is read twice"
    counts = rmsnorm.traffic(dtype="bfloat16", rows=10, cols=100)
    assert (counts["reads"], counts["writes"]) == (2_200, 2_000)
    assert counts["moved"]["steps"] == 7 * 2_000 + 200 + 40
    assert counts["moved"]["fused"] == 4_200
    counts = residual_rmsnorm.traffic(dtype="bfloat16", rows=10, cols=100)
    assert (counts["reads"], counts["writes"]) == (4_200, 4_000)
    assert counts["moved"]["steps"] == 10 * 2_000 + 200 + 40
    assert counts["moved"]["fused"] == 8_200


def test_pytorch_writes_a_residual_sum_and_reads_it_again() -> None:
    moved = residual_layernorm.traffic(dtype="float16", rows=10, cols=100)["moved"]
    assert moved["torch"] - moved["torch_compile"] == 2_000


def test_softmax_that_reads_twice_counts_it() -> None:
    moved = softmax.traffic(dtype="float32", rows=10, cols=100)["moved"]
    assert moved["fused"] == moved["fused_cluster"] == 8_000
    assert moved["fused_online"] == moved["fused_split"] == 12_000


def test_masked_softmax_of_3_heads_of_10_queries_and_100_keys() -> None:
    # the scores are 6000 bytes, the mask 2000, a float a row 120
    counts = masked_softmax.traffic(dtype="float16", heads=3, queries=10, keys=100)
    assert (counts["reads"], counts["writes"]) == (8_000, 6_000)
    assert counts["moved"]["steps"] == 12 * 6_000 + 2_000 + 2 * 120
    assert counts["moved"]["fused"] == 14_000


def test_batch_norm_of_2_images_of_3_channels_of_100_pixels() -> None:
    # the images are 1200 bytes, a float a channel 12
    counts = batchnorm_inference.traffic(dtype="float16", batch=2, channels=3, pixels=100)
    assert (counts["reads"], counts["writes"]) == (1_248, 1_200)
    assert counts["moved"]["steps"] == 8 * 1_200 + 48
    assert counts["moved"]["fused"] == 2_448
    counts = batchnorm_training.traffic(dtype="float16", batch=2, channels=3, pixels=100)
    assert (counts["reads"], counts["writes"]) == (1_224, 1_224)
    assert counts["moved"]["steps"] == 12 * 1_200 + 48
    assert (counts["moved"]["fused"], counts["moved"]["fused_cluster"]) == (3_648, 2_448)


def test_an_embedding_reads_each_distinct_row_once() -> None:
    # 10 tokens of 100 halves: 1000 elements, 40 bytes of ids; a row is 200 bytes
    counts = embedding_dropout.traffic(dtype="float16", tokens=10, distinct=4, cols=100)
    assert (counts["reads"], counts["writes"]) == (840, 2_000)
    assert counts["moved"]["fused"] == 2_840
    # the gather writes 2000; numbers 4 written and read, mask 1 written and read, masking and scaling 4 x 2
    assert counts["moved"]["steps"] == 840 + 2_000 + 1_000 * (4 + 4 + 1 + 1 + 8)
    apart = embedding_dropout.traffic(dtype="float16", tokens=10, distinct=10, cols=100)
    assert (apart["moved"]["steps"] - 2_040 - 2_000) / 1_000 == 18
