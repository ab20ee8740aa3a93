// Element-wise work on a [rows, packs] matrix with one value a column or a row beside it. A thread owns one pack
// of columns for ROWS rows: the column values are loaded once and stay in registers.
// out[r][c] = f(in[0][r][c].., column[0][c].., row[0][r]..); out may be one of the inputs.
constexpr int ROWS = 2;

template <int N> struct Arrays { const T* at[N ? N : 1]; };
template <int N> struct RowValues { const float* at[N ? N : 1]; };

template <int IN, int COLUMN, int ROW, class F>
DEVICE void map_matrix(i64 rows, int packs, int across, T* out, F f, Arrays<IN> in, Arrays<COLUMN> column,
                       RowValues<ROW> row) {
  const int c = (int)(blockIdx.x % across) * blockDim.x + threadIdx.x;
  if (c >= packs) return;
  const i64 first = (i64)(blockIdx.x / across) * ROWS;
  Pack beside[COLUMN ? COLUMN : 1], held[ROWS][IN];
#pragma unroll
  for (int a = 0; a < COLUMN; ++a) beside[a] = load(column.at[a], c);
#pragma unroll
  for (int k = 0; k < ROWS; ++k)
#pragma unroll
    for (int a = 0; a < IN; ++a)
      if (first + k < rows) held[k][a] = load(in.at[a], (first + k) * packs + c);
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    if (first + k >= rows) return;
    float of_row[ROW ? ROW : 1];
#pragma unroll
    for (int a = 0; a < ROW; ++a) of_row[a] = row.at[a][first + k];
    Pack r;
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      float x[IN], of_column[COLUMN ? COLUMN : 1];
#pragma unroll
      for (int a = 0; a < IN; ++a) x[a] = to_float(held[k][a].v[j]);
#pragma unroll
      for (int a = 0; a < COLUMN; ++a) of_column[a] = to_float(beside[a].v[j]);
      from_float(f(x, of_column, of_row), &r.v[j]);
    }
    store(out, (first + k) * packs + c, r);
  }
}
