// At the same time as many threads, with two packs each, as 40 registers leave room for.
#define RMSNORM_OF_BLOCK(P)                                                                                       \
  KERNEL __launch_bounds__(P > 2 ? 1024 : 512, P > 2 ? 1 : 3) rmsnorm_##P(                                        \
      const T* __restrict__ x, const T* __restrict__ gamma,                                                       \
      T* __restrict__ y, int packs, float epsilon) {                                                              \
    __shared__ float shared[2 * 32];                                                                              \
    const Norm norm{x, nullptr, gamma, nullptr, nullptr, y, packs, epsilon};                                      \
    with_block<P>(shared, packs, [&](auto team) { norm_in_registers<false, false, P>(team, gridDim.x, norm); });  \
  }
RMSNORM_OF_BLOCK(1)
RMSNORM_OF_BLOCK(2)
RMSNORM_OF_BLOCK(4)
#define RMSNORM_OF_LANES(P)                                                                                          \
  KERNEL rmsnorm_lanes_##P(                                                                                          \
      const T* __restrict__ x, const T* __restrict__ gamma,                                                          \
      T* __restrict__ y, int packs, int lanes, i64 rows, float epsilon) {                                            \
    const Norm norm{x, nullptr, gamma, nullptr, nullptr, y, packs, epsilon};                                         \
    with_lanes<2, P>(lanes, rows, packs, [&](auto team) { norm_in_registers<false, false, P>(team, rows, norm); });  \
  }
RMSNORM_OF_LANES(1)
RMSNORM_OF_LANES(2)
