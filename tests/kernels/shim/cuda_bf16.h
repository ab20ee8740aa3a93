// Stands for CUDA's header of that name: the upper half of a float, rounded to nearest, ties to even.
#pragma once
#include <stdint.h>
#include <string.h>

struct __nv_bfloat16 {
  uint16_t bits;
};
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) { return h.bits; }
inline float __bfloat162float(__nv_bfloat16 h) {
  const uint32_t bits = (uint32_t)h.bits << 16;
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if (x != x) return {0x7fff};
  return {(uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
