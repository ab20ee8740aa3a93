// At the same time as many threads, with two packs each, as 40 registers leave room for.
#define LAYERNORM_OF_BLOCK(P)                                                                                    \
  KERNEL __launch_bounds__(P > 2 ? 1024 : 512, P > 2 ? 1 : 3) layernorm_##P(                                     \
      const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta,                          \
      T* __restrict__ y, int packs, float epsilon) {                                                             \
    __shared__ float shared[2 * 32];                                                                             \
    const Norm norm{x, nullptr, gamma, beta, nullptr, y, packs, epsilon};                                        \
    with_block<P>(shared, packs, [&](auto team) { norm_in_registers<true, false, P>(team, gridDim.x, norm); });  \
  }
LAYERNORM_OF_BLOCK(1)
LAYERNORM_OF_BLOCK(2)
LAYERNORM_OF_BLOCK(4)
#define LAYERNORM_OF_LANES(P)                                                                                       \
  KERNEL layernorm_lanes_##P(                                                                                       \
      const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta,                             \
      T* __restrict__ y, int packs, int lanes, i64 rows, float epsilon) {                                           \
    const Norm norm{x, nullptr, gamma, beta, nullptr, y, packs, epsilon};                                           \
    with_lanes<2, P>(lanes, rows, packs, [&](auto team) { norm_in_registers<true, false, P>(team, rows, norm); });  \
  }
LAYERNORM_OF_LANES(1)
LAYERNORM_OF_LANES(2)
