// The softmax between the two products of attention, row by row of the scores, in place. A row has `keys` scores and
// is stored in `packs` packs; what lies between the two is written as zero.
struct Scores {
  int queries, keys, causal;
  // how many scores of a row count, which is at least 1
  MEMBER int seen() const {
    return causal ? (int)(blockIdx.x % queries) + 1 + keys - queries : keys;
  }
};

// one exponential and one rounding per score; packs that are masked as a whole are not read
template <int P> DEVICE void scale_mask_softmax(T* __restrict__ x, int packs, const Scores& scores, float scale) {
  __shared__ float shared[2][32];
  const i64 start = (i64)blockIdx.x * packs;
  const int seen = scores.seen();
  Pack held[P];
  float e[P][VEC], most = NEG_INF, sum = 0.f;
  each_pack<P>(packs, [&](int k, int c) {
    if (c * VEC < seen) held[k] = load(x, start + c);
  });
  each_pack<P>(packs, [&](int k, int c) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      e[k][j] = c * VEC + j < seen ? to_float(held[k].v[j]) * scale : NEG_INF;
      most = fmaxf(most, e[k][j]);
    }
  });
  most = block_max(most, shared[0]);
  each_pack<P>(packs, [&](int k, int) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      e[k][j] = exp2f(e[k][j] - most);
      sum += e[k][j];
    }
  });
  const float share = 1.f / block_sum(sum, shared[1]);
  each_pack<P>(packs, [&](int k, int c) {
    Pack r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) from_float(e[k][j] * share, &r.v[j]);
    store(x, start + c, r);
  });
}

// __launch_bounds__ caps registers at 64, so that a block of 1024 threads can be launched at all
#define SCALE_MASK_SOFTMAX(P)                                                                              \
  KERNEL __launch_bounds__(1024, 1) scale_mask_softmax_##P(T* __restrict__ x, int packs, int queries,      \
                                                           int keys, int causal, float scale) {            \
    scale_mask_softmax<P>(x, packs, Scores{queries, keys, causal}, scale);                                 \
  }
SCALE_MASK_SOFTMAX(1)
SCALE_MASK_SOFTMAX(2)
SCALE_MASK_SOFTMAX(4)

// the mask as a step of its own: what a query must not see becomes -inf
KERNEL causal_mask(const T* x, T* out, int packs, int queries, int keys) {
  const i64 start = (i64)blockIdx.x * packs;
  const int seen = Scores{queries, keys, 1}.seen();
  for (int c = threadIdx.x; c < packs; c += blockDim.x) {
    Pack r = load(x, start + c);
#pragma unroll
    for (int j = 0; j < VEC; ++j)
      if (c * VEC + j >= seen) from_float(NEG_INF, &r.v[j]);
    store(out, start + c, r);
  }
}
