// Philox4x32-10: ten rounds over a counter of 128 bits, of which the lower 64 are used here, and a key of 64.
struct Words { u32 v[4]; };
DEVICE Words philox(u64 counter, u64 key) {
  u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = 0, c3 = 0, k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
    c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
    c1 = (u32)p1;
    c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
    c3 = (u32)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Counter e / 8 serves elements 8 (e / 8) .. + 7, 16 bits each, the lower half of a word first: the draw of an
// element does not depend on its type, and one call of Philox serves a whole pack of halves.
constexpr int GROUP = 8;
DEVICE u32 draw_of(u64 element, u64 key) {
  const Words w = philox(element / GROUP, key);
  const int j = element % GROUP;
  const u32 word = j < 4 ? (j < 2 ? w.v[0] : w.v[1]) : (j < 6 ? w.v[2] : w.v[3]);
  return j % 2 ? word >> 16 : word & 0xffff;
}
struct Draws { u32 v[VEC]; };
DEVICE Draws draws_of(i64 pack, u64 key) {
  const Words w = philox((u64)pack * VEC / GROUP, key);
  // a pack of four floats is one half of a group; selected without indexing, which would need local memory
  const bool second = VEC < GROUP && pack % 2;
  u32 words[4] = {second ? w.v[2] : w.v[0], second ? w.v[3] : w.v[1], w.v[2], w.v[3]};
  Draws d;
#pragma unroll
  for (int j = 0; j < VEC; ++j) d.v[j] = j % 2 ? words[j / 2] >> 16 : words[j / 2] & 0xffff;
  return d;
}

KERNEL dropout_relu(const T* __restrict__ x, T* __restrict__ out, i64 n, u64 key, u32 threshold, float scale) {
  const i64 packs = n / VEC, i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < packs) {
    const Pack p = load(x, i);
    const Draws d = draws_of(i, key);
    Pack r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) from_float(d.v[j] >= threshold ? relu(to_float(p.v[j])) * scale : 0.f, &r.v[j]);
    store(out, i, r);
  }
  if (blockIdx.x == gridDim.x - 1)
    for (i64 j = packs * VEC + threadIdx.x; j < n; j += blockDim.x)
      from_float(draw_of(j, key) >= threshold ? relu(to_float(x[j])) * scale : 0.f, &out[j]);
}

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
