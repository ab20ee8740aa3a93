// Softmax of a row in registers.
constexpr float LOG2_E = 1.4426950408889634f;

// 2 to the power of x; results below 2^-126 are zero
DEVICE float exp2_of(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

// Replaces the team's values by their softmax and stores them. An exponent is a difference times log2(e), not a
// difference of products: the latter would cancel where the values are large.
template <int P, class Team> DEVICE void softmax_of(Team team, int packs, float (&v)[P][VEC], T* y, i64 start) {
  float most = NEG_INF;
  each_pack<P>(team, packs, [&](int k, int) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) most = fmaxf(most, v[k][j]);
  });
  most = team.max(most);
  float sum = 0.f;
  each_pack<P>(team, packs, [&](int k, int) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      v[k][j] = exp2_of((v[k][j] - most) * LOG2_E);
      sum += v[k][j];
    }
  });
  const float share = 1.f / team.sum(sum);
  each_pack<P>(team, packs, [&](int k, int c) {
    Pack r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) from_float(v[k][j] * share, &r.v[j]);
    store(y, start + c, r);
  });
}
