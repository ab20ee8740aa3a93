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

DEVICE float relu(float x) { return fmaxf(x, 0.f); }
