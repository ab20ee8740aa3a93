// The sum is rounded to T before it is normalised, as the step-by-step version does: `h` is an output too.
template <int P>
DEVICE void residual_layernorm(const T* __restrict__ x, const T* __restrict__ residual, const T* __restrict__ gamma,
                               const T* __restrict__ beta, T* __restrict__ h, T* __restrict__ y, int packs,
                               float epsilon) {
  __shared__ float shared[2][32];
  const i64 start = (i64)blockIdx.x * packs;
  const float share = 1.f / ((float)packs * VEC);
  Pack held[P], other[P];
  each_pack<P>(packs, [&](int k, int c) {
    held[k] = load(x, start + c);
    other[k] = load(residual, start + c);
  });
  float sum = 0.f;
  each_pack<P>(packs, [&](int k, int c) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) from_float(to_float(held[k].v[j]) + to_float(other[k].v[j]), &held[k].v[j]);
    store(h, start + c, held[k]);
    each(held[k], [&](float v) { sum += v; });
  });
  const float mean = block_sum(sum, shared[0]) * share;
  float squares = 0.f;  // a second pass over registers: the variance does not cancel
  each_pack<P>(packs, [&](int k, int) { each(held[k], [&](float v) { squares += (v - mean) * (v - mean); }); });
  const float rstd = rsqrtf(block_sum(squares, shared[1]) * share + epsilon);
  each_pack<P>(packs, [&](int k, int c) {
    const Pack g = load(gamma, c), b = load(beta, c);
    Pack r;
#pragma unroll
    for (int j = 0; j < VEC; ++j)
      from_float((to_float(held[k].v[j]) - mean) * rstd * to_float(g.v[j]) + to_float(b.v[j]), &r.v[j]);
    store(y, start + c, r);
  });
}

// __launch_bounds__ caps registers at 64, so that a block of 1024 threads can be launched at all
#define RESIDUAL_LAYERNORM(P)                                                                                  \
  KERNEL __launch_bounds__(1024, 1) residual_layernorm_##P(                                                    \
      const T* __restrict__ x, const T* __restrict__ residual, const T* __restrict__ gamma,                    \
      const T* __restrict__ beta, T* __restrict__ h, T* __restrict__ y, int packs, float epsilon) {            \
    residual_layernorm<P>(x, residual, gamma, beta, h, y, packs, epsilon);                                     \
  }
RESIDUAL_LAYERNORM(1)
RESIDUAL_LAYERNORM(2)
RESIDUAL_LAYERNORM(4)
