// P packs of each row of the team belong to a thread
template <int P, class Team> DEVICE void softmax(const Team& team, i64 rows, const T* x, T* y, int packs) {
  constexpr int R = Team::ROWS;
  Pack held[R][P];
  Floats v[R][P];
  i64 start[R];
  int mine[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const i64 row = team.row(r);
    start[r] = row * packs;
    mine[r] = row < rows ? packs : 0;
    each_pack<P>(team, mine[r], [&](int k, int c) { held[r][k] = load(x, start[r] + c); });
  }
#pragma unroll
  for (int r = 0; r < R; ++r)
    each_pack<P>(team, mine[r], [&](int k, int) { v[r][k] = unpacked(held[r][k]); });
  softmax_of(team, mine, v, y, start);
}

// __launch_bounds__ caps registers at 64, so that a block of 1024 threads can be launched at all
#define SOFTMAX_OF_BLOCK(P)                                                                               \
  KERNEL __launch_bounds__(1024, 1) softmax_##P(const T* __restrict__ x, T* __restrict__ y, int packs) {  \
    __shared__ float shared[2 * 32];                                                                      \
    with_block<P>(shared, packs, [&](auto team) { softmax<P>(team, gridDim.x, x, y, packs); });           \
  }
SOFTMAX_OF_BLOCK(1)
SOFTMAX_OF_BLOCK(2)
#define SOFTMAX_OF_LANES(P)                                                                               \
  KERNEL softmax_lanes_##P(const T* __restrict__ x, T* __restrict__ y, int packs, int lanes, i64 rows) {  \
    with_lanes<4, P>(lanes, rows, packs, [&](auto team) { softmax<P>(team, rows, x, y, packs); });        \
  }
SOFTMAX_OF_LANES(1)
SOFTMAX_OF_LANES(2)
