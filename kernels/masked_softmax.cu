// x is [heads, queries, keys], one row a query; the mask's row is that of the query, whatever the head.
DEVICE Floats masked(const Pack& x, const Pack& mask, float scale) {
  Floats v = unpacked(x);
  const Floats m = unpacked(mask);
#pragma unroll
  for (int j = 0; j < VEC; ++j) v.v[j] = v.v[j] * scale + m.v[j];
  return v;
}

// A block takes the rows of one query in some heads, one after the other: the mask stays in registers, and the scores
// of the next head are under way while those of this one are summed.
template <int P, class Team>
DEVICE void masked_softmax_of_block(const Team& team, const T* x, const T* mask, T* y, int packs, int queries,
                                    int heads, int heads_a_block, float scale) {
  const int query = blockIdx.x % (u32)queries, first = (int)(blockIdx.x / (u32)queries) * heads_a_block;
  const int end = min(heads, first + heads_a_block);
  const i64 of_head = (i64)queries * packs;
  const int mine[1] = {packs};
  i64 start[1] = {first * of_head + (i64)query * packs};
  Pack next[P], beside[P];
  each_pack<P>(team, packs, [&](int k, int c) {
    next[k] = load(x, start[0] + c);
    beside[k] = load(mask, (i64)query * packs + c);
  });
  for (int head = first; head < end; ++head, start[0] += of_head) {
    Floats v[1][P];
    each_pack<P>(team, packs, [&](int k, int) { v[0][k] = masked(next[k], beside[k], scale); });
    if (head + 1 < end) each_pack<P>(team, packs, [&](int k, int c) { next[k] = load(x, start[0] + of_head + c); });
    // its two sums take turns with the shared memory: who writes one has passed the barrier behind the other
    softmax_of(team, mine, v, y, start);
  }
}

// __launch_bounds__ caps registers at 64, so that a block of 1024 threads can be launched at all; four packs of scores
// and of the mask would not fit.
#define MASKED_SOFTMAX_OF_BLOCK(P)                                                                            \
  KERNEL __launch_bounds__(1024, 1) masked_softmax_##P(const T* __restrict__ x, const T* __restrict__ mask,   \
                                                       T* __restrict__ y, int packs, int queries, int heads,  \
                                                       int heads_a_block, float scale) {                      \
    __shared__ float shared[2 * 32];                                                                          \
    with_block<P>(shared, packs, [&](auto team) {                                                             \
      masked_softmax_of_block<P>(team, x, mask, y, packs, queries, heads, heads_a_block, scale);              \
    });                                                                                                       \
  }
MASKED_SOFTMAX_OF_BLOCK(1)
MASKED_SOFTMAX_OF_BLOCK(2)

template <int P, class Team>
DEVICE void masked_softmax_of_lanes(const Team& team, i64 rows, const T* x, const T* mask, T* y, int packs,
                                    int queries, float scale) {
  constexpr int R = Team::ROWS;
  Pack held[R][P], beside[R][P];
  Floats v[R][P];
  i64 start[R];
  int mine[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const i64 row = team.row(r), mask_start = (i64)((u32)row % (u32)queries) * packs;
    start[r] = row * packs;
    mine[r] = row < rows ? packs : 0;
    each_pack<P>(team, mine[r], [&](int k, int c) {
      held[r][k] = load(x, start[r] + c);
      beside[r][k] = load(mask, mask_start + c);
    });
  }
#pragma unroll
  for (int r = 0; r < R; ++r)
    each_pack<P>(team, mine[r], [&](int k, int) { v[r][k] = masked(held[r][k], beside[r][k], scale); });
  softmax_of(team, mine, v, y, start);
}
#define MASKED_SOFTMAX_OF_LANES(P)                                                                         \
  KERNEL masked_softmax_lanes_##P(const T* __restrict__ x, const T* __restrict__ mask, T* __restrict__ y,  \
                                  int packs, int lanes, i64 rows, int queries, float scale) {              \
    with_lanes<2, P>(lanes, rows, packs, [&](auto team) {                                                  \
      masked_softmax_of_lanes<P>(team, rows, x, mask, y, packs, queries, scale);                           \
    });                                                                                                    \
  }
MASKED_SOFTMAX_OF_LANES(1)
MASKED_SOFTMAX_OF_LANES(2)
