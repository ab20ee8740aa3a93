"""The harness's own kernels: they compile for every generation, and a stamp is right on a scripted card."""

import io
from pathlib import Path

import numpy as np
import pytest
from cuda.core import Program, ProgramOptions
from cuda_on_cpu import CpuKernels

cuda_kernels = pytest.importorskip("perftrack.measure.cuda_kernels")

COUNTERS = """
static int readings, cycles;
unsigned multiprocessor() { return 10 * (blockIdx.x + 1); }
unsigned long long nanoseconds() { return 1000 + 32 * (readings++ / TICK); }
long long clock64() { return cycles += 100; }
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_the_harness_kernels_compile_without_a_spill(arch):
    options = ProgramOptions(std=cuda_kernels.OPTIONS[0].removeprefix("-std="), arch=arch, ptxas_options="-v")
    log = io.StringIO()
    assert Program(cuda_kernels.SOURCE, "c++", options).compile("cubin", logs=log).code
    assert "warning" not in log.getvalue()
    kernels = 2 + len(cuda_kernels.MIXES)
    assert log.getvalue().count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == kernels


def stamp(folder: Path, tick: int, *places: int) -> np.ndarray:
    """Three multiprocessors whose timer ticks at every `tick`-th reading, stamped at `places`."""
    text = COUNTERS + cuda_kernels.STAMP
    kernels = CpuKernels(folder, {text: ("perftrack_stamp",)})
    kernel = kernels.compiled(text, ("-std=c++17", f"-DTICK={tick}"), "perftrack_stamp")
    stamps = np.zeros((2, 3, cuda_kernels.STAMP_WORDS), np.uint64)
    for place in places:
        kernel((3,), (1,), (stamps, np.int64(place)))
    return stamps


def test_a_stamp_is_made_when_the_timer_ticks(tmp_path):
    stamps = stamp(tmp_path, 3, 0, 1)
    assert stamps[0].tolist() == [[10, 400, 1032], [20, 700, 1064], [30, 1000, 1096]]
    assert stamps[1].tolist() == [[10, 1300, 1128], [20, 1600, 1160], [30, 1900, 1192]]


def test_a_timer_that_stands_still_is_waited_for_only_so_long(tmp_path):
    stamps = stamp(tmp_path, 1_000_000, 1)
    assert stamps[0].any() == 0
    assert stamps[1, :, 0].tolist() == [10, 20, 30]
    assert stamps[1, :, 2].tolist() == [0, 0, 0]
    assert stamps[1, 0, 1] == 100 + 8200
