// softmax(scale * q k') v for one query a head against `keys` cached keys: every key and value is read once and used
// once, so that the memory is all that counts (flash-decoding: Dao, Haziza, Massa and Sizov, 2023).
//
// A head's keys are split over several blocks; D / VEC neighbouring lanes share a key, one pack each. Every such team
// keeps a softmax of its own, and they are merged at the end: in the warp, in the block, and by a second kernel.
constexpr int THREADS = 128, WARPS = THREADS / 32;
constexpr int AT_ONCE = 4;  // keys of a team whose packs are on their way at the same time
constexpr float FLOOR = -1e30f;

template <int N> struct Softmax {
  float most, sum, out[N];  // `most` in units of log2
  MEMBER void clear() {
    most = FLOOR;
    sum = 0.f;
#pragma unroll
    for (int j = 0; j < N; ++j) out[j] = 0.f;
  }
  MEMBER void rescale(float now) {
    const float factor = exp2f(most - now);
    most = now;
    sum *= factor;
#pragma unroll
    for (int j = 0; j < N; ++j) out[j] *= factor;
  }
  // with the thread `mask` lanes away, for the same columns
  MEMBER void merge(int mask) {
    rescale(fmaxf(most, __shfl_xor_sync(0xffffffffu, most, mask)));
    sum += __shfl_xor_sync(0xffffffffu, sum, mask);
#pragma unroll
    for (int j = 0; j < N; ++j) out[j] += __shfl_xor_sync(0xffffffffu, out[j], mask);
  }
};

struct Keys {
  int first, end;  // of this block
  i64 stride;      // elements from one head to the next in the cache, which may have room for more keys
};

template <int D>
DEVICE void attend(Softmax<VEC>& state, const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                   const Keys& keys, float scale) {
  constexpr int LANES = D / VEC, TEAMS = THREADS / LANES;
  const int lane = threadIdx.x % LANES, team = threadIdx.x / LANES;
  float query[VEC];
  const Pack of_query = load(q, lane);
#pragma unroll
  for (int j = 0; j < VEC; ++j) query[j] = to_float(of_query.v[j]) * scale;
  for (int key = keys.first + team; key - team < keys.end; key += TEAMS * AT_ONCE) {
    Pack of_key[AT_ONCE], of_value[AT_ONCE];
#pragma unroll
    for (int u = 0; u < AT_ONCE; ++u) {
      const i64 row = min(key + u * TEAMS, keys.end - 1);
      of_key[u] = load(k, row * LANES + lane);
      of_value[u] = load(v, row * LANES + lane);
    }
    float score[AT_ONCE], now = state.most;
#pragma unroll
    for (int u = 0; u < AT_ONCE; ++u) {
      score[u] = 0.f;
#pragma unroll
      for (int j = 0; j < VEC; ++j) score[u] += query[j] * to_float(of_key[u].v[j]);
#pragma unroll
      for (int m = LANES / 2; m; m >>= 1) score[u] += __shfl_xor_sync(0xffffffffu, score[u], m);
      if (key + u * TEAMS >= keys.end) score[u] = NEG_INF;
      now = fmaxf(now, score[u]);
    }
    state.rescale(now);
#pragma unroll
    for (int u = 0; u < AT_ONCE; ++u) {
      const float weight = exp2f(score[u] - now);
      state.sum += weight;
#pragma unroll
      for (int j = 0; j < VEC; ++j) state.out[j] += weight * to_float(of_value[u].v[j]);
    }
  }
#pragma unroll
  for (int m = LANES; m < 32; m <<= 1) state.merge(m);
}

// `partial` has 2 + D floats for each block of a head: maximum, sum, weighted values; `out` is used with one split
template <int D>
DEVICE void decode(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, T* __restrict__ out,
                   float* __restrict__ partial, Keys keys, int splits, float scale) {
  constexpr int LANES = D / VEC;
  __shared__ float most[WARPS], sum[WARPS], values[WARPS][D];
  const i64 head = blockIdx.x / splits;
  Softmax<VEC> state;
  state.clear();
  attend<D>(state, q + head * D, k + head * keys.stride, v + head * keys.stride, keys, scale);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane < LANES) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) values[warp][lane * VEC + j] = state.out[j];
    most[warp] = state.most;
    sum[warp] = state.sum;
  }
  __syncthreads();
  float top = most[0], total = 0.f;
#pragma unroll
  for (int w = 1; w < WARPS; ++w) top = fmaxf(top, most[w]);
#pragma unroll
  for (int w = 0; w < WARPS; ++w) total += sum[w] * exp2f(most[w] - top);
  for (int d = threadIdx.x; d < D; d += THREADS) {
    float value = 0.f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) value += values[w][d] * exp2f(most[w] - top);
    if (splits == 1) from_float(value / total, &out[head * D + d]);
    else partial[(i64)blockIdx.x * (D + 2) + 2 + d] = value;
  }
  if (splits > 1 && threadIdx.x < 2) partial[(i64)blockIdx.x * (D + 2) + threadIdx.x] = threadIdx.x ? total : top;
}

#define DECODE(D)                                                                                               \
  KERNEL __launch_bounds__(THREADS) decode_##D(const T* __restrict__ q, const T* __restrict__ k,                \
                                               const T* __restrict__ v, T* __restrict__ out,                    \
                                               float* __restrict__ partial, int keys, int room, int splits,     \
                                               int keys_a_split, float scale) {                                 \
    const int first = (int)(blockIdx.x % splits) * keys_a_split;                                                \
    decode<D>(q, k, v, out, partial, Keys{first, min(keys, first + keys_a_split), (i64)room * D}, splits, scale); \
  }
DECODE(64)
DECODE(128)

// One block a head; GROUPS threads share a column and take every GROUPS-th split.
constexpr int GROUPS = 4, MOST_SPLITS = 128;
KERNEL __launch_bounds__(1024) combine(const float* __restrict__ partial, T* __restrict__ out, int splits) {
  __shared__ float shared[2][32], share[MOST_SPLITS], values[1024];
  const int columns = blockDim.x / GROUPS, column = threadIdx.x % columns, group = threadIdx.x / columns;
  const float* of_head = partial + (i64)blockIdx.x * splits * (columns + 2);
  const float* mine = of_head + threadIdx.x * (columns + 2);  // of one split
  const float most = threadIdx.x < splits ? mine[0] : FLOOR;
  const float factor = exp2f(most - block_max(most, shared[0]));
  const float total = block_sum(threadIdx.x < splits ? factor * mine[1] : 0.f, shared[1]);
  if (threadIdx.x < splits) share[threadIdx.x] = factor / total;
  __syncthreads();
  float value = 0.f;
#pragma unroll 8
  for (int s = group; s < splits; s += GROUPS) value += share[s] * of_head[s * (columns + 2) + 2 + column];
  values[threadIdx.x] = value;
  __syncthreads();
  if (group) return;
#pragma unroll
  for (int g = 1; g < GROUPS; ++g) value += values[g * columns + column];
  from_float(value, &out[(i64)blockIdx.x * columns + column]);
}
