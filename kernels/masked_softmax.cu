// x is [heads, queries, keys], one row a query; the mask's row is that of the query, whatever the head.
template <int P, class Team>
DEVICE void masked_softmax(const Team& team, i64 row, i64 rows, const T* x, const T* mask, T* y, int packs, int queries,
                           float scale) {
  const i64 start = row * packs, mask_start = (i64)((u32)row % (u32)queries) * packs;
  const int mine = row < rows ? packs : 0;
  Pack held[P], beside[P];
  float v[P][VEC];
  each_pack<P>(team, mine, [&](int k, int c) {
    held[k] = load(x, start + c);
    beside[k] = load(mask, mask_start + c);
  });
  each_pack<P>(team, mine, [&](int k, int) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) v[k][j] = to_float(held[k].v[j]) * scale + to_float(beside[k].v[j]);
  });
  softmax_of<P>(team, mine, v, y, start);
}

// __launch_bounds__ caps registers at 64, so that a block of 1024 threads can be launched at all; four packs of scores
// and of the mask would not fit.
#define MASKED_SOFTMAX_OF_BLOCK(P)                                                                                  \
  KERNEL __launch_bounds__(1024, 1) masked_softmax_##P(const T* __restrict__ x, const T* __restrict__ mask,      \
                                                       T* __restrict__ y, int packs, int queries, float scale) { \
    __shared__ float shared[2 * 32];                                                                             \
    masked_softmax<P>(BlockTeam{shared}, blockIdx.x, gridDim.x, x, mask, y, packs, queries, scale);              \
  }
MASKED_SOFTMAX_OF_BLOCK(1)
MASKED_SOFTMAX_OF_BLOCK(2)
#define MASKED_SOFTMAX_OF_LANES(P)                                                                             \
  KERNEL masked_softmax_lanes_##P(const T* __restrict__ x, const T* __restrict__ mask, T* __restrict__ y,   \
                                  int packs, int lanes, i64 rows, int queries, float scale) {               \
    const LaneTeam team{lanes};                                                                             \
    masked_softmax<P>(team, team.row(), rows, x, mask, y, packs, queries, scale);                           \
  }
MASKED_SOFTMAX_OF_LANES(1)
MASKED_SOFTMAX_OF_LANES(4)
