"""The declared suites: what they collect, and that every variant of every benchmark runs from its declaration."""

import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_close, run

from perftrack.declare import Benchmark, Variant, collect_suite
from perftrack.measure.inputs import Rng

ROOT = Path(__file__).parents[2]
SUITES = (
    "attention",
    "chain",
    "controls",
    "dropout",
    "elementwise",
    "launch",
    "layer",
    "linear",
    "normalization",
    "softmax",
)
KEYS = {
    "cuda": {
        "attention[batch=4,dim=128,dtype=float16,heads=32,mask=none,seq=2048]",
        "attention[batch=4,dim=128,dtype=float16,heads=32,mask=causal,seq=2048]",
        "attention_head_64[batch=8,dim=64,dtype=bfloat16,heads=16,mask=none,seq=1024]",
        "attention_vit[batch=64,dim=64,dtype=float16,heads=12,mask=none,seq=197]",
        "attention_decode[batch=1,dim=128,dtype=float16,heads=32,keys=32768]",
        "attention_decode_batch[batch=64,dim=128,dtype=float16,heads=32,keys=1023]",
        "gemm_bias_gelu[dtype=float16,shape=16384x4096x1024]",
        "gemm_bias_gelu[dtype=bfloat16,shape=16384x4096x1024]",
        "gemm_swiglu[dtype=float16,shape=8192x5504x1024]",
        "llama_ffn_few_tokens[dtype=float16,model=llama-2-7b,tokens=16]",
        "llama_ffn[dtype=float16,model=llama-2-7b,tokens=2048]",
        "qkv_projection[dtype=float16,model=llama-2-7b,tokens=16]",
        "qkv_projection[dtype=float16,model=llama-2-7b,tokens=2048]",
        "decoder_layer[dtype=float16,model=llama-2-7b,past=1023,tokens=1]",
        "decoder_layer[dtype=float16,model=llama-2-7b,past=1023,tokens=32]",
        "add_mul_relu[dtype=float16,n=134217728]",
        "add_mul_relu[dtype=bfloat16,n=134217728]",
        "add_mul_relu[dtype=float32,n=67108864]",
        "add_mul_relu_odd[dtype=float16,n=134217725]",
        "add_mul_relu_small[dtype=float32,n=4096]",
        "bias_gelu[cols=4096,dtype=bfloat16,rows=32768]",
        "bias_gelu[cols=4096,dtype=float16,rows=32768]",
        "bias_gelu[cols=4096,dtype=float32,rows=16384]",
        "chain[dtype=float32,length=1,n=67108864]",
        "chain[dtype=float32,length=16,n=67108864]",
        "chain[dtype=float32,length=2,n=67108864]",
        "chain[dtype=float32,length=4,n=67108864]",
        "chain[dtype=float32,length=8,n=67108864]",
        "control_copy[dtype=float32,n=67108864]",
        "control_independent_ops[dtype=float32,m=50331648,n=67108864]",
        "control_large_gemm[dtype=float16,n=8192]",
        "control_single_op[dtype=float32,n=67108864]",
        "dropout_relu[dtype=bfloat16,n=134217728]",
        "dropout_relu[dtype=float16,n=134217728]",
        "dropout_relu[dtype=float32,n=67108864]",
        "embedding_dropout[cols=4096,distinct=2048,dtype=float16,tokens=32768,vocab=50304]",
        "embedding_dropout[cols=4096,distinct=32768,dtype=float16,tokens=32768,vocab=50304]",
        "gelu_scale[dtype=float16,n=134217728]",
        "gemm_bias_mask_relu[dtype=float16,shape=16384x4096x512]",
        "gemm_bias_mask_relu[dtype=float16,shape=8192x4096x4096]",
        "norm_scale_relu[cols=4096,dtype=float16,rows=32768]",
        "norm_scale_relu[cols=4096,dtype=float32,rows=16384]",
        "relu_huge[dtype=float16,n=2147483656]",
        "batch_norm_inference[dtype=float16,images=128x256x56x56]",
        "batch_norm_training[dtype=float16,images=128x256x56x56]",
        "batch_norm_training[dtype=float32,images=128x256x56x56]",
        "layer_norm[cols=4096,dtype=bfloat16,rows=32768]",
        "layer_norm[cols=4096,dtype=float16,rows=32768]",
        "layer_norm_small[cols=768,dtype=float32,rows=8]",
        "layer_norm_wide[cols=131072,dtype=float16,rows=4096]",
        "layer_norm_wide[cols=65536,dtype=float16,rows=4096]",
        "residual_layernorm[cols=4096,dtype=bfloat16,rows=32768]",
        "residual_layernorm[cols=4096,dtype=float16,rows=32768]",
        "residual_layernorm[cols=4096,dtype=float32,rows=16384]",
        "residual_rms_norm[cols=4096,dtype=bfloat16,rows=32768]",
        "residual_rms_norm[cols=4096,dtype=float16,rows=32768]",
        "rms_norm[cols=4096,dtype=bfloat16,rows=32768]",
        "rms_norm[cols=4096,dtype=float32,rows=16384]",
        "rms_norm_heads[cols=128,dtype=bfloat16,rows=1048576]",
        "row_square_sums[cols=4096,dtype=float32,rows=16384]",
        "silu_mul[dtype=bfloat16,n=134217728]",
        "masked_softmax[dtype=bfloat16,scores=32x2048x2048]",
        "masked_softmax[dtype=float16,scores=32x2048x2048]",
        "softmax[cols=4096,dtype=bfloat16,rows=32768]",
        "softmax[cols=4096,dtype=float16,rows=32768]",
        "softmax[cols=4096,dtype=float32,rows=16384]",
        "softmax_narrow[cols=1024,dtype=float16,rows=524288]",
        "softmax_narrow[cols=128,dtype=float16,rows=1048576]",
        "softmax_wide[cols=131072,dtype=float16,rows=4096]",
        "softmax_wide[cols=32768,dtype=float16,rows=4096]",
        "softmax_wide[cols=65536,dtype=float16,rows=4096]",
        "tiny_chain[dtype=float32,length=3,n=4096,repeats=1]",
        "tiny_chain[dtype=float32,length=3,n=4096,repeats=20]",
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
SMALL = {
    "n": 72,
    "m": 40,
    "rows": 9,
    "cols": 128,
    "shape": "9x64x50",
    "batch": 1,
    "heads": 1,
    "seq": 40,
    "keys": 70,
    "tokens": 3,
    "past": 9,
    "model": "tiny",
    "distinct": 2,
    "vocab": 5,
    "images": "3x2x4x6",
    "scores": "2x5x40",
}
"""Values of the axes at which any variant runs at once."""

NEEDS_GPU = {"fused_elementwise", "graph", "fused_graph"}
"""Variants of which CuPy itself makes the kernel or the graph."""


BESIDE = ("int32", "float32")
"""What an input may be whatever the elements are: indices, statistics."""


def widened(array: Any) -> Any:
    return array if array.dtype.kind == "i" else array.astype(np.float64)


def benchmarks() -> list[tuple[str, Benchmark]]:
    return [(suite, made) for suite in SUITES for made in collect_suite(import_module(f"suites.{suite}"), suite)]


def needs_package(variant: Variant) -> bool:
    """Whether a package is absent, as those that need a GPU are here."""
    packages = [name for name in variant.requires.get("cuda", ()) if not name.startswith("sm_")]
    return not all(find_spec(name) for name in packages)


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
        done: list[dict[str, Any]] = []
        for case in made.cases(suite, backend):
            params = {axis: SMALL.get(axis, value) for axis, value in case.params.items()}
            if params in done:
                continue
            done.append(params)
            inputs = made(Rng(np, 3), **params)
            inputs = inputs if isinstance(inputs, tuple) else (inputs,)
            dtypes = {str(array.dtype) for array in inputs}
            assert {params["dtype"]} <= dtypes <= {params["dtype"], *BESIDE}
            right = made.reference(*map(widened, inputs), **params)
            for name in case.variants:
                variant = made.variants[name]
                if backend == "cuda" and (name in NEEDS_GPU or needs_package(variant)):
                    continue
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
