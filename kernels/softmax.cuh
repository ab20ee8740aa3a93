// Softmax of a row in registers.
constexpr float LOG2_E = 1.4426950408889634f;

// Replaces the values of the team's rows by their softmax and stores them; row r has `packs[r]` packs. An exponent is
// a difference times log2(e), not a difference of products: the latter would cancel where the values are large.
template <int R, int P, class Team>
DEVICE void softmax_of(Team team, const int (&packs)[R], Floats (&v)[R][P], T* y, const i64 (&start)[R]) {
  float most[R], sum[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    most[r] = NEG_INF;
    each_pack<P>(team, packs[r], [&](int k, int) {
#pragma unroll
      for (int j = 0; j < VEC; ++j) most[r] = fmaxf(most[r], v[r][k].v[j]);
    });
  }
  team.max(most);
#pragma unroll
  for (int r = 0; r < R; ++r) {
    sum[r] = 0.f;
    each_pack<P>(team, packs[r], [&](int k, int) {
#pragma unroll
      for (int j = 0; j < VEC; ++j) {
        v[r][k].v[j] = exp2_of((v[r][k].v[j] - most[r]) * LOG2_E);
        sum[r] += v[r][k].v[j];
      }
    });
  }
  team.sum(sum);
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const float share = 1.f / sum[r];
    each_pack<P>(team, packs[r], [&](int k, int c) {
#pragma unroll
      for (int j = 0; j < VEC; ++j) v[r][k].v[j] *= share;
      store(y, start[r] + c, packed(v[r][k]));
    });
  }
}
