// Runs CUDA C++ on a CPU: one block at a time, one fiber (a stack of its own) per CUDA thread. Included before the
// source, it gives CUDA's words a meaning for a plain C++17 compiler, without the C++ standard library.
//
// Modelled: grids and blocks in x, shared memory (filled with NaN before every block), dynamic shared memory with a
// guard behind it, __syncthreads, shuffles over a whole warp, threads that return early, clusters of blocks that run
// together. A barrier that some living threads never reach is found and reported.
// Not modelled: races between threads that run at the same time, the rounding of a GPU's own functions.
#pragma once
#include <math.h>
#include <setjmp.h>
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
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float __int_as_float(unsigned bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
inline float __fdividef(float a, float b) { return a / b; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
inline int min(int a, int b) { return a < b ? a : b; }
inline float rsqrtf(float x) { return 1.f / sqrtf(x); }

extern "C" char __start_cuda_shared[] __attribute__((weak));
extern "C" char __stop_cuda_shared[] __attribute__((weak));

namespace cpu {
constexpr unsigned WARP = 32, MOST_THREADS = 1024, STACK_BYTES = 32768, MOST_BLOCKS = 16, GUARD_BYTES = 64;
enum Ended { WELL = 0, STUCK = 1, BEYOND_SHARED = 2 };

struct Barrier {
  unsigned waiting = 0;
  unsigned long passed = 0;
};
struct Thread {
  jmp_buf place;  // where it waits; a jump is many times faster than a change of context, which asks the system
  ucontext_t start;
  bool begun;  // it has a stack and goes on from `place`, in this block or at the beginning of the next
  dim3 index;
  bool done;
  unsigned long arrived;  // how often the cluster's barrier had been passed when this thread arrived at it
};
struct Block {
  dim3 index;
  Thread threads[MOST_THREADS];
  char* stacks;
  Barrier barrier, warp_barrier[WARP];
  unsigned living, warp_living[WARP];
  float lanes[WARP][WARP];
  char* shared;   // its static shared memory, while another block of its cluster runs
  char* dynamic;  // its dynamic shared memory, and the guard
};

static Block cluster[MOST_BLOCKS];  // the blocks that run together; one, where the kernel knows no clusters
static unsigned cluster_blocks, cluster_living;
static Barrier cluster_barrier;
static Block* here;
static Thread* current;
static jmp_buf scheduler;
static dim3 grid, block;
static unsigned long dynamic_bytes;
static bool moved;  // whether any thread got further since the last look
static void (*body)(void*);
static void* body_arguments;

inline void arrive(Barrier& barrier, unsigned members) {
  if (++barrier.waiting < members) return;
  barrier.waiting = 0;
  ++barrier.passed;
  moved = true;
}
inline void pause() {
  if (!_setjmp(current->place)) _longjmp(scheduler, 1);
}
inline void wait_for(Barrier& barrier, unsigned long generation) {
  while (barrier.passed == generation) pause();
}
inline void sleep_until(Barrier& barrier, unsigned members) {
  const unsigned long generation = barrier.passed;
  arrive(barrier, members);
  wait_for(barrier, generation);
}
inline void leave(Barrier& barrier, unsigned members) {  // a thread that returns no longer counts
  if (members && barrier.waiting >= members) {
    barrier.waiting = 0;
    ++barrier.passed;
  }
}
inline unsigned warp_of(const Thread* t) { return t->index.x / WARP; }

static void thread_main() {
  for (;;) {
    body(body_arguments);
    Thread* self = current;
    self->done = moved = true;
    const unsigned warp = warp_of(self);
    leave(here->barrier, --here->living);
    leave(here->warp_barrier[warp], --here->warp_living[warp]);
    leave(cluster_barrier, --cluster_living);
    pause();
  }
}

inline unsigned long static_bytes() { return __start_cuda_shared ? __stop_cuda_shared - __start_cuda_shared : 0; }

static void start_block(Block& b, unsigned index) {
  b.index.x = index;
  memset(b.shared, 0xff, static_bytes());
  memset(b.dynamic, 0xff, dynamic_bytes + GUARD_BYTES);
  b.living = block.x;
  b.barrier = Barrier();
  for (unsigned w = 0; w < WARP; ++w) {
    b.warp_barrier[w] = Barrier();
    b.warp_living[w] = 0;
  }
  for (unsigned i = 0; i < block.x; ++i) {
    Thread& t = b.threads[i];
    t.index.x = i;
    t.done = false;
    t.arrived = 0;
    ++b.warp_living[i / WARP];
  }
}
// the current thread goes on until it waits or has ended
static void resume(Block& b) {
  Thread& t = *current;
  if (_setjmp(scheduler)) return;
  if (t.begun) _longjmp(t.place, 1);
  t.begun = true;
  getcontext(&t.start);
  t.start.uc_stack.ss_sp = b.stacks + (size_t)t.index.x * STACK_BYTES;
  t.start.uc_stack.ss_size = STACK_BYTES;
  makecontext(&t.start, thread_main, 0);
  setcontext(&t.start);
}
// every thread of a block goes on until it waits; its shared memory is in place meanwhile
static void advance(Block& b) {
  here = &b;
  if (__start_cuda_shared) memcpy(__start_cuda_shared, b.shared, static_bytes());
  for (unsigned i = 0; i < block.x; ++i) {
    if (b.threads[i].done) continue;
    current = &b.threads[i];
    resume(b);
  }
  if (__start_cuda_shared) memcpy(b.shared, __start_cuda_shared, static_bytes());
}
inline bool guard_is_whole(const Block& b) {
  for (unsigned i = 0; i < GUARD_BYTES; ++i)
    if ((unsigned char)b.dynamic[dynamic_bytes + i] != 0xff) return false;
  return true;
}
static Ended run_cluster(unsigned first) {
  cluster_barrier = Barrier();
  cluster_living = cluster_blocks * block.x;
  for (unsigned r = 0; r < cluster_blocks; ++r) start_block(cluster[r], first + r);
  while (cluster_living) {
    moved = false;
    for (unsigned r = 0; r < cluster_blocks; ++r)
      if (cluster[r].living) advance(cluster[r]);
    if (!moved) {
      for (unsigned r = 0; r < cluster_blocks; ++r)
        for (Thread& t : cluster[r].threads) t.begun = false;
      return STUCK;
    }
  }
  for (unsigned r = 0; r < cluster_blocks; ++r)
    if (!guard_is_whole(cluster[r])) return BEYOND_SHARED;
  return WELL;
}

struct Geometry {
  unsigned blocks, threads, cluster;
  unsigned long shared_bytes;
};
static Ended run(const Geometry& geometry, void (*kernel)(void*), void* arguments) {
  grid.x = geometry.blocks;
  block.x = geometry.threads;
  cluster_blocks = geometry.cluster;
  dynamic_bytes = geometry.shared_bytes;
  body = kernel;
  body_arguments = arguments;
  for (unsigned r = 0; r < cluster_blocks; ++r) {
    Block& b = cluster[r];
    if (!b.stacks) b.stacks = (char*)malloc((size_t)MOST_THREADS * STACK_BYTES);
    if (!b.shared) b.shared = (char*)malloc(static_bytes() + 1);
    free(b.dynamic);
    b.dynamic = (char*)aligned_alloc(64, (dynamic_bytes + GUARD_BYTES + 63) / 64 * 64);
  }
  Ended ended = WELL;
  for (unsigned first = 0; first < geometry.blocks && ended == WELL; first += cluster_blocks) ended = run_cluster(first);
  return ended;
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
int launch(void (*kernel)(P...), const Geometry& geometry, void** arguments, const int* sizes, int count) {
  const int expected[] = {(int)sizeof(P)...};
  if (count != (int)sizeof...(P) || memcmp(expected, sizes, sizeof expected)) return -1;
  struct Bound {
    void (*kernel)(P...);
    void** arguments;
  } bound = {kernel, arguments};
  return run(
      geometry,
      [](void* p) {
        Bound* b = (Bound*)p;
        call_with(b->kernel, b->arguments, typename Count<sizeof...(P)>::type());
      },
      &bound);
}
}  // namespace cpu

#define threadIdx (cpu::current->index)
#define blockIdx (cpu::here->index)
#define blockDim (cpu::block)
#define gridDim (cpu::grid)
#define DYNAMIC_SHARED(type, name) type* const name = (type*)cpu::here->dynamic

inline void __syncthreads() { cpu::sleep_until(cpu::here->barrier, cpu::here->living); }
inline float __shfl_xor_sync(unsigned, float x, int mask) {
  cpu::Block& b = *cpu::here;
  const unsigned warp = cpu::warp_of(cpu::current), lane = cpu::current->index.x % cpu::WARP;
  b.lanes[warp][lane] = x;
  cpu::sleep_until(b.warp_barrier[warp], b.warp_living[warp]);
  const float other = b.lanes[warp][lane ^ mask];
  cpu::sleep_until(b.warp_barrier[warp], b.warp_living[warp]);
  return other;
}

inline void __syncwarp() {
  cpu::Block& b = *cpu::here;
  const unsigned warp = cpu::warp_of(cpu::current);
  cpu::sleep_until(b.warp_barrier[warp], b.warp_living[warp]);
}

// what cluster.cuh has in assembly for a GPU
inline void cluster_arrive() {
  cpu::current->arrived = cpu::cluster_barrier.passed;
  cpu::arrive(cpu::cluster_barrier, cpu::cluster_living);
}
inline void cluster_wait() { cpu::wait_for(cpu::cluster_barrier, cpu::current->arrived); }
namespace cpu {
template <class V> V* in_block(V* mine, int rank) {  // the variable of block `rank` that is at the place of `mine`
  Block& b = cluster[rank];
  return &b == here ? mine : (V*)(b.shared + ((char*)mine - __start_cuda_shared));
}
}  // namespace cpu
inline void store_remote(float2* mine, int rank, float2 value) { *cpu::in_block(mine, rank) = value; }

// what ring.cuh has in assembly for a GPU; a bulk copy is made when it is asked for
namespace cpu {
struct PhaseBarrier {  // in the eight bytes that it has in shared memory
  short ended, unarmed;
  int bytes;
  void count(int armed, int more) {
    unarmed -= armed;
    bytes += more;
    if (unarmed || bytes) return;
    ++ended;
    unarmed = 1;
    moved = true;
  }
};
}  // namespace cpu
inline void barrier_init(unsigned long long* b) { *(cpu::PhaseBarrier*)b = {0, 1, 0}; }
inline void barriers_made() {}
inline void barrier_arm(unsigned long long* b, unsigned bytes) { ((cpu::PhaseBarrier*)b)->count(1, bytes); }
inline void barrier_wait(unsigned long long* b, unsigned parity) {
  while ((unsigned)(((cpu::PhaseBarrier*)b)->ended & 1) == parity) cpu::pause();
}
template <class P, class T>
void bulk_copy(P* to, const T* from, long long pack, unsigned packs, unsigned long long* b) {
  memcpy(to, (const P*)from + pack, packs * 16);
  ((cpu::PhaseBarrier*)b)->count(0, -(int)packs * 16);
}
inline void send(float2* mine, unsigned long long* b, int rank, float2 value) {
  *cpu::in_block(mine, rank) = value;
  ((cpu::PhaseBarrier*)cpu::in_block(b, rank))->count(0, -(int)sizeof value);
}

// one exported function a kernel, for the caller that loads the library
#define EXPORT(name)                                                                                        \
  extern "C" int launch_##name(const cpu::Geometry* geometry, void** arguments, const int* sizes, int count) { \
    return cpu::launch(name, *geometry, arguments, sizes, count);                                           \
  }
