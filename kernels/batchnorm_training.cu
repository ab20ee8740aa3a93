// In two kernels, with `parts` blocks a channel in each.
constexpr int AHEAD = 4;
KERNEL __launch_bounds__(256) batchnorm_parts(const T* __restrict__ x, Moments* __restrict__ of_parts, int packs,
                                              int plane, int channels, int parts) {
  __shared__ Moments of_warps[32];
  const Part part(packs, blockIdx.x % parts, parts);
  const Channel at((int)blockIdx.x / parts, channels, plane);
  Moments all{0.f, 0.f, 0.f};
  stream<AHEAD>(x, part.packs, [&](int c) { return at(part.first + c); }, [&](const Pack& p, int) { all.take(p); });
  all = over_block(all, of_warps);
  if (threadIdx.x == 0) of_parts[blockIdx.x] = all;
}
DEVICE Moments over_parts(const Moments* parts, int count) {  // every warp for itself
  Moments all{0.f, 0.f, 0.f};
  for (int p = threadIdx.x % 32; p < count; p += 32) all.merge(parts[p]);
  return over_warp(all);
}
KERNEL __launch_bounds__(256) batchnorm_of_parts(const T* __restrict__ x, const Moments* __restrict__ of_parts,
                                                 const float* __restrict__ gamma, const float* __restrict__ beta,
                                                 T* __restrict__ y, float* __restrict__ means,
                                                 float* __restrict__ rstds, int packs, int plane, int channels,
                                                 int parts, float epsilon) {
  // from the last channel on: what the first kernel read last is still in the cache
  const int block = gridDim.x - 1 - blockIdx.x, channel = block / parts;
  const Part part(packs, block % parts, parts);
  const Channel at(channel, channels, plane);
  const Moments all = over_parts(of_parts + (i64)channel * parts, parts);
  const float rstd = rsqrtf(all.squares / all.count + epsilon), g = gamma[channel], b = beta[channel];
  if (part.first == 0 && threadIdx.x == 0) {
    means[channel] = all.mean;
    rstds[channel] = rstd;
  }
  stream<AHEAD>(x, part.packs, [&](int c) { return at(part.first + c); },
                [&](const Pack& p, int c) { store(y, at(part.first + c), normalised(p, all.mean, rstd, g, b)); });
}

// The same in one, a channel held on the chip by the N blocks of a cluster. The first `apart` clusters, which would begin
// together, do so one after the other, so that from then on some load while others compute or store.
constexpr int CYCLES_APART = 360;
template <int N>
DEVICE void batchnorm_in_cluster(const T* __restrict__ x, const float* __restrict__ gamma,
                                 const float* __restrict__ beta, T* __restrict__ y, float* __restrict__ means,
                                 float* __restrict__ rstds, int packs, int plane, int channels, float epsilon,
                                 int apart) {
  __shared__ Moments of_warps[32];
  __shared__ float2 of_blocks[N];
  cluster_arrive();
  const int rank = blockIdx.x % N, channel = blockIdx.x / N;
  const float g = gamma[channel], b = beta[channel];
  const Part part(packs, rank, N);
  const Channel of_channel(channel, channels, plane);
  const auto at = [&](int c) { return of_channel(part.first + c); };
  Held<4> held{dynamic_shared(), part.packs};
  if (channel < apart) sleep_cycles(channel * CYCLES_APART);
  held.fetch(x, at);
  Moments all{0.f, 0.f, 0.f};
  held.visit([&](const Pack& p, int) { all.take(p); });
  all = over_block(all, of_warps);
  exchange(of_blocks, make_float2(all.mean, all.squares));
  const int lane = threadIdx.x % 32;  // every warp for itself
  all = {0.f, 0.f, 0.f};
  if (lane < N) all = {(float)Part(packs, lane, N).packs * VEC, of_blocks[lane].x, of_blocks[lane].y};
  all = over_warp(all);
  const float rstd = rsqrtf(all.squares / all.count + epsilon);
  if (rank == 0 && threadIdx.x == 0) {
    means[channel] = all.mean;
    rstds[channel] = rstd;
  }
  held.visit([&](const Pack& p, int c) { store(y, at(c), normalised(p, all.mean, rstd, g, b)); });
}
#define BATCHNORM_CLUSTER(N)                                                                                       \
  KERNEL CLUSTER_OF(N) __launch_bounds__(512, 3)                                                                   \
  batchnorm_cluster_##N(const T* __restrict__ x, const float* __restrict__ gamma, const float* __restrict__ beta,  \
                        T* __restrict__ y, float* __restrict__ means, float* __restrict__ rstds, int packs,        \
                        int plane, int channels, float epsilon, int apart) {                                       \
    batchnorm_in_cluster<N>(x, gamma, beta, y, means, rstds, packs, plane, channels, epsilon, apart);              \
  }
BATCHNORM_CLUSTER(8)
BATCHNORM_CLUSTER(16)
