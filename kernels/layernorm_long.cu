// Layer norm of long rows: held on the chip by one block, by those of a cluster, or read twice.
KERNEL __launch_bounds__(512, 3) layernorm_held(const T* __restrict__ x, const T* __restrict__ gamma,
                                                const T* __restrict__ beta, T* __restrict__ y, int packs,
                                                float epsilon) {
  __shared__ float shared[2][32];
  const Norm norm{x, nullptr, gamma, beta, nullptr, y, packs, epsilon};
  const i64 start = (i64)blockIdx.x * packs;
  Held<4> row{dynamic_shared(), packs};
  row.fetch(x, [&](int c) { return start + c; });
  float sum = 0.f, squares = 0.f;
  row.visit([&](const Pack& p, int) { each(p, [&](float v) { sum += v; }); });
  const float mean = block_sum(sum, shared[0]) * norm.share();
  row.visit([&](const Pack& p, int) { each(p, [&](float v) { squares += (v - mean) * (v - mean); }); });
  const float rstd = rsqrtf(block_sum(squares, shared[1]) * norm.share() + epsilon);
  row.visit([&](const Pack& p, int c) {
    store(y, start + c, normalised<true>(p, load(gamma, c), load(beta, c), mean, rstd));
  });
}

// N blocks a row, for some rows one after the other: gamma and beta, as long as the row, stay in shared memory
// meanwhile. Read again for every row, they would be twice what is read of x. What registers hold of the next row is
// under way while this one is summed and written.
template <int N> struct ClusterNorm {
  const Norm& norm;
  const Part part;
  const Pack *gamma, *beta;
  Moments* of_warps;
  float2 (*of_blocks)[N];  // of two rows, in turns: a row's are written when all blocks have read those before the last

  MEMBER void fetch_registers(Held<4>& row, i64 start) const {
    row.fetch_registers(norm.x, [&](int c) { return start + c; });
  }
  // `left`: rows of this cluster from this one on, which begins for this block at pack `start`
  MEMBER void turn(Held<4>& row, Held<4>& next, i64 start, int left) const {
    row.fetch_shared(norm.x, [&](int c) { return start + c; });
    if (left > 1) fetch_registers(next, start + norm.packs);
    Moments all{0.f, 0.f, 0.f};
    row.visit([&](const Pack& p, int) { all.take(p); });
    all = over_block(all, of_warps);
    float2(&mine)[N] = of_blocks[left & 1];
    give_all(mine, make_float2(all.mean, all.squares));
    const int rank = threadIdx.x % N;  // every warp for itself
    all = over_lanes({(float)Part(norm.packs, rank, N).packs * VEC, mine[rank].x, mine[rank].y}, N);
    const float rstd = rsqrtf(all.squares * norm.share() + norm.epsilon);
    row.visit([&](const Pack& p, int c) {
      store(norm.y, start + c, normalised<true>(p, load(gamma->v, c), load(beta->v, c), all.mean, rstd));
    });
  }
};
template <int N> DEVICE void layernorm_in_cluster(const Norm& norm, i64 rows, int rows_a_cluster) {
  __shared__ Moments of_warps[32];
  __shared__ float2 of_blocks[2][N];
  cluster_arrive();
  const Part part(norm.packs, blockIdx.x % N, N), longest(norm.packs, 0, N);
  Pack *const gamma = dynamic_shared(), *const beta = gamma + longest.packs;
  const ClusterNorm<N> of{norm, part, gamma, beta, of_warps, of_blocks};
  const i64 first = (i64)(blockIdx.x / N) * rows_a_cluster;
  int left = rows - first < rows_a_cluster ? (int)(rows - first) : rows_a_cluster;
  i64 start = first * norm.packs + part.first;
  Held<4> one{beta + longest.packs, part.packs}, other = one;
  of.fetch_registers(one, start);
  for (int c = threadIdx.x; c < part.packs; c += blockDim.x) {  // each thread what it will read
    copy_async(gamma + c, norm.gamma, part.first + c);
    copy_async(beta + c, norm.beta, part.first + c);
  }
  cluster_wait();  // all blocks have begun
  for (; left > 0; left -= 2, start += 2 * (i64)norm.packs) {
    of.turn(one, other, start, left);
    if (left > 1) of.turn(other, one, start + norm.packs, left - 1);
  }
}
#define LAYERNORM_CLUSTER(N)                                                                                  \
  KERNEL CLUSTER_OF(N) __launch_bounds__(512, 2)                                                              \
  layernorm_cluster_##N(const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta,     \
                        T* __restrict__ y, int packs, i64 rows, int rows_a_cluster, float epsilon) {          \
    layernorm_in_cluster<N>({x, nullptr, gamma, beta, nullptr, y, packs, epsilon}, rows, rows_a_cluster);     \
  }
LAYERNORM_CLUSTER(2)
LAYERNORM_CLUSTER(4)
LAYERNORM_CLUSTER(8)

KERNEL __launch_bounds__(1024, 1) layernorm_multipass(const T* __restrict__ x, const T* __restrict__ gamma,
                                                      const T* __restrict__ beta, T* __restrict__ y, int packs,
                                                      float epsilon) {
  __shared__ Moments of_warps[32];
  const Norm norm{x, nullptr, gamma, beta, nullptr, y, packs, epsilon};
  const i64 start = (i64)blockIdx.x * packs;
  const auto at = [&](int c) { return start + c; };
  Moments all{0.f, 0.f, 0.f};
  stream<4>(x, packs, at, [&](const Pack& p, int) { all.take(p); });
  all = over_block(all, of_warps);
  const float rstd = rsqrtf(all.squares * norm.share() + epsilon);
  stream<4>(x, packs, at, [&](const Pack& p, int c) {
    store(y, start + c, normalised<true>(p, load(gamma, c), load(beta, c), all.mean, rstd));
  });
}
