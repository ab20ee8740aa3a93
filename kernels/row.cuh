// A row shared by a team of threads, in registers: sums and maxima over the team, and walking the packs of a thread.
// Blocks have 1, 2, 4, 8, 16 or 32 warps.
#define NEG_INF __int_as_float(0xff800000)

// Makes the compiler forget what it derived from these bits, which it would else keep in registers beside them.
DEVICE void forget(uint4& bits) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
#endif
}

DEVICE float warp_sum(float x) {
  for (int m = 16; m; m >>= 1) x += __shfl_xor_sync(0xffffffffu, x, m);
  return x;
}
DEVICE float warp_max(float x) {
  for (int m = 16; m; m >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, m));
  return x;
}
// N sums at once; `shared`: 32 floats for each that no other reduction of the kernel uses, which saves a barrier
template <int N> DEVICE void block_sums(float (&x)[N], float* shared) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
#pragma unroll
  for (int n = 0; n < N; ++n) x[n] = warp_sum(x[n]);
  if (warps == 1) return;
  if (lane == 0)
#pragma unroll
    for (int n = 0; n < N; ++n) shared[32 * n + warp] = x[n];
  __syncthreads();
#pragma unroll
  for (int n = 0; n < N; ++n) {
    x[n] = shared[32 * n + (lane & (warps - 1))];
    for (int m = warps / 2; m; m >>= 1) x[n] += __shfl_xor_sync(0xffffffffu, x[n], m);
  }
}
DEVICE float block_sum(float x, float* shared) {
  float one[1] = {x};
  block_sums(one, shared);
  return one[0];
}
DEVICE float block_max(float x, float* shared) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  x = warp_max(x);
  if (warps == 1) return x;
  if (lane == 0) shared[warp] = x;
  __syncthreads();
  x = shared[lane & (warps - 1)];
  for (int m = warps / 2; m; m >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, m));
  return x;
}

// A team is threads that share ROWS rows at the same time. All threads of a block share one; `shared` has 32 floats for
// each reduction that the kernel makes. WHOLE: every thread has all its packs, of rows that all exist; without a branch
// for each of them, loads and arithmetic of several packs overlap.
template <bool W> struct BlockTeam {
  static constexpr int ROWS = 1;
  static constexpr bool WHOLE = W;
  float* shared;
  MEMBER int index() const { return threadIdx.x; }
  MEMBER int size() const { return blockDim.x; }
  MEMBER i64 row(int) const { return blockIdx.x; }
  template <int N> MEMBER void sum(float (&x)[N]) { block_sums(x, (shared += 32 * N) - 32 * N); }
  MEMBER void max(float (&x)[1]) { x[0] = block_max(x[0], (shared += 32) - 32); }
};
// `lanes` neighbours in a warp share R rows, lanes a power of two: several short rows a block, and no barrier. Where
// the last block has more teams than rows are left, the others must come along to every reduction, with no packs.
template <int R, bool W> struct LaneTeam {
  static constexpr int ROWS = R;
  static constexpr bool WHOLE = W;
  int lanes;
  MEMBER int index() const { return threadIdx.x & (lanes - 1); }
  MEMBER int size() const { return lanes; }
  // the r-th rows of all teams of a block are neighbours
  MEMBER i64 row(int r) const { return ((i64)blockIdx.x * R + r) * (blockDim.x / lanes) + threadIdx.x / lanes; }
  template <int N> MEMBER void sum(float (&x)[N]) const {
    for (int m = lanes / 2; m; m >>= 1)
#pragma unroll
      for (int n = 0; n < N; ++n) x[n] += __shfl_xor_sync(0xffffffffu, x[n], m);
  }
  MEMBER void max(float (&x)[R]) const {
    for (int m = lanes / 2; m; m >>= 1)
#pragma unroll
      for (int r = 0; r < R; ++r) x[r] = fmaxf(x[r], __shfl_xor_sync(0xffffffffu, x[r], m));
  }
};
// f(team) with the team of this thread, for rows of `packs` packs of which a thread has up to P
template <int P, class F> DEVICE void with_block(float* shared, int packs, F f) {
  if (packs == P * (int)blockDim.x) f(BlockTeam<true>{shared});
  else f(BlockTeam<false>{shared});
}
// HELD: packs that a thread of a LaneTeam holds, of one row or of several, so that enough is under way
template <int HELD, int P, class F> DEVICE void with_lanes(int lanes, i64 rows, int packs, F f) {
  constexpr int R = HELD / P;
  const i64 end = ((i64)blockIdx.x + 1) * (R * (blockDim.x / lanes));
  if (packs == P * lanes && end <= rows) f(LaneTeam<R, true>{lanes});
  else f(LaneTeam<R, false>{lanes});
}

// f(k, c) for the packs c of a row that this thread owns, k = 0 .. P-1
template <int P, class Team, class F> DEVICE void each_pack(const Team& team, int packs, F f) {
#pragma unroll
  for (int k = 0; k < P; ++k) {
    const int c = team.index() + k * team.size();
    if (Team::WHOLE || c < packs) f(k, c);
  }
}
template <int P, class F> DEVICE void each_pack(int packs, F f) { each_pack<P>(BlockTeam<false>{nullptr}, packs, f); }
// f(x) for every element of a pack
template <class F> DEVICE void each(const Pack& p, F f) {
  const Floats x = unpacked(p);
#pragma unroll
  for (int j = 0; j < VEC; ++j) f(x.v[j]);
}
