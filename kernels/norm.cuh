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

// Mean and 1 / √(variance + ε) of a row from sums of what its elements and their squares are beyond a pivot, one of
// them: both sums take one turn over the team, and the variance cancels only where the pivot is many standard
// deviations from the mean.
struct Statistics { float mean, rstd; };
DEVICE Statistics statistics_of(float pivot, float sum, float squares, const Norm& norm) {
  const float beyond = sum * norm.share(), variance = fmaxf(squares * norm.share() - beyond * beyond, 0.f);
  return {pivot + beyond, rsqrtf(variance + norm.epsilon)};
}

// P packs of each row of the team belong to a thread. Gamma is asked for before the sums, which take a while, unless it
// would be too much for the registers.
template <bool CENTRED, bool RESIDUAL, int P, class Team>
DEVICE void norm_in_registers(Team team, i64 rows, const Norm& norm) {
  constexpr int R = Team::ROWS, SQUARES = CENTRED ? R : 0;
  constexpr bool AHEAD = P <= 2;
  Pack held[R][P], other[R][P], ahead[P];
  i64 start[R];
  int mine[R];
  float pivot[R], sums[SQUARES + R];  // those of the elements, where they are needed, and those of their squares
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const i64 row = team.row(r);
    start[r] = row * norm.packs;
    mine[r] = row < rows ? norm.packs : 0;
    pivot[r] = sums[r] = sums[SQUARES + r] = 0.f;
    each_pack<P>(team, mine[r], [&](int k, int c) {
      held[r][k] = load(norm.x, start[r] + c);
      if (RESIDUAL) other[r][k] = load(norm.residual, start[r] + c);
    });
    if (CENTRED && mine[r]) {
      pivot[r] = to_float(norm.x[start[r] * VEC]);
      if (RESIDUAL) pivot[r] += to_float(norm.residual[start[r] * VEC]);
    }
  }
  if (AHEAD) each_pack<P>(team, norm.packs, [&](int k, int c) { ahead[k] = load(norm.gamma, c); });
#pragma unroll
  for (int r = 0; r < R; ++r)
    each_pack<P>(team, mine[r], [&](int k, int c) {
      if (RESIDUAL) {
        held[r][k] = sum_of(held[r][k], other[r][k]);
        store(norm.h, start[r] + c, held[r][k]);
      }
      each(held[r][k], [&](float v) {
        const float d = v - pivot[r];
        if (CENTRED) sums[r] += d;
        sums[SQUARES + r] += d * d;
      });
    });
  team.sum(sums);
  Statistics of[R];
#pragma unroll
  for (int r = 0; r < R; ++r) of[r] = statistics_of(pivot[r], CENTRED ? sums[r] : 0.f, sums[SQUARES + r], norm);
  each_pack<P>(team, norm.packs, [&](int k, int c) {
    const Pack gamma = AHEAD ? ahead[k] : load(norm.gamma, c), beta = CENTRED ? load(norm.beta, c) : Pack();
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (!Team::WHOLE && !mine[r]) continue;
      forget(*reinterpret_cast<uint4*>(&held[r][k]));
      store(norm.y, start[r] + c, normalised<CENTRED>(held[r][k], gamma, beta, of[r].mean, of[r].rstd));
    }
  });
}
