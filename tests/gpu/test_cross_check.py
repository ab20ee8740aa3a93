"""Our times against independent timers, on a real GPU. `-s` shows the table; PERFTRACK_CROSS_CHECK names a CSV file."""

import os
import sys

import cross_check
import pytest

from perftrack.measure.methods import default_method
from perftrack.measure.nvml import gpu_names

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not gpu_names(), reason="no NVIDIA GPU"),
    pytest.mark.timeout(550),
    pytest.mark.filterwarnings("default"),  # those of other people's timers are not ours to mend
]

ANCHORS = (
    ("controls", "control_copy[dtype=float32,n=67108864]", "fused", True),
    ("elementwise", "add_mul_relu[dtype=float32,n=67108864]", "fused", True),
    ("softmax", "softmax[cols=4096,dtype=float32,rows=16384]", "fused", True),
    ("controls", "control_large_gemm[dtype=float16,n=8192]", "fused", True),
    ("elementwise", "add_mul_relu_small[dtype=float32,n=4096]", "fused", False),  # about 3 µs
)


def test_long_kernels_take_what_cupti_says():
    from perftrack.measure.cuda import CudaEngine

    engine, method = CudaEngine(), default_method("cuda")
    anchors = [
        cross_check.prepare(engine, suite, key, variant, method, long=long) for suite, key, variant, long in ANCHORS
    ]
    with engine.active():
        readings = cross_check.read_all(anchors, cross_check.TIMERS)
        readings += cross_check.read_together(anchors, "NVBench (cuda.bench)", cross_check.nvbench)
    sys.stdout.write(f"\n{cross_check.table(readings)}\n")
    if path := os.environ.get("PERFTRACK_CROSS_CHECK"):
        cross_check.write_csv(readings, path)
    assert not cross_check.disagreements(readings, [one.name for one in anchors if one.long])
