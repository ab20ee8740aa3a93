// A thread owns one pack of columns for TOKENS tokens: as many rows of the table are on their way at once.
constexpr int TOKENS = 2;

// f(pack, i): what goes into pack i of the output
template <class F>
DEVICE void gather(const T* table, const int* ids, T* out, i64 tokens, int packs, int across, F f) {
  const int c = (int)(blockIdx.x % across) * blockDim.x + threadIdx.x;
  if (c >= packs) return;
  const i64 first = (i64)(blockIdx.x / across) * TOKENS;
  Pack held[TOKENS];
#pragma unroll
  for (int k = 0; k < TOKENS; ++k)
    if (first + k < tokens) held[k] = load(table, (i64)ids[first + k] * packs + c);
#pragma unroll
  for (int k = 0; k < TOKENS; ++k) {
    const i64 i = (first + k) * packs + c;
    if (first + k < tokens) store(out, i, f(held[k], i));
  }
}

KERNEL embedding_dropout(const T* __restrict__ table, const int* __restrict__ ids, T* __restrict__ out, i64 tokens,
                         int packs, int across, u64 key, u32 threshold, float scale) {
  gather(table, ids, out, tokens, packs, across, [&](const Pack& p, i64 i) {
    const Draws d = draws_of(i, key);
    Pack r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) from_float(d.v[j] >= threshold ? to_float(p.v[j]) * scale : 0.f, &r.v[j]);
    return r;
  });
}
// the step of its own
KERNEL gather_rows(const T* __restrict__ table, const int* __restrict__ ids, T* __restrict__ out, i64 tokens, int packs,
                   int across) {
  gather(table, ids, out, tokens, packs, across, [](const Pack& p, i64) { return p; });
}
