// The functions of cuBLASLt that kernels/cublaslt.py calls, for float32 on a CPU: what they are documented to do, with
// the arguments checked that a real library would take on trust. No C++ standard library is needed.
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>

namespace {
enum Status { SUCCESS = 0, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
struct Matmul {
  int32_t transa, epilogue;
  const float* bias;
};
struct Layout {
  uint64_t rows, cols;
  int64_t ld;
  int32_t batch;
  int64_t stride;
};
struct Heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int32_t state;
  float waves;
  int32_t reserved[4];
};
constexpr uint64_t CHOSEN = 4711;
int living = 0;

float activate(int epilogue, float x) {
  if (epilogue & 2) return x > 0 ? x : 0;
  if (epilogue & 32) return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
  return x;
}
}  // namespace

extern "C" {
void* last_stream = nullptr;
int cublaslt_living() { return living; }

int cublasLtCreate(void** handle) {
  *handle = (void*)0x1234;
  return SUCCESS;
}
int cublasLtMatmulDescCreate(Matmul** made, int compute, int scale) {
  if (compute != 68 || scale != 0) return INVALID_VALUE;
  *made = (Matmul*)malloc(sizeof(Matmul));
  **made = Matmul{0, 1, nullptr};
  ++living;
  return SUCCESS;
}
int cublasLtMatmulDescSetAttribute(Matmul* made, int attribute, const void* value, size_t bytes) {
  if (attribute == 3 && bytes == 4) made->transa = *(const int32_t*)value;
  else if (attribute == 7 && bytes == 4) made->epilogue = *(const int32_t*)value;
  else if (attribute == 8 && bytes == 8) made->bias = *(const float* const*)value;
  else return INVALID_VALUE;
  return SUCCESS;
}
int cublasLtMatmulDescDestroy(Matmul* made) {
  free(made);
  --living;
  return SUCCESS;
}
int cublasLtMatrixLayoutCreate(Layout** made, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  if (type != 0 || ld < (int64_t)rows) return INVALID_VALUE;
  *made = (Layout*)malloc(sizeof(Layout));
  **made = Layout{rows, cols, ld, 1, 0};
  ++living;
  return SUCCESS;
}
int cublasLtMatrixLayoutSetAttribute(Layout* made, int attribute, const void* value, size_t bytes) {
  if (attribute == 5 && bytes == 4) made->batch = *(const int32_t*)value;
  else if (attribute == 6 && bytes == 8) made->stride = *(const int64_t*)value;
  else return INVALID_VALUE;
  return SUCCESS;
}
int cublasLtMatrixLayoutDestroy(Layout* made) {
  free(made);
  --living;
  return SUCCESS;
}
int cublasLtMatmulPreferenceCreate(void** made) {
  *made = malloc(1);
  ++living;
  return SUCCESS;
}
int cublasLtMatmulPreferenceSetAttribute(void*, int attribute, const void* value, size_t bytes) {
  if (attribute == 1 && bytes == 8 && *(const uint64_t*)value == 32 << 20) return SUCCESS;
  return attribute >= 5 && attribute <= 8 && bytes == 4 && *(const uint32_t*)value > 0 ? SUCCESS : INVALID_VALUE;
}
int cublasLtMatmulPreferenceDestroy(void* made) {
  free(made);
  --living;
  return SUCCESS;
}
int cublasLtMatmulAlgoGetHeuristic(void* handle, const Matmul* matmul, const Layout*, const Layout*, const Layout*,
                                   const Layout* d, void*, int wanted, Heuristic* found, int* count) {
  if (handle != (void*)0x1234 || !matmul || wanted != 1) return INVALID_VALUE;
  *count = d->cols != 13;  // a product that no algorithm is for
  *found = Heuristic{{CHOSEN}, 0, 0, 1, {}};
  return SUCCESS;
}
int cublasLtMatmul(void* handle, const Matmul* matmul, const float* alpha, const float* a, const Layout* la,
                   const float* b, const Layout* lb, const float* beta, const float* c, const Layout* lc, float* d,
                   const Layout* ld, const Heuristic* algorithm, void* workspace, size_t workspace_bytes,
                   void* stream) {
  if (handle != (void*)0x1234 || algorithm->algorithm[0] != CHOSEN || !workspace) return INVALID_VALUE;
  if (workspace_bytes != 32 << 20 || lb->batch != ld->batch || la->batch != ld->batch) return INVALID_VALUE;
  last_stream = stream;
  const uint64_t inner = matmul->transa ? la->rows : la->cols;
  if (inner != lb->rows || (matmul->transa ? la->cols : la->rows) != ld->rows || lb->cols != ld->cols)
    return INVALID_VALUE;
  for (int batch = 0; batch < ld->batch; ++batch)
    for (uint64_t col = 0; col < ld->cols; ++col)
      for (uint64_t row = 0; row < ld->rows; ++row) {
        float sum = 0;
        for (uint64_t k = 0; k < inner; ++k) {
          const uint64_t at = matmul->transa ? k + row * la->ld : row + k * la->ld;
          sum += a[batch * la->stride + at] * b[batch * lb->stride + k + col * lb->ld];
        }
        sum *= *alpha;
        if (*beta != 0) sum += *beta * c[batch * lc->stride + row + col * lc->ld];
        if (matmul->epilogue & 4) sum += matmul->bias[row];
        d[batch * ld->stride + row + col * ld->ld] = activate(matmul->epilogue, sum);
      }
  return SUCCESS;
}
}
