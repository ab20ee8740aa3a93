"""The harness's own kernels: the spin that lets the host get ahead, and the mixes that give the ceilings."""

from typing import Any

import cupy as cp
import numpy as np

BLOCK = 256
MIXES = (0, 1, 2, 3, 4, 8)
"""Reads for each write; 0 only writes."""
PACK_BYTES = 16

_SOURCE = r"""
extern "C" __global__ void perftrack_spin(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {}
}
extern "C" __global__ void perftrack_mix0(const uint4* __restrict__ in, uint4* __restrict__ out, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = make_uint4((unsigned)i, 0x9E3779B9u * (unsigned)i, 0x85EBCA6Bu ^ (unsigned)i, 0xC2B2AE35u);
}
template <int K>
__device__ __forceinline__ void mix(const uint4* __restrict__ in, uint4* __restrict__ out, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint4 v[K];
#pragma unroll
  for (int k = 0; k < K; ++k) v[k] = in[i + k * n];
#pragma unroll
  for (int k = 1; k < K; ++k) { v[0].x ^= v[k].x; v[0].y ^= v[k].y; v[0].z ^= v[k].z; v[0].w ^= v[k].w; }
  out[i] = v[0];
}
#define MIX(K) extern "C" __global__ void perftrack_mix##K(const uint4* __restrict__ in, uint4* __restrict__ out, \
  long long n) { mix<K>(in, out, n); }
MIX(1) MIX(2) MIX(3) MIX(4) MIX(8)
"""


class Kernels:
    """The compiled kernels; compiled and loaded when made."""

    def __init__(self) -> None:
        self._module = cp.RawModule(code=_SOURCE, options=("-std=c++17",))
        self._module.compile()
        self._spin = self._module.get_function("perftrack_spin")
        self._mixes = {reads: self._module.get_function(f"perftrack_mix{reads}") for reads in MIXES}
        clock_khz = int(cp.cuda.Device().attributes.get("ClockRate", 0)) or 2_000_000
        self._cycles_per_s = clock_khz * 1000
        self.spin(1e-6)

    def spin(self, seconds: float) -> None:
        """Keep the current stream busy for about `seconds` at the card's highest clock."""
        self._spin((1,), (1,), (np.int64(seconds * self._cycles_per_s),))

    def mix(self, reads: int, source: Any, output: Any, block: int = BLOCK) -> None:
        """Read `reads` arrays that lie one after the other in `source`, write `output` (0: only write)."""
        packs = output.nbytes // PACK_BYTES
        self._mixes[reads]((-(-packs // block),), (block,), (source, output, np.int64(packs)))
