// Sum of exp(x - most) over some elements, with their maximum: two such give that of both together.
struct Online {
  float most, sum;
  // factor for a sum under `most`; while there are only -inf, the sum is 0 and any factor will do
  DEVICE static float rescale(float from, float to) { return exp2_of((from - (to > NEG_INF ? to : 0.f)) * LOG2_E); }
  MEMBER void take(const Pack& p) {
    float now = most;
    each(p, [&](float v) { now = fmaxf(now, v); });
    sum *= rescale(most, now);
    each(p, [&](float v) { sum += rescale(v, now); });
    most = now;
  }
  MEMBER void merge(const Online& other) {
    const float now = fmaxf(most, other.most);
    sum = sum * rescale(most, now) + other.sum * rescale(other.most, now);
    most = now;
  }
};
DEVICE Online nothing() { return {NEG_INF, 0.f}; }

DEVICE Online over_warp(const Online& mine) {
  const float most = warp_max(mine.most);
  return {most, warp_sum(mine.sum * Online::rescale(mine.most, most))};
}
DEVICE Online over_block(Online mine, float2* shared) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  mine = over_warp(mine);
  if (lane == 0) shared[warp] = make_float2(mine.most, mine.sum);
  __syncthreads();
  return over_warp(lane < warps ? Online{shared[lane].x, shared[lane].y} : nothing());
}
DEVICE Online over_parts(const float2* parts, int count) {  // every warp for itself
  Online all = nothing();
  for (int p = threadIdx.x % 32; p < count; p += 32) all.merge({parts[p].x, parts[p].y});
  return over_warp(all);
}
DEVICE Pack share_of(const Pack& p, const Online& all, float share) {
  Floats x = unpacked(p);
#pragma unroll
  for (int j = 0; j < VEC; ++j) x.v[j] = exp2_of((x.v[j] - all.most) * LOG2_E) * share;
  return packed(x);
}

// N blocks a row, each with its part held on the chip
template <int P, int N> DEVICE void softmax_on_chip(const T* x, T* y, int packs) {
  __shared__ float2 of_warps[32], of_blocks[N];
  if (N > 1) cluster_arrive();
  const Part part(packs, blockIdx.x % N, N);
  const i64 start = (i64)(blockIdx.x / N) * packs + part.first;
  Held<P> row{dynamic_shared(), part.packs};
  row.fetch(x, [&](int c) { return start + c; });
  Online all = nothing();
  row.visit([&](const Pack& p, int) { all.take(p); });
  all = over_block(all, of_warps);
  if (N > 1) {
    exchange(of_blocks, make_float2(all.most, all.sum));
    all = over_parts(of_blocks, N);
  }
  const float share = 1.f / all.sum;
  row.visit([&](const Pack& p, int c) { store(y, start + c, share_of(p, all, share)); });
}
KERNEL __launch_bounds__(512, 3) softmax_held(const T* __restrict__ x, T* __restrict__ y, int packs) {
  softmax_on_chip<4, 1>(x, y, packs);
}
#define SOFTMAX_CLUSTER(N)                                                                                      \
  KERNEL CLUSTER_OF(N) __launch_bounds__(512, 3)                                                                \
  softmax_cluster_##N(const T* __restrict__ x, T* __restrict__ y, int packs) { softmax_on_chip<4, N>(x, y, packs); }
SOFTMAX_CLUSTER(2)
SOFTMAX_CLUSTER(4)
SOFTMAX_CLUSTER(8)

// The row read twice: once for maximum and sum together, once to write.
constexpr int AHEAD = 4;
KERNEL __launch_bounds__(1024, 1) softmax_online(const T* __restrict__ x, T* __restrict__ y, int packs) {
  __shared__ float2 of_warps[32];
  const i64 start = (i64)blockIdx.x * packs;
  const auto at = [&](int c) { return start + c; };
  Online all = nothing();
  stream<AHEAD>(x, packs, at, [&](const Pack& p, int) { all.take(p); });
  all = over_block(all, of_warps);
  const float share = 1.f / all.sum;
  stream<AHEAD>(x, packs, at, [&](const Pack& p, int c) { store(y, start + c, share_of(p, all, share)); });
}

// The same in two kernels, with `parts` blocks a row in each.
KERNEL __launch_bounds__(1024, 1) softmax_parts(const T* __restrict__ x, float2* __restrict__ of_parts, int packs,
                                                int parts) {
  __shared__ float2 of_warps[32];
  const Part part(packs, blockIdx.x % parts, parts);
  const i64 start = (i64)(blockIdx.x / parts) * packs + part.first;
  Online all = nothing();
  stream<AHEAD>(x, part.packs, [&](int c) { return start + c; }, [&](const Pack& p, int) { all.take(p); });
  all = over_block(all, of_warps);
  if (threadIdx.x == 0) of_parts[blockIdx.x] = make_float2(all.most, all.sum);
}
KERNEL __launch_bounds__(1024, 1) softmax_of_parts(const T* __restrict__ x, const float2* __restrict__ of_parts,
                                                   T* __restrict__ y, int packs, int parts) {
  // from the last row on: what the first kernel read last is still in the cache
  const int block = gridDim.x - 1 - blockIdx.x, row = block / parts;
  const Part part(packs, block % parts, parts);
  const i64 start = (i64)row * packs + part.first;
  const Online all = over_parts(of_parts + (i64)row * parts, parts);
  const float share = 1.f / all.sum;
  stream<AHEAD>(x, part.packs, [&](int c) { return start + c; },
                [&](const Pack& p, int c) { store(y, start + c, share_of(p, all, share)); });
}
