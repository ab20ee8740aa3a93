// Element-wise work on flat arrays: one pack a thread; the last block also takes the tail shorter than a pack.
// An output may be one of the inputs: a thread loads all it needs before it stores.

template <class F, class... X> DEVICE Floats each_of(F f, const X&... x) {
  Floats r;
#pragma unroll
  for (int j = 0; j < VEC; ++j) r.v[j] = f(x.v[j]...);
  return r;
}
template <class F, class... P> DEVICE Pack apply(F f, const P&... packs) {
  return packed(each_of(f, unpacked(packs)...));
}

template <class F, class... In> DEVICE void map_flat(i64 n, T* out, F f, const In*... in) {
  const i64 packs = n / VEC, i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < packs) store(out, i, apply(f, load(in, i)...));
  if (blockIdx.x == gridDim.x - 1)
    for (i64 j = packs * VEC + threadIdx.x; j < n; j += blockDim.x) from_float(f(to_float(in[j])...), &out[j]);
}
