"""What the emulator of CUDA on a CPU makes of clusters and dynamic shared memory, wrong uses included."""

import numpy as np
import pytest
from cuda_on_cpu import CpuKernel, CpuKernels

from kernels import cuda_source

PROBES = """
KERNEL doubles_in_shared(T* out) {
  Pack* room = dynamic_shared();
  from_float(2.f * to_float(out[threadIdx.x]), &room->v[threadIdx.x]);
  out[threadIdx.x] = room->v[threadIdx.x];
}
KERNEL ranks_of_cluster_4(float* out) {
  __shared__ float2 values[4];
  cluster_arrive();
  exchange(values, make_float2(blockIdx.x, threadIdx.x));
  if (threadIdx.x < 4) out[blockIdx.x * 4 + threadIdx.x] = values[threadIdx.x].x;
}
KERNEL never_met_cluster_2(float* out) {
  if (blockIdx.x % 2) cluster_wait();
  else cluster_arrive(), cluster_wait();
  out[0] = 1;
}
"""
NAMES = ("doubles_in_shared", "ranks_of_cluster_4", "never_met_cluster_2")


@pytest.fixture
def probes(cpu_kernels: CpuKernels) -> dict[str, CpuKernel]:
    text = cuda_source.Source(("row.cuh", "long_row.cuh", "cluster.cuh"), {}).text + PROBES
    kernels = CpuKernels(cpu_kernels.folder, {text: NAMES})
    options = cuda_source.compile_options("float32")
    return {name: kernels.compiled(text, options, name) for name in NAMES}


def test_writing_beyond_dynamic_shared_memory_is_found(probes: dict[str, CpuKernel]) -> None:
    out = np.ones(32, np.float32)
    probes["doubles_in_shared"]((1,), (32,), (out,), shared_mem=128)
    np.testing.assert_array_equal(out, np.full(32, 2))
    with pytest.raises(AssertionError, match="beyond the block's dynamic shared memory"):
        probes["doubles_in_shared"]((1,), (32,), (out,), shared_mem=124)


def test_every_block_of_a_cluster_has_what_the_others_sent(probes: dict[str, CpuKernel]) -> None:
    out = np.full(32, np.nan, np.float32)
    probes["ranks_of_cluster_4"]((8,), (64,), (out,))
    np.testing.assert_array_equal(out.reshape(8, 4), [[0, 1, 2, 3]] * 4 + [[4, 5, 6, 7]] * 4)


def test_a_barrier_that_a_block_of_the_cluster_misses_is_found(probes: dict[str, CpuKernel]) -> None:
    out = np.zeros(1, np.float32)
    for _ in range(2):  # and the threads left waiting do not spoil the next launch
        with pytest.raises(AssertionError, match="a thread waits at a barrier that others never reach"):
            probes["never_met_cluster_2"]((2,), (32,), (out,))
    test_every_block_of_a_cluster_has_what_the_others_sent(probes)
