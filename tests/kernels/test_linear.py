"""Linear layers: every variant on the CPU against the float64 reference, and what it counts as traffic."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from agreement import Normal, assert_close, run

from kernels import gemm_bias_gelu, gemm_bias_mask_relu, gemm_swiglu, llama_ffn, qkv_projection

VARIANTS = ("unfused", "steps", "fused", "cublaslt")


def inputs_of(module: ModuleType) -> tuple[Any, ...]:
    normal = Normal("float16")
    makers = {
        gemm_bias_mask_relu: lambda: (
            normal(9, 50),
            normal(50, 72, scale=1 / 7),
            normal(72),
            (normal(9, 72) > -1).astype("float16"),
        ),
        gemm_bias_gelu: lambda: (normal(9, 50), normal(50, 72, scale=1 / 7), normal(72)),
        gemm_swiglu: lambda: (normal(9, 50), *(normal(50, 2064, scale=1 / 7) for _ in range(2))),
        llama_ffn: lambda: (normal(5, 64), *(normal(64, 88, scale=1 / 8) for _ in range(2)), normal(88, 64, scale=0.1)),
        qkv_projection: lambda: (normal(5, 64), *(normal(64, 64, scale=1 / 8) for _ in range(3))),
    }
    return makers[module]()


@pytest.mark.parametrize("module", [gemm_bias_mask_relu, gemm_bias_gelu, gemm_swiglu, llama_ffn, qkv_projection])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.usefixtures("cuda_on_cpu")
def test_every_variant_agrees_with_the_reference(module: ModuleType, variant: str) -> None:
    inputs = inputs_of(module)
    outputs = run(getattr(module, variant), inputs)
    right = module.reference(*(array.astype(np.float64) for array in inputs))
    for output, reference in zip(outputs, right if isinstance(right, tuple) else (right,), strict=True):
        assert_close(output, reference, {"unfused": 4, "steps": 4}.get(variant, 2))


@pytest.mark.usefixtures("cuda_on_cpu")
def test_the_gate_of_large_values_is_the_value_or_nothing() -> None:
    x, gate, up = np.ones((3, 1)), np.linspace(-60, 60, 8)[None], np.ones((1, 8))
    (out,) = run(gemm_swiglu.cublaslt, tuple(array.astype(np.float16) for array in (x, gate, up)))
    assert_close(out, np.broadcast_to(np.maximum(gate, 0), (3, 8)), 1)


@pytest.mark.usefixtures("cuda_on_cpu")
def test_a_launch_of_several_parts_names_all_its_kernels() -> None:
    launch, _ = llama_ffn.steps(*inputs_of(llama_ffn))
    assert [use[0].name for use in launch.kernels] == ["scale", "exp_of", "shift", "divide", "multiply"]
    assert len(launch.steps) == 3 + 5
    assert launch.source.count("#include <cuda_fp16.h>") == 1
    fused, _ = llama_ffn.fused(*inputs_of(llama_ffn))
    assert [use[0].name for use in fused.kernels] == ["swiglu"]


def test_traffic_of_a_product_with_bias_and_gelu() -> None:
    # a 2x3 and w 3x8 halves: 12 + 48 bytes; the result 32, the bias 16
    counts = gemm_bias_gelu.traffic(dtype="float16", m=2, n=8, k=3)
    assert (counts["reads"], counts["writes"], counts["flops"]) == (76, 32, 2 * 48 + 160)
    assert counts["moved"]["cublaslt"] == counts["moved"]["torch"] == 108
    assert counts["moved"]["fused"] == 60 + 32 + 64 + 16
    assert counts["moved"]["unfused"] == counts["moved"]["steps"] == 60 + 32 + 23 * 32 + 16


def test_traffic_of_gates_and_of_the_layer_around_them() -> None:
    # x 2x3, two weights 3x8, a result 2x8, halves: 12, 96 and 32 bytes
    counts = gemm_swiglu.traffic(dtype="float16", m=2, n=8, k=3)
    assert (counts["reads"], counts["writes"], counts["flops"]) == (108, 32, 4 * 48 + 80)
    assert counts["moved"]["steps"] == 2 * 12 + 96 + (2 + 12) * 32
    assert counts["moved"]["fused"] == counts["moved"]["cublaslt"] == 12 + 96 + (2 + 3) * 32
    # what is between is read once more, down 8x3 is 48 bytes, the result 12
    whole = llama_ffn.traffic(dtype="float16", tokens=2, hidden=3, inner=8)
    assert (whole["reads"], whole["writes"], whole["flops"]) == (156, 12, counts["flops"] + 96)
    assert whole["moved"]["fused"] == counts["moved"]["fused"] + 32 + 48 + 12


def test_traffic_of_a_projection() -> None:
    # x 2x3 halves: 12 bytes; three weights 3x3: 54; three results 2x3: 36
    counts = qkv_projection.traffic(dtype="float16", tokens=2, hidden=3)
    assert (counts["reads"], counts["writes"], counts["flops"]) == (66, 36, 108)
    assert counts["moved"] == {"unfused": 126, "steps": 126, "fused": 102, "cublaslt": 102}
