template <int P> DEVICE void softmax(const T* __restrict__ x, T* __restrict__ y, int packs) {
  __shared__ float shared[2][32];
  const i64 start = (i64)blockIdx.x * packs;
  const float log2_e = 1.4426950408889634f;
  Pack held[P];
  each_pack<P>(packs, [&](int k, int c) { held[k] = load(x, start + c); });
  float most = NEG_INF;
  each_pack<P>(packs, [&](int k, int) { each(held[k], [&](float v) { most = fmaxf(most, v); }); });
  most = block_max(most, shared[0]);
  float e[P][VEC], sum = 0.f;
  each_pack<P>(packs, [&](int k, int) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      e[k][j] = exp2f((to_float(held[k].v[j]) - most) * log2_e);
      sum += e[k][j];
    }
  });
  const float share = 1.f / block_sum(sum, shared[1]);
  each_pack<P>(packs, [&](int k, int c) {
    Pack r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) from_float(e[k][j] * share, &r.v[j]);
    store(y, start + c, r);
  });
}

// __launch_bounds__ caps registers at 64, so that a block of 1024 threads can be launched at all
#define SOFTMAX(P)                                                                                         \
  KERNEL __launch_bounds__(1024, 1) softmax_##P(const T* __restrict__ x, T* __restrict__ y, int packs) {   \
    softmax<P>(x, y, packs);                                                                               \
  }
SOFTMAX(1)
SOFTMAX(2)
SOFTMAX(4)
