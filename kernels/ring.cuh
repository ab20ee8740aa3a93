// Bulk copies to shared memory, and barriers there that count what has arrived (sm_90 and newer). A barrier's phase ends
// when it has been armed and as many bytes have come as it was told; phases have the parities 0, 1, 0, ….
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE void barrier_init(u64* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}
// by every thread that has made some; the other blocks see them after a barrier of the cluster
DEVICE void barriers_made() {
  asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" ::: "memory");
}
DEVICE void barrier_arm(u64* barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
DEVICE void barrier_wait(u64* barrier, u32 parity) {
  asm volatile(
      "{\n\t.reg .pred ended;\n\tAGAIN:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n\t"
      "@!ended bra AGAIN;\n\t}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
// asked for by one thread
DEVICE void bulk_copy(Pack* to, const T* from, i64 pack, u32 packs, u64* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(reinterpret_cast<const uint4*>(from) + pack), "r"(packs * 16), "r"(shared_address(barrier))
               : "memory");
}
// To the variable of block `rank` that is at the same place as `mine` is here; the barrier there at the place of
// `barrier` counts its bytes. A barrier of the whole cluster would wait for all that its threads have stored before.
DEVICE void send(float2* mine, u64* barrier, int rank, float2 value) {
  u32 there, barrier_there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(mine)), "r"(rank));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier_there) : "r"(shared_address(barrier)), "r"(rank));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(there),
               "f"(value.x), "f"(value.y), "r"(barrier_there)
               : "memory");
}
#elif defined(__CUDA_ARCH__)
DEVICE void barrier_init(u64*) {}
DEVICE void barriers_made() {}
DEVICE void barrier_arm(u64*, u32) {}
DEVICE void barrier_wait(u64*, u32) {}
DEVICE void bulk_copy(Pack*, const T*, i64, u32, u64*) {}
DEVICE void send(float2*, u64*, int, float2) {}
#endif
