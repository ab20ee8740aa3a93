// What follows a matrix product, in one pass over its result, in place where the result keeps its shape.

struct BiasRelu {
  MEMBER float operator()(const float* x, const float* column, const float*) const { return relu(x[0] + column[0]); }
};
struct BiasMaskRelu {
  MEMBER float operator()(const float* x, const float* column, const float*) const {
    return relu((x[0] + column[0]) * x[1]);
  }
};

KERNEL bias_relu(T* y, const T* bias, i64 rows, int packs, int across) {
  map_matrix<1, 1, 0>(rows, packs, across, y, BiasRelu(), {{y}}, {{bias}}, {{nullptr}});
}
KERNEL bias_mask_relu(T* y, const T* bias, const T* mask, i64 rows, int packs, int across) {
  map_matrix<2, 1, 0>(rows, packs, across, y, BiasMaskRelu(), {{y, mask}}, {{bias}}, {{nullptr}});
}

// The gate of a SwiGLU layer behind one product with both weights side by side: a row of `x` is `packs` packs of gates
// and as many of what they let through.
KERNEL swiglu(const T* __restrict__ x, T* __restrict__ out, i64 rows, int packs, int across) {
  const int c = (int)(blockIdx.x % across) * blockDim.x + threadIdx.x;
  if (c >= packs) return;
  const i64 first = (i64)(blockIdx.x / across) * ROWS;
  Pack gate[ROWS], up[ROWS];
#pragma unroll
  for (int k = 0; k < ROWS; ++k)
    if (first + k < rows) {
      gate[k] = load(x, (first + k) * 2 * packs + c);
      up[k] = load(x, (first + k) * 2 * packs + packs + c);
    }
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    if (first + k >= rows) return;
    Pack r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float g = to_float(gate[k].v[j]);
      from_float(__fdividef(g, 1.f + exp2f(g * -1.4426950408889634f)) * to_float(up[k].v[j]), &r.v[j]);
    }
    store(out, (first + k) * packs + c, r);
  }
}
