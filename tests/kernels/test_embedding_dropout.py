"""An embedding with dropout on the CPU: tokens that fill no group of two, repeated ones, rows wider than a block."""

from typing import Any

import numpy as np
import pytest
from agreement import Normal, aligned, run

from kernels import dropout_relu, embedding_dropout
from kernels.cuda_source import pack_elements

pytestmark = pytest.mark.usefixtures("cuda_on_cpu")


def inputs(dtype: str, tokens: int, packs: int) -> tuple[Any, ...]:
    table = Normal(dtype)(11, packs * pack_elements(dtype))
    return table, aligned(np.random.default_rng(3).integers(0, 11, tokens), np.int32)


@pytest.mark.parametrize(
    ("dtype", "tokens", "packs"), [("float32", 1, 1), ("float32", 7, 33), ("float16", 4, 300), ("float16", 5, 3)]
)
@pytest.mark.parametrize("variant", ["steps", "fused"])
def test_embedding_dropout(dtype: str, tokens: int, packs: int, variant: str) -> None:
    table, ids = inputs(dtype, tokens, packs)
    (out,) = run(getattr(embedding_dropout, variant), (table, ids))
    right = embedding_dropout.reference(table.astype(np.float64), ids)
    tolerance = {"float32": 2e-7, "float16": 1e-3}[dtype]
    np.testing.assert_allclose(out.astype(np.float64), right, rtol=tolerance)


def test_elements_are_dropped_as_by_dropout_alone() -> None:
    table, ids = inputs("float16", 6, 5)
    (out,) = run(embedding_dropout.fused, (np.ones_like(table), ids))
    (alone,) = run(dropout_relu.fused, (np.ones(out.size, np.float16),))
    np.testing.assert_array_equal(out.reshape(-1), alone)


def test_rows_that_are_not_whole_packs_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match="a row of 12 float16 elements is not a multiple of 8"):
        embedding_dropout.fused(np.ones((4, 12), np.float16), np.zeros(4, np.int32))
