// __launch_bounds__ caps registers at 64, so that a block of 1024 threads can be launched at all
#define RMSNORM_OF_BLOCK(P)                                                       \
  KERNEL __launch_bounds__(1024, 1) rmsnorm_##P(                                  \
      const T* __restrict__ x, const T* __restrict__ gamma,                       \
      T* __restrict__ y, int packs, float epsilon) {                              \
    __shared__ float shared[2 * 32];                                              \
    norm_in_registers<false, false, P>(BlockTeam{shared}, blockIdx.x, gridDim.x,  \
        {x, nullptr, gamma, nullptr, nullptr, y, packs, epsilon});                \
  }
RMSNORM_OF_BLOCK(1)
RMSNORM_OF_BLOCK(2)
RMSNORM_OF_BLOCK(4)
#define RMSNORM_OF_LANES(P)                                                       \
  KERNEL rmsnorm_lanes_##P(                                                       \
      const T* __restrict__ x, const T* __restrict__ gamma,                       \
      T* __restrict__ y, int packs, int lanes, i64 rows, float epsilon) {         \
    const LaneTeam team{lanes};                                                   \
    norm_in_registers<false, false, P>(team, team.row(), rows,                    \
        {x, nullptr, gamma, nullptr, nullptr, y, packs, epsilon});                \
  }
RMSNORM_OF_LANES(1)
RMSNORM_OF_LANES(4)
