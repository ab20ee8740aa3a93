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
  Floats x = unpacked(p);
  const Floats g = unpacked(gamma), b = unpacked(beta);
#pragma unroll
  for (int j = 0; j < VEC; ++j) {
    x.v[j] = (x.v[j] - mean) * rstd * g.v[j];
    if (CENTRED) x.v[j] += b.v[j];
  }
  return packed(x);
}
DEVICE Pack sum_of(const Pack& a, const Pack& b) {
  Floats x = unpacked(a);
  const Floats y = unpacked(b);
#pragma unroll
  for (int j = 0; j < VEC; ++j) x.v[j] += y.v[j];
  return packed(x);
}

// P packs of each row of the team belong to a thread
template <bool CENTRED, bool RESIDUAL, int P, class Team>
DEVICE void norm_in_registers(Team team, i64 rows, const Norm& norm) {
  constexpr int R = Team::ROWS;
  Pack held[R][P], other[R][P];
  i64 start[R];
  int mine[R];
  float sum[R], mean[R], squares[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const i64 row = team.row(r);
    start[r] = row * norm.packs;
    mine[r] = row < rows ? norm.packs : 0;
    sum[r] = mean[r] = squares[r] = 0.f;
    each_pack<P>(team, mine[r], [&](int k, int c) {
      held[r][k] = load(norm.x, start[r] + c);
      if (RESIDUAL) other[r][k] = load(norm.residual, start[r] + c);
    });
  }
  if (RESIDUAL)
#pragma unroll
    for (int r = 0; r < R; ++r)
      each_pack<P>(team, mine[r], [&](int k, int c) {
        held[r][k] = sum_of(held[r][k], other[r][k]);
        store(norm.h, start[r] + c, held[r][k]);
      });
  if (CENTRED) {
#pragma unroll
    for (int r = 0; r < R; ++r)
      each_pack<P>(team, mine[r], [&](int k, int) { each(held[r][k], [&](float v) { sum[r] += v; }); });
    team.sum(sum);
#pragma unroll
    for (int r = 0; r < R; ++r) mean[r] = sum[r] * norm.share();
  }
  // a second pass over registers: the variance does not cancel
#pragma unroll
  for (int r = 0; r < R; ++r)
    each_pack<P>(team, mine[r], [&](int k, int) {
      each(held[r][k], [&](float v) { squares[r] += (v - mean[r]) * (v - mean[r]); });
    });
  team.sum(squares);
  each_pack<P>(team, norm.packs, [&](int k, int c) {
    const Pack gamma = load(norm.gamma, c), beta = CENTRED ? load(norm.beta, c) : Pack();
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const float rstd = rsqrtf(squares[r] * norm.share() + norm.epsilon);
      if (Team::WHOLE || mine[r])
        store(norm.y, start[r] + c, normalised<CENTRED>(held[r][k], gamma, beta, mean[r], rstd));
    }
  });
}
