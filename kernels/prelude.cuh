// What every source begins with. ELEM is the element type: float, __half or __nv_bfloat16. Arithmetic is float
// throughout; memory is accessed in packs of 16 bytes. Counts and offsets of elements are 64-bit.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define DEVICE __device__ __forceinline__
#define KERNEL extern "C" __global__ void
#define MEMBER __device__ __forceinline__

using T = ELEM;
using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

constexpr int VEC = 16 / sizeof(T);
struct alignas(16) Pack { T v[VEC]; };

DEVICE float to_float(float x) { return x; }
DEVICE float to_float(__half x) { return __half2float(x); }
// by its bits, since CUDA's own conversion is assembly on 16-bit registers, which takes a pack apart
DEVICE float to_float(__nv_bfloat16 x) { return __int_as_float((u32)__bfloat16_as_ushort(x) << 16); }
DEVICE void from_float(float x, float* to) { *to = x; }
DEVICE void from_float(float x, __half* to) { *to = __float2half_rn(x); }
DEVICE void from_float(float x, __nv_bfloat16* to) { *to = __float2bfloat16_rn(x); }

// through uint4, so that the compiler has no other choice than one 16-byte access
DEVICE Pack load(const T* __restrict__ p, i64 pack) {
  const uint4 bits = reinterpret_cast<const uint4*>(p)[pack];
  Pack r;
  *reinterpret_cast<uint4*>(&r) = bits;
  return r;
}
DEVICE void store(T* __restrict__ p, i64 pack, const Pack& r) {
  reinterpret_cast<uint4*>(p)[pack] = *reinterpret_cast<const uint4*>(&r);
}

// A pack as floats and back. Two 16-bit elements are converted at once, by instructions on whole registers: one at a
// time, they are taken out of their register and put back, which costs as much as the arithmetic.
struct Floats { float v[VEC]; };

#ifdef __CUDA_ARCH__
DEVICE void two_to_float(const __half* from, float* x) {
  const float2 both = __half22float2(*reinterpret_cast<const __half2*>(from));
  x[0] = both.x;
  x[1] = both.y;
}
DEVICE void two_to_float(const __nv_bfloat16* from, float* x) {
  const u32 both = *reinterpret_cast<const u32*>(from);
  x[0] = __int_as_float(both << 16);
  x[1] = __int_as_float(both & 0xffff0000u);
}
DEVICE void two_from_float(const float* x, __half* to) {
  *reinterpret_cast<__half2*>(to) = __floats2half2_rn(x[0], x[1]);
}
DEVICE void two_from_float(const float* x, __nv_bfloat16* to) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(x[0], x[1]);
  *reinterpret_cast<u32*>(to) = *reinterpret_cast<const u32*>(&both);
}
#endif
template <class E> DEVICE void two_to_float(const E* from, float* x) {
  x[0] = to_float(from[0]);
  x[1] = to_float(from[1]);
}
template <class E> DEVICE void two_from_float(const float* x, E* to) {
  from_float(x[0], &to[0]);
  from_float(x[1], &to[1]);
}
DEVICE Floats unpacked(const Pack& p) {
  Floats x;
#pragma unroll
  for (int j = 0; j < VEC; j += 2) two_to_float(p.v + j, x.v + j);
  return x;
}
DEVICE Pack packed(const Floats& x) {
  Pack p;
#pragma unroll
  for (int j = 0; j < VEC; j += 2) two_from_float(x.v + j, p.v + j);
  return p;
}

DEVICE float relu(float x) { return fmaxf(x, 0.f); }
// 2 to the power of x in one instruction, where exp2f has three more for results below 2^-126; these are zero here
DEVICE float exp2_of(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}
