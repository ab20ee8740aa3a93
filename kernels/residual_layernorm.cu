// __launch_bounds__ caps registers at 64, so that a block of 1024 threads can be launched at all
#define RESIDUAL_LAYERNORM_OF_BLOCK(P)                                                                          \
  KERNEL __launch_bounds__(1024, 1) residual_layernorm_##P(                                                     \
      const T* __restrict__ x, const T* __restrict__ residual, const T* __restrict__ gamma,                     \
      const T* __restrict__ beta, T* __restrict__ h, T* __restrict__ y, int packs, float epsilon) {             \
    __shared__ float shared[2 * 32];                                                                            \
    const Norm norm{x, residual, gamma, beta, h, y, packs, epsilon};                                            \
    with_block<P>(shared, packs, [&](auto team) { norm_in_registers<true, true, P>(team, gridDim.x, norm); });  \
  }
RESIDUAL_LAYERNORM_OF_BLOCK(1)
RESIDUAL_LAYERNORM_OF_BLOCK(2)
RESIDUAL_LAYERNORM_OF_BLOCK(4)
#define RESIDUAL_LAYERNORM_OF_LANES(P)                                                                             \
  KERNEL residual_layernorm_lanes_##P(                                                                             \
      const T* __restrict__ x, const T* __restrict__ residual, const T* __restrict__ gamma,                        \
      const T* __restrict__ beta, T* __restrict__ h,                                                               \
      T* __restrict__ y, int packs, int lanes, i64 rows, float epsilon) {                                          \
    const Norm norm{x, residual, gamma, beta, h, y, packs, epsilon};                                               \
    with_lanes<2, P>(lanes, rows, packs, [&](auto team) { norm_in_registers<true, true, P>(team, rows, norm); });  \
  }
RESIDUAL_LAYERNORM_OF_LANES(1)
RESIDUAL_LAYERNORM_OF_LANES(2)
