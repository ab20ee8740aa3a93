// Layer norm of long rows by clusters of N blocks that stay for all of them. A block has the same columns of every row,
// so that gamma and beta of these are read once; read again for every row, they would be twice what is read of x. Its
// two teams of warps take a row each, independently, and a warp has two slots in shared memory for its part of a row:
// what it has taken to registers makes room for the row after the next, which is then under way.
constexpr int TEAMS = 2, WARPS = 8, PACKS_OF_A_LANE = 8;

template <int N> struct Exchanged {
  u64 filled[TEAMS * WARPS][2], told[TEAMS][2];  // a slot is full; all warps of the team, in all blocks, have sent
  float2 of_warps[TEAMS][2][N * WARPS];
};

// The sums of a row over all warps of the cluster that have it, the team's k-th. What is sent for one row is read before
// any warp can send for the row after the next, since for the row between all have to send first.
template <int N> DEVICE float2 over_cluster(Exchanged<N>& shared, float2 mine, int team, int warp, int k) {
  const int lane = threadIdx.x % 32, turn = k & 1;
  float2* const sent = shared.of_warps[team][turn];
  u64* const told = &shared.told[team][turn];
  mine = make_float2(warp_sum(mine.x), warp_sum(mine.y));
  if (lane < N) send(&sent[blockIdx.x % N * WARPS + warp], told, lane, mine);
  barrier_wait(told, (k >> 1) & 1);
  if (warp == 0 && lane == 0) barrier_arm(told, sizeof shared.of_warps[0][0]);
  float2 all{0.f, 0.f};
#pragma unroll
  for (int i = lane; i < N * WARPS; i += 32) {
    all.x += sent[i].x;
    all.y += sent[i].y;
  }
  return make_float2(warp_sum(all.x), warp_sum(all.y));
}

// WHOLE: every lane has all its packs
template <int N, bool WHOLE> DEVICE void layernorm_rows(Exchanged<N>& shared, const Norm& norm, i64 rows) {
  const int team = threadIdx.x / (32 * WARPS), warp = threadIdx.x / 32 % WARPS, lane = threadIdx.x % 32;
  const int part_of_row = blockIdx.x % N * WARPS + warp;
  const Part part(norm.packs, part_of_row, N * WARPS), longest(norm.packs, 0, N * WARPS);
  const i64 first = (i64)(blockIdx.x / N) * TEAMS + team, step = (i64)(gridDim.x / N) * TEAMS;
  Pack* const slots = dynamic_shared() + (team * WARPS + warp) * 2 * longest.packs;
  Pack* const gamma = dynamic_shared() + (TEAMS * WARPS * 2 + warp) * longest.packs;
  Pack* const beta = gamma + WARPS * longest.packs;
  u64* const filled = shared.filled[team * WARPS + warp];
  const auto start = [&](i64 row) { return row * norm.packs + part.first; };
  const auto fill = [&](int slot, i64 row) {
    if (lane || row >= rows) return;
    barrier_arm(&filled[slot], part.packs * 16);
    if (part.packs) bulk_copy(slots + slot * longest.packs, norm.x, start(row), part.packs, &filled[slot]);
  };
  const auto pivot_of = [&](i64 row) { return row < rows ? to_float(norm.x[row * norm.packs * VEC]) : 0.f; };
  fill(0, first);
  fill(1, first + step);
  float next = pivot_of(first);
  for (int c = team * 32 + lane; c < part.packs; c += TEAMS * 32) {
    store(gamma->v, c, load(norm.gamma, part.first + c));
    store(beta->v, c, load(norm.beta, part.first + c));
  }
  __syncthreads();
  cluster_wait();
  i64 row = first;
  for (int k = 0; row < rows; ++k, row += step) {
    const int slot = k & 1;
    const float pivot = next;
    next = pivot_of(row + step);
    const auto each_of_lane = [&](auto f) {
#pragma unroll
      for (int j = 0; j < PACKS_OF_A_LANE; ++j)
        if (WHOLE || lane + 32 * j < part.packs) f(j, lane + 32 * j);
    };
    uint4 held[PACKS_OF_A_LANE];
    barrier_wait(&filled[slot], (k >> 1) & 1);
    each_of_lane([&](int j, int c) { held[j] = reinterpret_cast<const uint4*>(slots + slot * longest.packs)[c]; });
    const auto pack = [&](int j) { return *reinterpret_cast<const Pack*>(&held[j]); };
    float2 sums{0.f, 0.f};
    each_of_lane([&](int j, int) {
      each(pack(j), [&](float v) {
        const float beyond = v - pivot;
        sums.x += beyond;
        sums.y += beyond * beyond;
      });
    });
    __syncwarp();
    fill(slot, row + 2 * step);
    sums = over_cluster(shared, sums, team, warp, k);
    const Statistics of = statistics_of(pivot, sums.x, sums.y, norm);
    const float shift = -of.mean * of.rstd;
    each_of_lane([&](int j, int c) {
      forget(held[j]);
      Floats x = unpacked(pack(j));
      const Floats g = unpacked(load(gamma->v, c)), b = unpacked(load(beta->v, c));
#pragma unroll
      for (int i = 0; i < VEC; ++i) x.v[i] = (x.v[i] * of.rstd + shift) * g.v[i] + b.v[i];
      store(norm.y, start(row) + c, packed(x));
    });
  }
}

template <int N> DEVICE void layernorm_in_cluster(const Norm& norm, i64 rows) {
  __shared__ Exchanged<N> shared;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane < 2) barrier_init(&shared.filled[warp][lane]);
  if (warp < TEAMS && lane < 2) barrier_init(&shared.told[warp][lane]);
  barriers_made();
  if (warp < TEAMS && lane < 2) barrier_arm(&shared.told[warp][lane], sizeof shared.of_warps[0][0]);
  __syncwarp();
  cluster_arrive();
  if (norm.packs == N * WARPS * 32 * PACKS_OF_A_LANE) layernorm_rows<N, true>(shared, norm, rows);
  else layernorm_rows<N, false>(shared, norm, rows);
}
#define LAYERNORM_CLUSTER(N)                                                                                   \
  KERNEL CLUSTER_OF(N) __launch_bounds__(32 * TEAMS * WARPS, 1)                                                \
  layernorm_cluster_##N(const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta,      \
                        T* __restrict__ y, int packs, i64 rows, float epsilon) {                               \
    layernorm_in_cluster<N>({x, nullptr, gamma, beta, nullptr, y, packs, epsilon}, rows);                      \
  }
LAYERNORM_CLUSTER(2)
LAYERNORM_CLUSTER(4)
LAYERNORM_CLUSTER(8)
