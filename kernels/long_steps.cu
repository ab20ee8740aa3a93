// Reductions of rows too long for registers: one block a row, which loads several packs ahead.
constexpr int AHEAD = 4;

template <class F> DEVICE void each_of_row(const T* x, int packs, F f) {
  const i64 start = (i64)blockIdx.x * packs;
  stream<AHEAD>(x, packs, [&](int c) { return start + c; }, [&](const Pack& p, int) { each(p, f); });
}
DEVICE float sum_of_row(const T* x, int packs) {
  __shared__ float shared[32];
  float sum = 0.f;
  each_of_row(x, packs, [&](float v) { sum += v; });
  return block_sum(sum, shared);
}
KERNEL row_max(const T* x, float* out, int packs) {
  __shared__ float shared[32];
  float most = NEG_INF;
  each_of_row(x, packs, [&](float v) { most = fmaxf(most, v); });
  most = block_max(most, shared);
  if (threadIdx.x == 0) out[blockIdx.x] = most;
}
KERNEL row_sum(const T* x, float* out, int packs) {
  const float sum = sum_of_row(x, packs);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
KERNEL row_mean(const T* x, float* out, int packs) {
  const float sum = sum_of_row(x, packs);
  if (threadIdx.x == 0) out[blockIdx.x] = sum / ((float)packs * VEC);
}
