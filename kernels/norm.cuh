// Normalisation of rows: with the mean taken away (layer norm) or not (RMS norm), of x or of x + residual. The sum is
// rounded to T before it is normalised, as the step-by-step version does: it is an output too.
struct Norm {
  const T *x, *residual, *gamma, *beta;  // without a residual or a mean, those pointers are null
  T *h, *y;                              // h: where the sum goes
  int packs;
  float epsilon;

  MEMBER float share() const { return 1.f / ((float)packs * VEC); }
};

template <bool CENTRED>
DEVICE Pack normalised(const Pack& p, const Pack& gamma, const Pack& beta, float mean, float rstd) {
  Pack r;
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    const float scaled = (to_float(p.v[j]) - mean) * rstd * to_float(gamma.v[j]);
    from_float(CENTRED ? scaled + to_float(beta.v[j]) : scaled, &r.v[j]);
  }
  return r;
}

template <bool CENTRED, bool RESIDUAL, int P, class Team>
DEVICE void norm_in_registers(Team team, i64 row, i64 rows, const Norm& norm) {
  const i64 start = row * norm.packs;
  const int mine = row < rows ? norm.packs : 0;
  Pack held[P], other[P];
  each_pack<P>(team, mine, [&](int k, int c) {
    held[k] = load(norm.x, start + c);
    if (RESIDUAL) other[k] = load(norm.residual, start + c);
  });
  float sum = 0.f, mean = 0.f, squares = 0.f;
  if (RESIDUAL)
    each_pack<P>(team, mine, [&](int k, int c) {
#pragma unroll
      for (int j = 0; j < VEC; ++j) from_float(to_float(held[k].v[j]) + to_float(other[k].v[j]), &held[k].v[j]);
      store(norm.h, start + c, held[k]);
    });
  if (CENTRED) {
    each_pack<P>(team, mine, [&](int k, int) { each(held[k], [&](float v) { sum += v; }); });
    mean = team.sum(sum) * norm.share();
  }
  // a second pass over registers: the variance does not cancel
  each_pack<P>(team, mine, [&](int k, int) { each(held[k], [&](float v) { squares += (v - mean) * (v - mean); }); });
  const float rstd = rsqrtf(team.sum(squares) * norm.share() + norm.epsilon);
  each_pack<P>(team, mine, [&](int k, int c) {
    const Pack gamma = load(norm.gamma, c), beta = CENTRED ? load(norm.beta, c) : Pack();
    store(norm.y, start + c, normalised<CENTRED>(held[k], gamma, beta, mean, rstd));
  });
}
