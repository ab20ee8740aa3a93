"""The harness's own kernels: spins to let the host get ahead, stamps to tell the clock, mixes to find ceilings."""

from typing import Any

import cupy as cp
import numpy as np

BLOCK = 256
MIXES = (0, 1, 2, 3, 4, 8)
"""Reads for each write; 0 only writes."""
PACK_BYTES = 16
STAMP_WORDS = 3
"""Of 8 bytes: multiprocessor, cycles, nanoseconds."""

COUNTERS = r"""
__device__ __forceinline__ unsigned multiprocessor() {
  unsigned number;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
  return number;
}
__device__ __forceinline__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
"""

STAMP = r"""
// One thread a block. The timer may stand still for a microsecond, so the stamp is made when it ticks; where it has not
// ticked after MOST_CYCLES, its nanoseconds are 0.
#define MOST_CYCLES 8192
extern "C" __global__ void perftrack_stamp(unsigned long long* stamps, long long place) {
  unsigned long long* mine = stamps + 3 * (place * gridDim.x + blockIdx.x);
  const unsigned long long before = nanoseconds();
  const long long start = clock64();
  unsigned long long now;
  long long cycles;
  do {
    now = nanoseconds();
    cycles = clock64();
  } while (now == before && cycles - start < MOST_CYCLES);
  mine[0] = multiprocessor();
  mine[1] = (unsigned long long)cycles;
  mine[2] = now == before ? 0 : now;
}
"""

_SPIN_AND_MIXES = r"""
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

SOURCE = COUNTERS + STAMP + _SPIN_AND_MIXES
OPTIONS = ("-std=c++17",)


class Kernels:
    """The compiled kernels; compiled and loaded when made."""

    def __init__(self) -> None:
        self._module = cp.RawModule(code=SOURCE, options=OPTIONS)
        self._module.compile()
        self._spin = self._module.get_function("perftrack_spin")
        self._stamp = self._module.get_function("perftrack_stamp")
        self._mixes = {reads: self._module.get_function(f"perftrack_mix{reads}") for reads in MIXES}
        attributes = cp.cuda.Device().attributes
        clock_khz = int(attributes.get("ClockRate", 0)) or 2_000_000
        self._cycles_per_s = clock_khz * 1000
        self._multiprocessors = int(attributes["MultiProcessorCount"])
        self.spin(1e-6)
        self.stamp(self.stamps(1), 0)

    def spin(self, seconds: float) -> None:
        """Keep the current stream busy for about `seconds` at the card's highest clock."""
        self._spin((1,), (1,), (np.int64(seconds * self._cycles_per_s),))

    def stamps(self, count: int) -> Any:
        """An array for `count` stamps of every multiprocessor: (place, block, word), uint64."""
        return cp.zeros((count, self._multiprocessors, STAMP_WORDS), cp.uint64)

    def stamp(self, stamps: Any, place: int) -> None:
        """Write down what each multiprocessor's counters say, once the work before has ended; see measure.clock."""
        self._stamp((self._multiprocessors,), (1,), (stamps, np.int64(place)))

    def mix(self, reads: int, source: Any, output: Any, block: int = BLOCK) -> None:
        """Read `reads` arrays that lie one after the other in `source`, write `output` (0: only write)."""
        packs = output.nbytes // PACK_BYTES
        self._mixes[reads]((-(-packs // block),), (block,), (source, output, np.int64(packs)))
