// Single steps on [batch, channels, height, width] with one value a channel.
template <class F> DEVICE void by_channel(const T* x, const float* value, T* out, u32 packs, u32 plane, u32 channels, F f) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= packs) return;
  const Pack p = load(x, i);
  const float v = value[i / plane % channels];
  Pack r;
#pragma unroll
  for (int j = 0; j < VEC; ++j) from_float(f(to_float(p.v[j]), v), &r.v[j]);
  store(out, i, r);
}
#define CHANNEL_STEP(name, expression)                                                                        \
  KERNEL name(const T* x, const float* value, T* out, u32 packs, u32 plane, u32 channels) {                   \
    by_channel(x, value, out, packs, plane, channels, [](float x, float v) { return expression; });           \
  }
CHANNEL_STEP(subtract_channel, x - v)
CHANNEL_STEP(multiply_channel, x * v)
CHANNEL_STEP(add_channel, x + v)

// the mean of a channel in two: the sums of its parts, one block each, and theirs, one warp a channel
KERNEL __launch_bounds__(256) channel_sums(const T* x, float* sums, int packs, int plane, int channels, int parts) {
  __shared__ float shared[32];
  const Part part(packs, blockIdx.x % parts, parts);
  const Channel at((int)blockIdx.x / parts, channels, plane);
  float sum = 0.f;
  stream<4>(x, part.packs, [&](int c) { return at(part.first + c); },
            [&](const Pack& p, int) { each(p, [&](float v) { sum += v; }); });
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
KERNEL channel_means(const float* sums, float* means, int parts, float share) {
  float sum = 0.f;
  for (int p = threadIdx.x; p < parts; p += 32) sum += sums[(i64)blockIdx.x * parts + p];
  sum = warp_sum(sum);
  if (threadIdx.x == 0) means[blockIdx.x] = sum * share;
}
KERNEL rstd_of_channels(const float* variance, float* rstd, int channels, float epsilon) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < channels) rstd[c] = rsqrtf(variance[c] + epsilon);
}
