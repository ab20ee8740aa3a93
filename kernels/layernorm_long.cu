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
// meanwhile. Read again for every row, they would be twice what is read of x.
template <int N> DEVICE void layernorm_in_cluster(const Norm& norm, i64 rows, int rows_a_cluster) {
  __shared__ Moments of_warps[32];
  __shared__ float2 of_blocks[N];
  cluster_arrive();
  const Part part(norm.packs, blockIdx.x % N, N), longest(norm.packs, 0, N);
  Pack *const gamma = dynamic_shared(), *const beta = gamma + longest.packs;
  for (int c = threadIdx.x; c < part.packs; c += blockDim.x) {  // each thread what it will read
    copy_async(gamma + c, norm.gamma, part.first + c);
    copy_async(beta + c, norm.beta, part.first + c);
  }
  const i64 first = (i64)(blockIdx.x / N) * rows_a_cluster, end = first + rows_a_cluster;
  for (i64 r = first; r < end && r < rows; ++r) {
    const i64 start = r * norm.packs + part.first;
    Held<4> row{beta + longest.packs, part.packs};
    row.fetch(norm.x, [&](int c) { return start + c; });
    Moments all{0.f, 0.f, 0.f};
    row.visit([&](const Pack& p, int) { all.take(p); });
    all = over_block(all, of_warps);
    exchange(of_blocks, make_float2(all.mean, all.squares));
    const int lane = threadIdx.x % 32;  // every warp for itself
    all = {0.f, 0.f, 0.f};
    if (lane < N) all = {(float)Part(norm.packs, lane, N).packs * VEC, of_blocks[lane].x, of_blocks[lane].y};
    all = over_warp(all);
    cluster_arrive();  // has read what the others wrote
    const float rstd = rsqrtf(all.squares * norm.share() + norm.epsilon);
    row.visit([&](const Pack& p, int c) {
      store(norm.y, start + c, normalised<true>(p, load(gamma->v, c), load(beta->v, c), all.mean, rstd));
    });
  }
  cluster_wait();
}
// three blocks to a multiprocessor, where the compiler manages that without spilling
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define BOUNDS __launch_bounds__(512, 2)
#else
#define BOUNDS __launch_bounds__(512, 3)
#endif
#define LAYERNORM_CLUSTER(N)                                                                                  \
  KERNEL CLUSTER_OF(N) BOUNDS                                                                                 \
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
