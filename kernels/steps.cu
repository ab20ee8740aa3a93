// Single steps, each as good as a kernel of its own can be: the yardstick beside library calls and fused kernels.

struct Add { MEMBER float operator()(float a, float b) const { return a + b; } };
struct Multiply { MEMBER float operator()(float a, float b) const { return a * b; } };
struct Divide { MEMBER float operator()(float a, float b) const { return a / b; } };
struct Same { MEMBER float operator()(float x) const { return x; } };
struct Relu { MEMBER float operator()(float x) const { return relu(x); } };
struct Exp { MEMBER float operator()(float x) const { return expf(x); } };
struct Tanh { MEMBER float operator()(float x) const { return tanhf(x); } };
struct Scale { float by; MEMBER float operator()(float x) const { return x * by; } };
struct Shift { float by; MEMBER float operator()(float x) const { return x + by; } };

KERNEL add(const T* a, const T* b, T* out, i64 n) { map_flat(n, out, Add(), a, b); }
KERNEL multiply(const T* a, const T* b, T* out, i64 n) { map_flat(n, out, Multiply(), a, b); }
KERNEL divide(const T* a, const T* b, T* out, i64 n) { map_flat(n, out, Divide(), a, b); }
KERNEL copy_of(const T* x, T* out, i64 n) { map_flat(n, out, Same(), x); }
KERNEL relu_of(const T* x, T* out, i64 n) { map_flat(n, out, Relu(), x); }
KERNEL exp_of(const T* x, T* out, i64 n) { map_flat(n, out, Exp(), x); }
KERNEL tanh_of(const T* x, T* out, i64 n) { map_flat(n, out, Tanh(), x); }
KERNEL scale(const T* x, T* out, i64 n, float by) { map_flat(n, out, Scale{by}, x); }
KERNEL shift(const T* x, T* out, i64 n, float by) { map_flat(n, out, Shift{by}, x); }

struct ByColumn {
  int sign;  // -1 subtract, 1 add, 0 multiply
  MEMBER float operator()(const float* x, const float* column, const float*) const {
    return sign ? x[0] + sign * column[0] : x[0] * column[0];
  }
};
#define COLUMN_STEP(name, sign)                                                                       \
  KERNEL name(const T* x, const T* column, T* out, i64 rows, int packs, int across) {                 \
    map_matrix<1, 1, 0>(rows, packs, across, out, ByColumn{sign}, {{x}}, {{column}}, {{nullptr}});    \
  }
COLUMN_STEP(subtract_column, -1)
COLUMN_STEP(add_column, 1)
COLUMN_STEP(multiply_column, 0)

struct SubtractRow {
  MEMBER float operator()(const float* x, const float*, const float* row) const { return x[0] - row[0]; }
};
struct DivideRow {
  MEMBER float operator()(const float* x, const float*, const float* row) const { return x[0] / row[0]; }
};
KERNEL subtract_row(const T* x, const float* row, T* out, i64 rows, int packs, int across) {
  map_matrix<1, 0, 1>(rows, packs, across, out, SubtractRow(), {{x}}, {{nullptr}}, {{row}});
}
KERNEL divide_row(const T* x, const float* row, T* out, i64 rows, int packs, int across) {
  map_matrix<1, 0, 1>(rows, packs, across, out, DivideRow(), {{x}}, {{nullptr}}, {{row}});
}

// all loads of a thread before the first use, as in the fused kernels
DEVICE void load_row(const T* x, int packs, Pack (&held)[4]) {
  const i64 start = (i64)blockIdx.x * packs;
  each_pack<4>(packs, [&](int k, int c) { held[k] = load(x, start + c); });
}
DEVICE float sum_of_row(const T* x, int packs) {
  __shared__ float shared[32];
  Pack held[4];
  load_row(x, packs, held);
  float sum = 0.f;
  each_pack<4>(packs, [&](int k, int) { each(held[k], [&](float v) { sum += v; }); });
  return block_sum(sum, shared);
}
KERNEL row_max(const T* x, float* out, int packs) {
  __shared__ float shared[32];
  Pack held[4];
  load_row(x, packs, held);
  float most = NEG_INF;
  each_pack<4>(packs, [&](int k, int) { each(held[k], [&](float v) { most = fmaxf(most, v); }); });
  most = block_max(most, shared);
  if (threadIdx.x == 0) out[blockIdx.x] = most;
}
KERNEL row_sum(const T* x, float* out, int packs) {
  const float sum = sum_of_row(x, packs);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
KERNEL row_mean(const T* x, float* out, int packs) {
  const float sum = sum_of_row(x, packs);
  if (threadIdx.x == 0) out[blockIdx.x] = sum / ((float)packs * VEC);
}
KERNEL root_of_rows(float* rows_values, i64 n, float shift_by) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) rows_values[i] = sqrtf(rows_values[i] + shift_by);
}
