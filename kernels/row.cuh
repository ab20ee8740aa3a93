// A row shared by a team of threads, in registers: sums and maxima over the team, and walking the packs of a thread.
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

// All threads of a block share the row. `shared` has 32 floats for each reduction that the kernel makes.
struct BlockTeam {
  float* shared;
  MEMBER int index() const { return threadIdx.x; }
  MEMBER int size() const { return blockDim.x; }
  MEMBER float sum(float x) { return block_sum(x, (shared += 32) - 32); }
  MEMBER float max(float x) { return block_max(x, (shared += 32) - 32); }
};
// `lanes` neighbours in a warp share the row, a power of two: several short rows a block, and no barrier. Where the
// last block has more teams than rows are left, the others must come along to every reduction, with no packs.
struct LaneTeam {
  int lanes;
  MEMBER int index() const { return threadIdx.x & (lanes - 1); }
  MEMBER int size() const { return lanes; }
  MEMBER i64 row() const { return (i64)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes; }
  MEMBER float sum(float x) const {
    for (int m = lanes / 2; m; m >>= 1) x += __shfl_xor_sync(0xffffffffu, x, m);
    return x;
  }
  MEMBER float max(float x) const {
    for (int m = lanes / 2; m; m >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, m));
    return x;
  }
};

// f(k, c) for the packs c of a row that this thread owns, k = 0 .. P-1
template <int P, class Team, class F> DEVICE void each_pack(const Team& team, int packs, F f) {
#pragma unroll
  for (int k = 0; k < P; ++k) {
    const int c = team.index() + k * team.size();
    if (c < packs) f(k, c);
  }
}
template <int P, class F> DEVICE void each_pack(int packs, F f) { each_pack<P>(BlockTeam{nullptr}, packs, f); }
// f(x) for every element of a pack
template <class F> DEVICE void each(const Pack& p, F f) {
#pragma unroll
  for (int j = 0; j < VEC; ++j) f(to_float(p.v[j]));
}
