// One pack a thread.
KERNEL batchnorm_inference(const T* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ variance,
                           const float* __restrict__ gamma, const float* __restrict__ beta, T* __restrict__ y,
                           u32 packs, u32 plane, u32 channels, float epsilon) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= packs) return;
  const Pack p = load(x, i);
  const u32 c = i / plane % channels;
  store(y, i, normalised(p, mean[c], rsqrtf(variance[c] + epsilon), gamma[c], beta[c]));
}
