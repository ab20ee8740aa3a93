// Two operations that share nothing, in one launch: the first blocks do the one, the rest the other.
KERNEL relu_and_scale(const T* __restrict__ x, const T* __restrict__ y, T* __restrict__ rectified,
                      T* __restrict__ scaled, i64 n, i64 m, u32 first, float by) {
  const bool second = blockIdx.x >= first;
  const T* in = second ? y : x;
  T* out = second ? scaled : rectified;
  const i64 count = second ? m : n, packs = count / VEC;
  const u32 block = blockIdx.x - (second ? first : 0), last = (second ? gridDim.x - first : first) - 1;
  const auto f = [&](float v) { return second ? v * by : relu(v); };
  const i64 i = (i64)block * blockDim.x + threadIdx.x;
  if (i < packs) store(out, i, apply(f, load(in, i)));
  if (block == last)
    for (i64 j = packs * VEC + threadIdx.x; j < count; j += blockDim.x) from_float(f(to_float(in[j])), &out[j]);
}
