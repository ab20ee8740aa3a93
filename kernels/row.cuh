// One block a row, the row in registers: sums and maxima over a block, and walking the packs of a thread.
// Blocks have a whole number of warps, at most 32.
#define NEG_INF __int_as_float(0xff800000)

DEVICE float warp_sum(float x) {
  for (int m = 16; m; m >>= 1) x += __shfl_xor_sync(0xffffffffu, x, m);
  return x;
}
DEVICE float warp_max(float x) {
  for (int m = 16; m; m >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, m));
  return x;
}
// `shared`: 32 floats that no other reduction of the kernel uses, which saves a barrier
DEVICE float block_sum(float x, float* shared) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  x = warp_sum(x);
  if (warps == 1) return x;
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  return warp_sum(lane < warps ? shared[lane] : 0.f);
}
DEVICE float block_max(float x, float* shared) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  x = warp_max(x);
  if (warps == 1) return x;
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  return warp_max(lane < warps ? shared[lane] : NEG_INF);
}

// f(k, c) for the packs c of a row that this thread owns, k = 0 .. P-1
template <int P, class F> DEVICE void each_pack(int packs, F f) {
#pragma unroll
  for (int k = 0; k < P; ++k) {
    const int c = threadIdx.x + k * blockDim.x;
    if (c < packs) f(k, c);
  }
}
// f(x) for every element of a pack
template <class F> DEVICE void each(const Pack& p, F f) {
#pragma unroll
  for (int j = 0; j < VEC; ++j) f(to_float(p.v[j]));
}
