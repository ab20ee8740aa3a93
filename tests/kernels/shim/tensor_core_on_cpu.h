// What tensor_core.cuh has in assembly for a GPU, lane by lane as the instructions are defined. It is included where
// the element type T is known.
#pragma once

namespace cpu {
constexpr unsigned WORDS = 6, MOST_COPIES = 256;
static uint64_t exchanged[WARP][WARP][WORDS];  // warp, lane: what a lane shows to the others
struct Copies {
  void* to[MOST_COPIES];
  const void* from[MOST_COPIES];
  unsigned count;
};
static Copies pending[MOST_THREADS];

inline uint64_t* shown_by(unsigned lane) { return exchanged[warp_of(current)][lane]; }
inline unsigned lane() { return current->index.x % WARP; }
inline void warp_sync() {
  const unsigned warp = warp_of(current);
  sleep_until(here->warp_barrier[warp], here->warp_living[warp]);
}
inline T element_of(uint64_t word, unsigned high) {
  const uint16_t bits = (uint16_t)(word >> 16 * high);
  T x;
  memcpy(&x, &bits, 2);
  return x;
}
inline void load_parts(u32* r, const T* row, bool transposed) {
  shown_by(lane())[0] = (uint64_t)row;
  warp_sync();
  for (unsigned part = 0; part < 4; ++part) {
    uint16_t two[2];
    for (unsigned e = 0; e < 2; ++e) {
      const unsigned first = lane() / 4, second = 2 * (lane() % 4) + e;
      const unsigned row_of_part = transposed ? second : first, column = transposed ? first : second;
      memcpy(&two[e], (const T*)shown_by(8 * part + row_of_part)[0] + column, 2);
    }
    memcpy(&r[part], two, 4);
  }
  warp_sync();
}
}  // namespace cpu

inline void load_tiles(u32 (&r)[4], const T* row) { cpu::load_parts(r, row, false); }
inline void load_tiles_transposed(u32 (&r)[4], const T* row) { cpu::load_parts(r, row, true); }

inline void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, T) {
  uint64_t* mine = cpu::shown_by(cpu::lane());
  for (int i = 0; i < 4; ++i) mine[i] = a[i];
  mine[4] = b0;
  mine[5] = b1;
  cpu::warp_sync();
  for (unsigned e = 0; e < 4; ++e) {
    const unsigned row = cpu::lane() / 4 + 8 * (e / 2), column = 2 * (cpu::lane() % 4) + e % 2;
    float sum = c[e];
    for (unsigned k = 0; k < 16; ++k) {
      const uint64_t left = cpu::shown_by(row % 8 * 4 + k % 8 / 2)[row / 8 + 2 * (k / 8)];
      const uint64_t right = cpu::shown_by(column * 4 + k % 8 / 2)[4 + k / 8];
      sum += to_float(cpu::element_of(left, k % 2)) * to_float(cpu::element_of(right, k % 2));
    }
    c[e] = sum;
  }
  cpu::warp_sync();
}
inline u32 both(float low, float high, T) {
  T two[2];
  from_float(low, &two[0]);
  from_float(high, &two[1]);
  u32 r;
  memcpy(&r, two, 4);
  return r;
}

// Until they are waited for, copies leave NaN where they will land: a missing wait shows, and so does a copy that
// begins while others still read what was there.
inline void copy_async(T* to, const T* from, bool exists) {
  cpu::Copies& mine = cpu::pending[cpu::current->index.x];
  if (mine.count == cpu::MOST_COPIES) abort();
  mine.to[mine.count] = to;
  mine.from[mine.count++] = exists ? from : nullptr;
  memset(to, 0xff, 16);
}
inline void wait_for_copies() {
  cpu::Copies& mine = cpu::pending[cpu::current->index.x];
  for (unsigned i = 0; i < mine.count; ++i) {
    if (mine.from[i]) memcpy(mine.to[i], mine.from[i], 16);
    else memset(mine.to[i], 0, 16);
  }
  mine.count = 0;
}
inline bool any_in_warp(bool x) {
  cpu::shown_by(cpu::lane())[0] = x;
  cpu::warp_sync();
  bool any = false;
  for (unsigned other = 0; other < cpu::WARP; ++other) any |= cpu::shown_by(other)[0] != 0;
  cpu::warp_sync();
  return any;
}
inline float two_to_the(float x) { return exp2f(x); }
