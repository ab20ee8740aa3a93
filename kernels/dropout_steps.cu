// The steps that only dropout has. A uniform number is its draw / 65536, exact in float.
KERNEL uniform(float* out, i64 n, u64 key) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i * GROUP >= n) return;
  const Words w = philox(i, key);
  float u[GROUP];
#pragma unroll
  for (int j = 0; j < GROUP; ++j) u[j] = (float)(j % 2 ? w.v[j / 2] >> 16 : w.v[j / 2] & 0xffff) * 0.0000152587890625f;
  if (i * GROUP + GROUP <= n) {
    reinterpret_cast<float4*>(out)[2 * i] = make_float4(u[0], u[1], u[2], u[3]);
    reinterpret_cast<float4*>(out)[2 * i + 1] = make_float4(u[4], u[5], u[6], u[7]);
    return;
  }
#pragma unroll
  for (int j = 0; j < GROUP; ++j)
    if (i * GROUP + j < n) out[i * GROUP + j] = u[j];
}
// sixteen elements a thread: four 16-byte loads, one 16-byte store
KERNEL keep_mask(const float* u, u8* keep, i64 n, float p) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x, whole = n / 16;
  if (i < whole) {
    float4 in[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) in[k] = reinterpret_cast<const float4*>(u)[4 * i + k];
    u32 bits[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      bits[k] = (u32)(in[k].x >= p) | (u32)(in[k].y >= p) << 8 | (u32)(in[k].z >= p) << 16 | (u32)(in[k].w >= p) << 24;
    reinterpret_cast<uint4*>(keep)[i] = make_uint4(bits[0], bits[1], bits[2], bits[3]);
  }
  if (blockIdx.x == gridDim.x - 1)
    for (i64 j = whole * 16 + threadIdx.x; j < n; j += blockDim.x) keep[j] = u[j] >= p;
}
struct alignas(VEC) Flags { u8 v[VEC]; };
KERNEL apply_mask(const T* x, const u8* keep, T* out, i64 n) {
  const i64 packs = n / VEC, i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < packs) {
    const Pack p = load(x, i);
    const Flags f = reinterpret_cast<const Flags*>(keep)[i];
    Pack r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) from_float(to_float(p.v[j]) * f.v[j], &r.v[j]);
    store(out, i, r);
  }
  if (blockIdx.x == gridDim.x - 1)
    for (i64 j = packs * VEC + threadIdx.x; j < n; j += blockDim.x) from_float(to_float(x[j]) * keep[j], &out[j]);
}
