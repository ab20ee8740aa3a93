KERNEL dropout_relu(const T* __restrict__ x, T* __restrict__ out, i64 n, u64 key, u32 threshold, float scale) {
  const i64 packs = n / VEC, i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < packs) {
    const Pack p = load(x, i);
    const Draws d = draws_of(i, key);
    Pack r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) from_float(d.v[j] >= threshold ? relu(to_float(p.v[j])) * scale : 0.f, &r.v[j]);
    store(out, i, r);
  }
  if (blockIdx.x == gridDim.x - 1)
    for (i64 j = packs * VEC + threadIdx.x; j < n; j += blockDim.x)
      from_float(draw_of(j, key) >= threshold ? relu(to_float(x[j])) * scale : 0.f, &out[j]);
}
