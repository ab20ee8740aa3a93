"""Comparing what a variant computes with its reference: outputs poisoned first, then every element."""

from typing import Any

import ml_dtypes  # noqa: F401 - from here on, NumPy knows a dtype by the name of bfloat16
import numpy as np

TOLERANCE = {"float64": 1e-13, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.2e-2}
"""Relative L2 error; a single error may be ten times that, relative to |reference| + rms."""

ROUNDS_EACH_STEP = 4
"""An implementation that rounds after every step is allowed this many times the error."""


def run(build: Any, inputs: tuple[Any, ...], **params: Any) -> tuple[Any, ...]:
    """Build, poison the outputs with NaN, launch twice (a second call must not depend on the first)."""
    launch, outputs = build(*inputs, **params)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    before = [array.copy() for array in inputs]
    for _ in range(2):
        for output in outputs:
            output.fill(np.nan)
        launch()
    for array, copy in zip(inputs, before, strict=True):
        assert array.tobytes() == copy.tobytes(), "an input was changed"
    return outputs


def assert_agrees(module: Any, variant: str, inputs: tuple[Any, ...], factor: float = 1, **params: Any) -> None:
    """Run a variant of an operation and compare all of its outputs with the float64 reference."""
    outputs = run(getattr(module, variant), inputs, **params)
    with np.errstate(all="ignore"):
        right = module.reference(*(array.astype(np.float64) for array in inputs), **params)
    right = right if isinstance(right, tuple) else (right,)
    assert len(outputs) == len(right)
    for output, reference in zip(outputs, right, strict=True):
        assert_close(output, reference, factor * (1 if variant.startswith("fused") else ROUNDS_EACH_STEP))


def assert_close(output: Any, reference: Any, factor: float, tolerance: float | None = None) -> None:
    assert output.shape == reference.shape
    finite = np.isfinite(reference)
    np.testing.assert_array_equal(np.isfinite(output), finite, "NaN or infinity where the reference has none")
    error = (output.astype(np.float64) - reference)[finite]
    reference = reference[finite]
    if not reference.size:
        return
    allowed = (tolerance or TOLERANCE[str(output.dtype)]) * factor
    rms = float(np.sqrt((reference**2).mean())) or 1.0
    assert float(np.sqrt((error**2).mean())) <= allowed * rms
    assert float((np.abs(error) / (np.abs(reference) + rms)).max()) <= 10 * allowed


class Normal:
    """Seeded normal arrays of one dtype, aligned as a GPU's allocator aligns them."""

    def __init__(self, dtype: str, seed: int = 1) -> None:
        self.dtype = np.dtype(dtype)
        self._generator = np.random.default_rng(seed)

    def __call__(self, *shape: int, scale: float = 1, shift: float = 0) -> Any:
        return aligned(self._generator.standard_normal(shape) * scale + shift, self.dtype)


def aligned(values: Any, dtype: Any) -> Any:
    """A copy of `values` at an address that is a multiple of 64."""
    dtype = np.dtype(dtype)
    room = np.empty(values.size * dtype.itemsize + 64, np.uint8)
    start = -room.ctypes.data % 64
    array = room[start : start + values.size * dtype.itemsize].view(dtype).reshape(values.shape)
    array[...] = values
    return array
