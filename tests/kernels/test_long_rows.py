"""Rows of every length on the CPU: some lanes of a warp, a block, its shared memory, several blocks, several reads."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from agreement import Normal, assert_agrees, run

from kernels import cuda_source, layernorm, masked_softmax, residual_layernorm, residual_rmsnorm, rmsnorm, softmax

pytestmark = pytest.mark.usefixtures("cuda_on_cpu")

WIDTH = {dtype: cuda_source.pack_elements(dtype) for dtype in cuda_source.ELEMENT}

SHORT = (
    *(("float32", packs, rows) for packs, rows in ((1, 1), (20, 7), (33, 9))),
    *(("float16", packs, rows) for packs, rows in ((16, 17), (128, 9), (129, 2))),
    ("bfloat16", 65, 3),
)
"""Rows of one pack, one row, rows that fill no block, and the first length that takes one."""


NORMS = {
    layernorm: ("float32", "float16", "bfloat16"),
    residual_layernorm: ("float32", "float16", "bfloat16"),
    rmsnorm: ("float32", "bfloat16"),
    residual_rmsnorm: ("float16", "bfloat16"),
}
"""The dtypes that the suites declare, whose compilation is shared."""


def strange_rows(dtype: str, packs: int, rows: int) -> Any:
    """Rows that a careless softmax gets wrong: some and only -inf, all the same, large, and NaN."""
    x = Normal(dtype)(rows, packs * WIDTH[dtype], scale=3)
    x[0, :3] = -np.inf
    x[1 % rows] = 5
    x[2 % rows] += 60  # exp alone would overflow a half, and float32 with a little more
    x[3 % rows] = -np.inf
    x[4 % rows, -1] = np.nan
    return x


@pytest.mark.parametrize(("dtype", "packs", "rows"), SHORT)
def test_softmax_of_short_rows(dtype: str, packs: int, rows: int) -> None:
    assert_agrees(softmax, "fused", (strange_rows(dtype, packs, rows),))


@pytest.mark.parametrize(
    ("variant", "dtype", "packs", "rows"),
    [
        ("fused", "float32", 2049, 5),
        ("fused", "bfloat16", 2100, 2),
        ("fused_online", "float32", 1, 5),
        ("fused_online", "float16", 5001, 2),
        ("fused_split", "float32", 1025, 5),
        ("fused_split", "bfloat16", 2049, 1),
        ("fused_cluster", "float16", 1, 5),
        ("fused_cluster", "bfloat16", 4101, 2),
        ("fused_cluster", "float32", 8200, 2),
        ("fused_cluster", "float32", 16390, 1),
        ("steps", "float16", 4097, 2),
    ],
)
def test_softmax_of_long_rows(variant: str, dtype: str, packs: int, rows: int) -> None:
    assert_agrees(softmax, variant, (strange_rows(dtype, packs, rows),))


def norm_inputs(module: ModuleType, dtype: str, rows: int, packs: int) -> tuple[Any, ...]:
    """x, residual where there is one, gamma, beta where there is one; the mean is not small beside the deviation."""
    normal, cols = Normal(dtype), packs * WIDTH[dtype]
    x, residual = normal(rows, cols, shift=4), normal(rows, cols)
    gamma, beta = normal(cols, scale=0.1, shift=1), normal(cols, scale=0.1)
    return {
        layernorm: (x, gamma, beta),
        residual_layernorm: (x, residual, gamma, beta),
        rmsnorm: (x, gamma),
        residual_rmsnorm: (x, residual, gamma),
    }[module]


@pytest.mark.parametrize(
    ("module", "dtype", "packs", "rows"),
    [(module, *case) for module, dtypes in NORMS.items() for case in SHORT if case[0] in dtypes],
)
def test_norms(module: ModuleType, dtype: str, packs: int, rows: int) -> None:
    assert_agrees(module, "fused", norm_inputs(module, dtype, rows, packs))


@pytest.mark.parametrize("module", [layernorm, rmsnorm, residual_rmsnorm])
@pytest.mark.parametrize("variant", ["unfused", "steps"])
def test_norms_step_by_step(module: ModuleType, variant: str) -> None:
    assert_agrees(module, variant, norm_inputs(module, "bfloat16", 5, 40))


@pytest.mark.parametrize(
    ("variant", "dtype", "packs", "rows"),
    [
        ("fused", "float16", 2050, 2),
        ("fused", "float32", 2049, 1),
        ("fused_cluster", "float16", 1, 5),
        ("fused_cluster", "bfloat16", 4096, 14),
        ("fused_cluster", "float16", 4100, 1),
        ("fused_cluster", "float32", 8205, 9),
        ("fused_cluster", "float16", 16384, 5),
        ("fused_multipass", "float32", 2, 3),
        ("fused_multipass", "float16", 4100, 1),
        ("steps", "float16", 4097, 2),
    ],
)
def test_layernorm_of_long_rows(variant: str, dtype: str, packs: int, rows: int) -> None:
    assert_agrees(layernorm, variant, norm_inputs(layernorm, dtype, rows, packs))


@pytest.mark.parametrize("variant", ["fused", "fused_multipass", "fused_cluster"])
def test_layernorm_of_values_far_from_zero_keeps_their_deviation(variant: str) -> None:
    x = Normal("float32")(2, 512, shift=300)
    assert_agrees(layernorm, variant, (x, np.ones(512, np.float32), np.zeros(512, np.float32)), factor=50)


@pytest.mark.parametrize(
    ("dtype", "heads", "queries", "packs"),
    [("bfloat16", 1, 1, 1), ("float16", 3, 5, 16), ("bfloat16", 7, 2, 100), ("float16", 2, 3, 200)],
)
@pytest.mark.parametrize("variant", ["unfused", "steps", "fused"])
def test_masked_softmax(dtype: str, heads: int, queries: int, packs: int, variant: str) -> None:
    normal, keys = Normal(dtype), packs * WIDTH[dtype]
    mask = normal(queries, keys)
    mask[np.arange(keys) > np.arange(queries)[:, None] + 1] = -np.inf
    assert_agrees(masked_softmax, variant, (normal(heads, queries, keys, scale=3), mask))


def test_a_wholly_masked_row_is_nan_and_others_are_not() -> None:
    x, mask = np.ones((1, 2, 8), np.float16), np.zeros((2, 8), np.float16)
    mask[1] = -np.inf
    (out,) = run(masked_softmax.fused, (x, mask))
    np.testing.assert_array_equal(out[0, 0], [0.125] * 8)
    assert np.isnan(out[0, 1]).all()


def columns(count: int, dtype: str = "float32") -> Any:
    return np.zeros((1, count), dtype)


REFUSED: tuple[tuple[Callable[..., Any], tuple[Any, ...], str], ...] = (
    (softmax.fused, (columns(1),), "a row of 1 float32 elements is not a multiple of 4 .* pad the rows"),
    (softmax.fused_online, (columns(0),), "a row of 0 float32 elements is not a multiple of 4"),
    (softmax.fused, (columns(66052),), "66052 float32 elements are too many; one block holds at most 66048 on"),
    (softmax.fused_cluster, (columns(528388),), "528388 float32 .*; 8 blocks hold at most 528384 on this card"),
    (layernorm.fused_cluster, (columns(65540),) * 3, "65540 float32 .*; 8 blocks hold at most 65536"),
    (layernorm.fused, (columns(3, "float16"),) * 3, "a row of 3 float16 elements is not a multiple of 8"),
    (rmsnorm.fused, (columns(16388), columns(16388)[0]), "a row of 16388 .*registers; the most is 16384"),
    (
        masked_softmax.fused,
        (np.zeros((1, 1, 8196), np.float32), columns(8196)),
        "a row of 8196 float32 elements and its mask do not fit in registers; the most is 8192",
    ),
)


@pytest.mark.parametrize(("build", "inputs", "message"), REFUSED)
def test_rows_that_do_not_fit_are_refused_in_words(
    build: Callable[..., Any], inputs: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        build(*inputs)


def test_clusters_that_take_all_rows_are_no_more_than_run_at_once() -> None:
    gamma = np.ones(65536, np.float16)
    for rows, clusters in ((1, 1), (3, 2), (1000, 2)):
        launch, _ = layernorm.fused_cluster(np.zeros((rows, 65536), np.float16), gamma, gamma)
        ((kernel, grid, block, shared_bytes),) = launch.kernels
        assert (kernel.name, grid, block) == ("layernorm_cluster_4", (4 * clusters,), (512,))
        assert shared_bytes == 192 * 1024, "two teams with two slots of a quarter of a row, gamma and beta"


def test_a_launch_lists_its_dynamic_shared_memory() -> None:
    launch, _ = softmax.fused(np.zeros((3, 66048), np.float32))
    ((kernel, grid, block, shared_bytes),) = launch.kernels
    assert (kernel.name, grid, block) == ("softmax_held", (3,), (512,))
    assert shared_bytes == 66048 * 4 - 512 * 4 * 16
    assert kernel.max_dynamic_shared_size_bytes >= shared_bytes, "more than 48 KiB must be allowed first"
