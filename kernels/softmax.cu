template <int P, class Team> DEVICE void softmax(const Team& team, i64 row, i64 rows, const T* x, T* y, int packs) {
  const i64 start = row * packs;
  const int mine = row < rows ? packs : 0;
  Pack held[P];
  float v[P][VEC];
  each_pack<P>(team, mine, [&](int k, int c) { held[k] = load(x, start + c); });
  each_pack<P>(team, mine, [&](int k, int) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) v[k][j] = to_float(held[k].v[j]);
  });
  softmax_of<P>(team, mine, v, y, start);
}

// __launch_bounds__ caps registers at 64, so that a block of 1024 threads can be launched at all
#define SOFTMAX_OF_BLOCK(P)                                                                               \
  KERNEL __launch_bounds__(1024, 1) softmax_##P(const T* __restrict__ x, T* __restrict__ y, int packs) {  \
    __shared__ float shared[2 * 32];                                                                      \
    softmax<P>(BlockTeam{shared}, blockIdx.x, gridDim.x, x, y, packs);                                    \
  }
SOFTMAX_OF_BLOCK(1)
SOFTMAX_OF_BLOCK(2)
#define SOFTMAX_OF_LANES(P)                                                                               \
  KERNEL softmax_lanes_##P(const T* __restrict__ x, T* __restrict__ y, int packs, int lanes, i64 rows) {  \
    const LaneTeam team{lanes};                                                                           \
    softmax<P>(team, team.row(), rows, x, y, packs);                                                      \
  }
SOFTMAX_OF_LANES(1)
SOFTMAX_OF_LANES(4)
