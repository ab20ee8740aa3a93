// Layer norm of long rows: held on the chip by one block, or read twice.
KERNEL __launch_bounds__(512, 3) layernorm_held(const T* __restrict__ x, const T* __restrict__ gamma,
                                                const T* __restrict__ beta, T* __restrict__ y, int packs,
                                                float epsilon) {
  __shared__ float shared[2][32];
  const Norm norm{x, nullptr, gamma, beta, nullptr, y, packs, epsilon};
  const i64 start = (i64)blockIdx.x * packs;
  Held<4> row{dynamic_shared(), packs};
  row.fetch(x, [&](int c) { return start + c; });
  float sum = 0.f, squares = 0.f;
  row.visit([&](const Pack& p, int) { each(p, [&](float v) { sum += v; }); });
  const float mean = block_sum(sum, shared[0]) * norm.share();
  row.visit([&](const Pack& p, int) { each(p, [&](float v) { squares += (v - mean) * (v - mean); }); });
  const float rstd = rsqrtf(block_sum(squares, shared[1]) * norm.share() + epsilon);
  row.visit([&](const Pack& p, int c) {
    store(y, start + c, normalised<true>(p, load(gamma, c), load(beta, c), mean, rstd));
  });
}

KERNEL __launch_bounds__(1024, 1) layernorm_multipass(const T* __restrict__ x, const T* __restrict__ gamma,
                                                      const T* __restrict__ beta, T* __restrict__ y, int packs,
                                                      float epsilon) {
  __shared__ Moments of_warps[32];
  const Norm norm{x, nullptr, gamma, beta, nullptr, y, packs, epsilon};
  const i64 start = (i64)blockIdx.x * packs;
  const auto at = [&](int c) { return start + c; };
  Moments all{0.f, 0.f, 0.f};
  stream<4>(x, packs, at, [&](const Pack& p, int) { all.take(p); });
  all = over_block(all, of_warps);
  const float rstd = rsqrtf(all.squares * norm.share() + epsilon);
  stream<4>(x, packs, at, [&](const Pack& p, int c) {
    store(y, start + c, normalised<true>(p, load(gamma, c), load(beta, c), all.mean, rstd));
  });
}
