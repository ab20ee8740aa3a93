// Mean and sum of squared deviations of some elements; two such give those of both together (Chan, Golub and LeVeque,
// 1979), which, other than sums of squares, loses nothing where the mean is large.
struct Moments {
  float count, mean, squares;

  MEMBER void merge(const Moments& other) {
    const float all = count + other.count, delta = other.mean - mean;
    const float weight = all > 0.f ? __fdividef(other.count, all) : 0.f;
    mean += delta * weight;
    squares += other.squares + delta * delta * count * weight;
    count = all;
  }
  MEMBER void take(const Pack& p) {
    Moments of_pack{VEC, 0.f, 0.f};
    each(p, [&](float v) { of_pack.mean += v; });
    of_pack.mean *= 1.f / VEC;
    each(p, [&](float v) { of_pack.squares += (v - of_pack.mean) * (v - of_pack.mean); });
    merge(of_pack);
  }
};
// over `lanes` neighbours of a warp, a power of two
DEVICE Moments over_lanes(Moments mine, int lanes) {
  for (int m = lanes / 2; m; m >>= 1)
    mine.merge({__shfl_xor_sync(0xffffffffu, mine.count, m), __shfl_xor_sync(0xffffffffu, mine.mean, m),
                __shfl_xor_sync(0xffffffffu, mine.squares, m)});
  return mine;
}
DEVICE Moments over_warp(const Moments& mine) { return over_lanes(mine, 32); }
DEVICE Moments over_block(Moments mine, Moments* shared) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  mine = over_warp(mine);
  if (lane == 0) shared[warp] = mine;
  __syncthreads();
  return over_lanes(shared[lane & (warps - 1)], warps);
}
