// all loads of a thread before the first use
KERNEL row_squares(const T* __restrict__ x, const float* __restrict__ offset, float* __restrict__ out, int packs) {
  __shared__ float shared[32];
  const i64 start = (i64)blockIdx.x * packs;
  Pack held[4];
  each_pack<4>(packs, [&](int k, int c) { held[k] = load(x, start + c); });
  float sum = 0.f;
  each_pack<4>(packs, [&](int k, int) { each(held[k], [&](float v) { sum += v * v; }); });
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) out[blockIdx.x] = offset[blockIdx.x] + sum;
}
