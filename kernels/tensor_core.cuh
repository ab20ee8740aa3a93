// Tensor cores and asynchronous copies, for elements of 16 bits on cards of compute capability 8.0 and later.
//
// A tile is a matrix in shared memory. `load_tiles` gives a warp four of its 8 x 8 parts at once, as operands;
// `multiply_add` adds the product of a 16 x 16 and a 16 x 8 matrix, spread over the warp, to a 16 x 8 one of floats.
// Of the latter, the thread with lane l holds row l / 4, columns 2 (l % 4) and the next, and the same of row l / 4 + 8.
#ifdef __CUDA_ARCH__
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]

DEVICE u32 shared_address(const T* p) { return (u32)__cvta_generic_to_shared(p); }

// every lane names one row of 8 elements: lanes 0-7 the rows of the first part, 8-15 of the second, and so on
DEVICE void load_tiles(u32 (&r)[4], const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}
DEVICE void load_tiles_transposed(u32 (&r)[4], const T* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}

#define MULTIPLY_ADD(element, name)                                                                          \
  DEVICE void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1, element) {                      \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." name "." name ".f32 "                                       \
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                              \
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                     \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                     \
  }                                                                                                          \
  DEVICE u32 both(float low, float high, element) {                                                          \
    u32 r;                                                                                                   \
    asm("cvt.rn." name "x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));                                \
    return r;                                                                                                \
  }
MULTIPLY_ADD(__half, "f16")
MULTIPLY_ADD(__nv_bfloat16, "bf16")

// 16 bytes into shared memory, zeros if not `exists`; there once `wait_for_copies` and a barrier have been passed
DEVICE void copy_async(T* to, const T* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(shared_address(to)), "l"(from), "r"(exists ? 16 : 0) : "memory");
}
DEVICE void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
DEVICE bool any_in_warp(bool x) { return __any_sync(0xffffffffu, x); }
// one instruction; exp2f has three more for results that are not normal numbers, which are zero here
DEVICE float two_to_the(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
#else
#include "tensor_core_on_cpu.h"  // the same for a CPU, which the tests have
#endif
