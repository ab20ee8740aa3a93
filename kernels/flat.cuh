// Element-wise work on flat arrays: one pack a thread; the last block also takes the tail shorter than a pack.
// An output may be one of the inputs: a thread loads all it needs before it stores.

template <class F, class... P> DEVICE Pack apply(F f, const P&... packs) {
  Pack r;
#pragma unroll
  for (int j = 0; j < VEC; ++j) from_float(f(to_float(packs.v[j])...), &r.v[j]);
  return r;
}

template <class F, class... In> DEVICE void map_flat(i64 n, T* out, F f, const In*... in) {
  const i64 packs = n / VEC, i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < packs) store(out, i, apply(f, load(in, i)...));
  if (blockIdx.x == gridDim.x - 1)
    for (i64 j = packs * VEC + threadIdx.x; j < n; j += blockDim.x) from_float(f(to_float(in[j])...), &out[j]);
}
