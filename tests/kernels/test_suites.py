"""The declared suites: what they collect, and that every variant of every benchmark runs from its declaration."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_close, run

from perftrack.declare import Benchmark, collect_suite
from perftrack.measure.inputs import Rng

ROOT = Path(__file__).parents[2]
SUITES = ("controls", "dropout", "elementwise", "linear", "normalization", "softmax")
KEYS = {
    "cuda": {
        "add_mul_relu[dtype=float16,n=67108864]",
        "add_mul_relu[dtype=float32,n=67108864]",
        "bias_gelu[cols=4096,dtype=float16,rows=16384]",
        "bias_gelu[cols=4096,dtype=float32,rows=16384]",
        "control_large_gemm[dtype=float16,n=8192]",
        "control_single_op[dtype=float32,n=67108864]",
        "dropout_relu[dtype=float16,n=67108864]",
        "dropout_relu[dtype=float32,n=67108864]",
        "gemm_bias_mask_relu[dtype=float16,shape=16384x4096x512]",
        "gemm_bias_mask_relu[dtype=float16,shape=8192x4096x4096]",
        "norm_scale_relu[cols=4096,dtype=float16,rows=16384]",
        "norm_scale_relu[cols=4096,dtype=float32,rows=16384]",
        "residual_layernorm[cols=4096,dtype=float16,rows=16384]",
        "residual_layernorm[cols=4096,dtype=float32,rows=16384]",
        "softmax[cols=4096,dtype=float16,rows=16384]",
        "softmax[cols=4096,dtype=float32,rows=16384]",
    },
    "cpu": {
        "add_mul_relu[dtype=float32,n=1048576]",
        "add_mul_relu[dtype=float64,n=1048576]",
        "bias_gelu[cols=2048,dtype=float32,rows=512]",
        "control_large_gemm[dtype=float32,n=512]",
        "control_single_op[dtype=float32,n=1048576]",
        "dropout_relu[dtype=float32,n=524288]",
        "gemm_bias_mask_relu[dtype=float32,shape=512x512x256]",
        "norm_scale_relu[cols=2048,dtype=float32,rows=512]",
        "residual_layernorm[cols=2048,dtype=float32,rows=512]",
        "softmax[cols=2048,dtype=float32,rows=256]",
        "softmax[cols=2048,dtype=float64,rows=256]",
    },
}
SMALL = {"n": 72, "rows": 9, "cols": 128, "shape": "9x64x50"}
"""Values of the axes at which any variant runs at once."""


def benchmarks() -> list[tuple[str, Benchmark]]:
    return [(suite, made) for suite in SUITES for made in collect_suite(import_module(f"suites.{suite}"), suite)]


def test_no_suite_is_left_out() -> None:
    assert {path.stem for path in (ROOT / "suites").glob("*.py")} - {"__init__"} == set(SUITES)


@pytest.mark.parametrize("backend", KEYS)
def test_keys_are_what_they_were(backend: Any) -> None:
    keys = [case.key for suite, made in benchmarks() for case in made.cases(suite, backend)]
    assert len(keys) == len(set(keys))
    assert set(keys) == KEYS[backend]


def test_every_case_states_what_each_of_its_variants_moves() -> None:
    for suite, made in benchmarks():
        for backend in ("cuda", "cpu"):
            for case in made.cases(suite, backend):
                assert set(case.variants) <= set(case.traffic.moved_bytes), case.key
                assert case.variants[0] == "unfused"


@pytest.mark.parametrize(("suite", "made"), benchmarks(), ids=lambda value: getattr(value, "name", value))
@pytest.mark.usefixtures("cuda_on_cpu")
def test_every_variant_runs_from_its_declaration(suite: str, made: Benchmark) -> None:
    for backend in ("cuda", "cpu"):
        for case in made.cases(suite, backend):
            params = {axis: SMALL.get(axis, value) for axis, value in case.params.items()}
            inputs = made(Rng(np, 3), **params)
            inputs = inputs if isinstance(inputs, tuple) else (inputs,)
            assert {str(array.dtype) for array in inputs} == {params["dtype"]}
            right = made.reference(*(array.astype(np.float64) for array in inputs), **params)
            for name in case.variants:
                variant = made.variants[name]
                outputs = run(variant.builds[backend], inputs, **params)
                for output, reference in zip(outputs, right if isinstance(right, tuple) else (right,), strict=True):
                    assert_close(output, reference, variant.tolerance, made.tolerance[params["dtype"]])


WITHOUT_LIBRARIES = """
import sys
sys.modules["cupy"] = sys.modules["numba"] = None  # importing them now fails
from importlib import import_module
for name in sys.argv[1:]:
    import_module(name)
"""


def test_kernels_and_suites_import_without_cupy_and_numba() -> None:
    names = [f"kernels.{path.stem}" for path in (ROOT / "kernels").glob("*.py")]
    names += [f"suites.{suite}" for suite in SUITES]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBRARIES, *names],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
