// Element-wise work on a [rows, packs] matrix with one value a column or a row beside it. A thread owns one pack
// of columns for ROWS rows: the column values are loaded once and stay in registers.
// out[r][c] = f(in[0][r][c].., column[0][c].., row[0][r]..); out may be one of the inputs.
constexpr int ROWS = 2;

template <int N> struct Arrays { const T* at[N ? N : 1]; };
template <int N> struct RowValues { const float* at[N ? N : 1]; };

template <int IN, int COLUMN, int ROW, class F>
DEVICE void map_matrix(i64 rows, int packs, int across, T* out, F f, Arrays<IN> in, Arrays<COLUMN> column,
                       RowValues<ROW> row) {
  const u32 group = across == 1 ? blockIdx.x : blockIdx.x / (u32)across;
  const int c = (int)(blockIdx.x - group * across) * blockDim.x + threadIdx.x;
  if (c >= packs) return;
  const i64 first = (i64)group * ROWS;
  Pack beside[COLUMN ? COLUMN : 1], held[ROWS][IN];
#pragma unroll
  for (int k = 0; k < ROWS; ++k)  // first, since they take the longest
#pragma unroll
    for (int a = 0; a < IN; ++a)
      if (first + k < rows) held[k][a] = load(in.at[a], (first + k) * packs + c);
#pragma unroll
  for (int a = 0; a < COLUMN; ++a) beside[a] = load(column.at[a], c);
#pragma unroll
  for (int k = 0; k < ROWS; ++k) {
    if (first + k >= rows) return;
    float of_row[ROW ? ROW : 1];
#pragma unroll
    for (int a = 0; a < ROW; ++a) of_row[a] = row.at[a][first + k];
    Floats x[IN], columns[COLUMN ? COLUMN : 1], r;
#pragma unroll
    for (int a = 0; a < IN; ++a) x[a] = unpacked(held[k][a]);
#pragma unroll
    for (int a = 0; a < COLUMN; ++a) columns[a] = unpacked(beside[a]);
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      float of_element[IN], of_column[COLUMN ? COLUMN : 1];
#pragma unroll
      for (int a = 0; a < IN; ++a) of_element[a] = x[a].v[j];
#pragma unroll
      for (int a = 0; a < COLUMN; ++a) of_column[a] = columns[a].v[j];
      r.v[j] = f(of_element, of_column, of_row);
    }
    store(out, (first + k) * packs + c, packed(r));
  }
}
