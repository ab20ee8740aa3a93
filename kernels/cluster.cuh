// Blocks of a cluster, which run at the same time and write to each other's shared memory (sm_90 and newer). A kernel
// that needs them is named …_cluster_N for clusters of N blocks; older cards refuse it by a trap.
#if !defined(__CUDA_ARCH__)
#define CLUSTER_OF(n)
#elif __CUDA_ARCH__ >= 900
#define CLUSTER_OF(n) __cluster_dims__(n, 1, 1)
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }
// to the variable of block `rank` that is at the same place as `mine` is here
DEVICE void store_remote(float2* mine, int rank, float2 value) {
  u32 there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((u32)__cvta_generic_to_shared(mine)), "r"(rank));
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(value.x), "f"(value.y) : "memory");
}
#else
#define CLUSTER_OF(n)
DEVICE void cluster_arrive() { __trap(); }
DEVICE void cluster_wait() {}
DEVICE void store_remote(float2*, int, float2) {}
#endif

#ifdef __CUDA_ARCH__
DEVICE void sleep_cycles(int cycles) {
  for (const i64 end = clock64() + cycles; clock64() < end;) __nanosleep(50);
}
#else
DEVICE void sleep_cycles(int) {}
#endif

// Gives every block of the cluster the value of every other, in order of rank. A block's memory may be written to once
// that block has begun, and its `values` once it has read what was there.
template <int N> DEVICE void give_all(float2 (&values)[N], float2 mine) {
  if (threadIdx.x < N) store_remote(&values[blockIdx.x % N], threadIdx.x, mine);
  cluster_arrive();
  cluster_wait();
}
// The same, once in a kernel whose first statement is cluster_arrive().
template <int N> DEVICE void exchange(float2 (&values)[N], float2 mine) {
  cluster_wait();
  give_all(values, mine);
}
