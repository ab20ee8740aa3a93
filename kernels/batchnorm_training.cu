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

// The same in one: every block sums one part and normalises another, which was summed `lag` parts ago, so that its
// second read comes from the cache. Blocks take parts in the order in which they begin: what a block waits for belongs
// to blocks that have begun before it and wait for nothing later.
constexpr int PACKS_OF_A_THREAD = 4;
// what another block has written: not from the first-level cache
DEVICE float now(const float* x) { return *(const volatile float*)x; }
DEVICE Moments now(const Moments* x) { return {now(&x->count), now(&x->mean), now(&x->squares)}; }
// the same, before anything that comes later in the program is read
DEVICE u32 acquire(const u32* x) {
#ifdef __CUDA_ARCH__
  u32 value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(x) : "memory");
  return value;
#else
  return *x;
#endif
}

// a load that stays where it stands: the compiler would put the others behind an acquire() that comes after them
DEVICE Pack load_here(const T* p, i64 pack) {
#ifdef __CUDA_ARCH__
  uint4 bits;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
               : "l"(reinterpret_cast<const uint4*>(p) + pack));
  return *reinterpret_cast<const Pack*>(&bits);
#else
  return load(p, pack);
#endif
}

// For one warp: writes the moments of a part and, if it is the channel's last, what all parts come to.
DEVICE void publish(const Moments& of_part, Moments* of_parts, int part, int parts, u32* done, u32 before, float* mean,
                    float* rstd, float epsilon) {
  const int lane = threadIdx.x;
  float last = 0.f;
  if (lane == 0) {
    of_parts[part] = of_part;
    __threadfence();
    last = atomicAdd(done, 1u) - before == (u32)parts - 1;
  }
  if (warp_sum(last) == 0.f) return;
  __threadfence();
  Moments all{0.f, 0.f, 0.f};
  for (int p = lane; p < parts; p += 32) all.merge(now(of_parts + p));
  all = over_warp(all);
  if (lane) return;
  *mean = all.mean;
  *rstd = rsqrtf(all.squares / all.count + epsilon);
  __threadfence();
  atomicAdd(done, 1u);
}
// taken: parts taken since it was made, gridDim.x in every launch; done: of a channel, parts summed and one more when
// its mean and rstd are there, likewise. So a launch leaves both as the next one needs them.
KERNEL __launch_bounds__(256, 4)
batchnorm_trailing(const T* __restrict__ x, const float* __restrict__ gamma, const float* __restrict__ beta,
                   T* __restrict__ y, float* means, float* rstds, Moments* of_parts, u64* taken, u32* done, int packs,
                   int plane, int channels, int parts, int lag, float epsilon) {
  constexpr int P = PACKS_OF_A_THREAD;
  __shared__ Moments of_warps[32];
  __shared__ int order[3];
  __shared__ u32 generation;
  if (threadIdx.x == 0) {
    const u64 mine = atomicAdd(taken, (u64)1);
    order[0] = (int)(mine % gridDim.x);
    order[1] = order[0] / parts;
    order[2] = (order[0] - lag) / parts;
    generation = (u32)(mine / gridDim.x);
  }
  __syncthreads();
  const int summed = order[0], of_sum = order[1], of_write = order[2];
  const u32 before = generation * (parts + 1), ready = before + parts + 1;
  const Part sum(packs, summed - of_sum * parts, parts), write(packs, summed - lag - of_write * parts, parts);
  const Channel at_sum(of_sum, channels, plane), at_write(of_write, channels, plane);
  const bool sums = of_sum < channels, writes = summed >= lag;
  Pack first[P], again[P];
  float g = 0.f, b = 0.f, mean = 0.f, rstd = 0.f;
  u32 state = before;
  if (sums) each_pack<P>(sum.packs, [&](int k, int c) { first[k] = load_here(x, at_sum(sum.first + c)); });
  if (writes) {
    each_pack<P>(write.packs, [&](int k, int c) { again[k] = load_here(x, at_write(write.first + c)); });
    g = gamma[of_write];
    b = beta[of_write];
    state = acquire(done + of_write);
  }
  Moments of_part{0.f, 0.f, 0.f};
  if (sums) each_pack<P>(sum.packs, [&](int k, int) { of_part.take(first[k]); });
  if (state == ready) mean = now(means + of_write), rstd = now(rstds + of_write);
  if (sums) {
    of_part = over_block(of_part, of_warps);
    if (threadIdx.x < 32)
      publish(of_part, of_parts + (i64)of_sum * parts, summed - of_sum * parts, parts, done + of_sum, before,
              means + of_sum, rstds + of_sum, epsilon);
  }
  if (!writes) return;
  if (state != ready) {
    while (acquire(done + of_write) != ready) {}
    mean = now(means + of_write), rstd = now(rstds + of_write);
  }
  each_pack<P>(write.packs,
               [&](int k, int c) { store(y, at_write(write.first + c), normalised(again[k], mean, rstd, g, b)); });
}

// The same in one, a channel held on the chip by the blocks of a cluster.
constexpr int BLOCKS = 8;
KERNEL CLUSTER_OF(8) __launch_bounds__(512, 3)
batchnorm_cluster_8(const T* __restrict__ x, const float* __restrict__ gamma, const float* __restrict__ beta,
                    T* __restrict__ y, float* __restrict__ means, float* __restrict__ rstds, int packs, int plane,
                    int channels, float epsilon) {
  __shared__ Moments of_warps[32];
  __shared__ float2 of_blocks[BLOCKS];
  cluster_arrive();
  const int rank = blockIdx.x % BLOCKS, channel = blockIdx.x / BLOCKS;
  const float g = gamma[channel], b = beta[channel];
  const Part part(packs, rank, BLOCKS);
  const Channel of_channel(channel, channels, plane);
  const auto at = [&](int c) { return of_channel(part.first + c); };
  Held<4> held{dynamic_shared(), part.packs};
  held.fetch(x, at);
  Moments all{0.f, 0.f, 0.f};
  held.visit([&](const Pack& p, int) { all.take(p); });
  all = over_block(all, of_warps);
  exchange(of_blocks, make_float2(all.mean, all.squares));
  const int lane = threadIdx.x % 32;  // every warp for itself
  all = {0.f, 0.f, 0.f};
  if (lane < BLOCKS) all = {(float)Part(packs, lane, BLOCKS).packs * VEC, of_blocks[lane].x, of_blocks[lane].y};
  all = over_warp(all);
  const float rstd = rsqrtf(all.squares / all.count + epsilon);
  if (rank == 0 && threadIdx.x == 0) {
    means[channel] = all.mean;
    rstds[channel] = rstd;
  }
  held.visit([&](const Pack& p, int c) { store(y, at(c), normalised(p, all.mean, rstd, g, b)); });
}
