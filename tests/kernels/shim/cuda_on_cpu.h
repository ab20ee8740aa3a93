// Runs CUDA C++ on a CPU: one block at a time, one fiber (a stack of its own) per CUDA thread. Included before the
// source, it gives CUDA's words a meaning for a plain C++17 compiler, without the C++ standard library.
//
// Modelled: grids and blocks in x, shared memory (filled with NaN before every block), __syncthreads, shuffles over
// a whole warp, threads that return early. A barrier that some living threads never reach is found and reported.
// Not modelled: races between threads that run at the same time, the rounding of a GPU's own functions.
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
// all shared variables lie in one section of the library, so that they can be poisoned together
#define __shared__ static __attribute__((section("cuda_shared"), used))

struct dim3 {
  unsigned x;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float __int_as_float(unsigned bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.f / sqrtf(x); }

extern "C" char __start_cuda_shared[] __attribute__((weak));
extern "C" char __stop_cuda_shared[] __attribute__((weak));

namespace cpu {
constexpr unsigned WARP = 32, MOST_THREADS = 1024, STACK_BYTES = 32768;

struct Barrier {
  unsigned waiting = 0;
  unsigned long passed = 0;
};
struct Thread {
  ucontext_t context;
  dim3 index;
  bool done;
};

static Thread threads[MOST_THREADS];
static char* stacks;
static Thread* current;
static ucontext_t scheduler;
static dim3 grid, block, block_index;
static Barrier block_barrier, warp_barrier[WARP];
static unsigned living, warp_living[WARP];
static float lanes[WARP][WARP];
static bool moved;  // whether any thread got further since the last look
static void (*body)(void*);
static void* body_arguments;

inline void sleep_until(Barrier& barrier, unsigned members) {
  const unsigned long generation = barrier.passed;
  if (++barrier.waiting >= members) {
    barrier.waiting = 0;
    ++barrier.passed;
    moved = true;
    return;
  }
  while (barrier.passed == generation) swapcontext(&current->context, &scheduler);
}
inline void leave(Barrier& barrier, unsigned members) {  // a thread that returns no longer counts
  if (members && barrier.waiting >= members) {
    barrier.waiting = 0;
    ++barrier.passed;
  }
}
inline unsigned warp_of(const Thread* t) { return t->index.x / WARP; }

static void thread_main() {
  body(body_arguments);
  Thread* self = current;
  self->done = moved = true;
  const unsigned warp = warp_of(self);
  leave(block_barrier, --living);
  leave(warp_barrier[warp], --warp_living[warp]);
  swapcontext(&self->context, &scheduler);
}

static void start_block() {
  if (__start_cuda_shared) memset(__start_cuda_shared, 0xff, __stop_cuda_shared - __start_cuda_shared);
  living = block.x;
  block_barrier = Barrier();
  for (unsigned w = 0; w < WARP; ++w) {
    warp_barrier[w] = Barrier();
    warp_living[w] = 0;
  }
  for (unsigned i = 0; i < block.x; ++i) {
    Thread& t = threads[i];
    t.index.x = i;
    t.done = false;
    ++warp_living[i / WARP];
    getcontext(&t.context);
    t.context.uc_stack.ss_sp = stacks + (size_t)i * STACK_BYTES;
    t.context.uc_stack.ss_size = STACK_BYTES;
    t.context.uc_link = &scheduler;
    makecontext(&t.context, thread_main, 0);
  }
}

// 0 when all threads of all blocks returned, 1 when some wait for others that never come
inline int run(unsigned blocks, unsigned threads_a_block, void (*kernel)(void*), void* arguments) {
  if (!stacks) stacks = (char*)malloc((size_t)MOST_THREADS * STACK_BYTES);
  grid.x = blocks;
  block.x = threads_a_block;
  body = kernel;
  body_arguments = arguments;
  for (block_index.x = 0; block_index.x < blocks; ++block_index.x) {
    start_block();
    while (living) {
      moved = false;
      for (unsigned i = 0; i < block.x; ++i) {
        if (threads[i].done) continue;
        current = &threads[i];
        swapcontext(&scheduler, &current->context);
      }
      if (!moved) return 1;
    }
  }
  return 0;
}

// Call a kernel of any signature with pointers to its arguments; -1 where number or sizes are not the kernel's.
template <int... I> struct Indices {};
template <int N, int... I> struct Count : Count<N - 1, N - 1, I...> {};
template <int... I> struct Count<0, I...> {
  using type = Indices<I...>;
};
template <class... P, int... I> void call_with(void (*kernel)(P...), void** arguments, Indices<I...>) {
  kernel(*(P*)arguments[I]...);
}
template <class... P>
int launch(void (*kernel)(P...), unsigned blocks, unsigned threads_a_block, void** arguments, const int* sizes,
           int count) {
  const int expected[] = {(int)sizeof(P)...};
  if (count != (int)sizeof...(P) || memcmp(expected, sizes, sizeof expected)) return -1;
  struct Bound {
    void (*kernel)(P...);
    void** arguments;
  } bound = {kernel, arguments};
  return run(
      blocks, threads_a_block,
      [](void* p) {
        Bound* b = (Bound*)p;
        call_with(b->kernel, b->arguments, typename Count<sizeof...(P)>::type());
      },
      &bound);
}
}  // namespace cpu

#define threadIdx (cpu::current->index)
#define blockIdx (cpu::block_index)
#define blockDim (cpu::block)
#define gridDim (cpu::grid)

inline void __syncthreads() { cpu::sleep_until(cpu::block_barrier, cpu::living); }
inline float __shfl_xor_sync(unsigned, float x, int mask) {
  const unsigned warp = cpu::warp_of(cpu::current), lane = cpu::current->index.x % cpu::WARP;
  cpu::lanes[warp][lane] = x;
  cpu::sleep_until(cpu::warp_barrier[warp], cpu::warp_living[warp]);
  const float other = cpu::lanes[warp][lane ^ mask];
  cpu::sleep_until(cpu::warp_barrier[warp], cpu::warp_living[warp]);
  return other;
}

// one exported function a kernel, for the caller that loads the library
#define EXPORT(name)                                                                                             \
  extern "C" int launch_##name(unsigned blocks, unsigned threads, void** arguments, const int* sizes, int count) { \
    return cpu::launch(name, blocks, threads, arguments, sizes, count);                                          \
  }
