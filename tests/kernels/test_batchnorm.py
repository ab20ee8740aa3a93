"""Batch normalisation of images on the CPU: planes that cross blocks, one image, one channel, one pack."""

from typing import Any

import numpy as np
import pytest
from agreement import Normal, assert_agrees, run

from kernels import batchnorm_inference, batchnorm_training

pytestmark = pytest.mark.usefixtures("cuda_on_cpu")

SHAPES = (("float32", 1, 1, 2, 2), ("float16", 3, 5, 4, 6), ("float32", 2, 3, 8, 8), ("float32", 5, 2, 58, 74))
"""The last: channels of more packs than a block of the two-kernel form takes."""


def images(dtype: str, *shape: int) -> Any:
    return Normal(dtype)(*shape, scale=2, shift=3)


def vectors(channels: int, count: int) -> list[Any]:
    normal = Normal("float32", seed=2)
    return [abs(normal(channels, scale=0.3, shift=1)) + np.float32(0.1) for _ in range(count)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("variant", ["unfused", "steps", "fused"])
def test_inference(shape: tuple[Any, ...], variant: str) -> None:
    assert_agrees(batchnorm_inference, variant, (images(*shape), *vectors(shape[2], 4)))


@pytest.mark.parametrize(
    ("variant", "shape"),
    [
        *(("fused", shape) for shape in SHAPES),
        *(("fused_cluster", shape) for shape in (SHAPES[0], ("float16", 3, 2, 4, 6), SHAPES[-1])),
        # of few values to a channel, squares rounded to 16 bits would not average out
        *((variant, shape) for variant in ("unfused", "steps") for shape in SHAPES if shape[0] == "float32"),
    ],
)
def test_training(variant: str, shape: tuple[Any, ...]) -> None:
    assert_agrees(batchnorm_training, variant, (images(*shape), *vectors(shape[2], 2)), factor=2)


@pytest.mark.parametrize("variant", ["fused", "fused_cluster"])
def test_statistics_of_values_far_from_zero(variant: str) -> None:
    x = Normal("float32")(4, 2, 16, 16, shift=1000)
    _, mean, rstd = run(getattr(batchnorm_training, variant), (x, *vectors(2, 2)))
    exact = x.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(axis=(0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(rstd, 1 / np.sqrt(exact.var(axis=(0, 2, 3)) + 1e-5), rtol=1e-4)


def test_planes_that_are_not_whole_packs_are_refused_in_words() -> None:
    x, of_channels = np.ones((1, 1, 7, 7), np.float16), vectors(4, 4)
    with pytest.raises(ValueError, match="a row of 49 float16 elements is not a multiple of 8"):
        batchnorm_inference.fused(x, *of_channels)
    with pytest.raises(ValueError, match="a row of 49 float16 elements is not a multiple of 8"):
        batchnorm_training.fused(x, *of_channels[:2])


def test_a_channel_that_no_cluster_holds_is_refused_in_words() -> None:
    x = np.zeros((1, 1, 1024, 1036), np.float32)
    with pytest.raises(ValueError, match="1060864 float32 elements are too many; 16 blocks hold at most 1056768"):
        batchnorm_training.fused_cluster(x, *vectors(4, 2))
