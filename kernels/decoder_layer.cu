// One token through a transformer's layer. All of the time goes into reading the weights once, so that every kernel is
// a product of a matrix with a vector; whatever stands before or behind it is done in the same kernel.
//
// Weights are stored as [out, in]: a warp takes one row of each of up to two matrices, 16 bytes a lane at a time. The
// RMS norm in front of a product needs no pass of its own: rows are multiplied by x · gamma, and the warp, which sees
// all of x anyway, divides by the root mean square of x when it is done.
constexpr int WARPS = 8, PACKS_AT_ONCE = 8;

struct Norm {
  const T* gamma;  // none where it is null
  float epsilon;
};

DEVICE int warp_index() { return blockIdx.x * WARPS + threadIdx.x / 32; }


// the products of a warp's rows with x, the same in all of its lanes
template <int N> DEVICE void products(float (&sums)[N], const T* const (&rows)[N], const T* x, int packs, Norm norm) {
  constexpr int AT_ONCE = PACKS_AT_ONCE / N;
  const int lane = threadIdx.x % 32;
  float squares = 0.f;
#pragma unroll
  for (int r = 0; r < N; ++r) sums[r] = 0.f;
  for (int first = 0; first < packs; first += 32 * AT_ONCE) {
    Pack held[AT_ONCE][N];
#pragma unroll
    for (int u = 0; u < AT_ONCE; ++u)
#pragma unroll
      for (int r = 0; r < N; ++r)
        if (first + u * 32 + lane < packs) held[u][r] = load(rows[r], first + u * 32 + lane);
#pragma unroll
    for (int u = 0; u < AT_ONCE; ++u) {
      const int c = first + u * 32 + lane;
      if (c >= packs) continue;
      const Pack of_x = load(x, c);
      Pack of_gamma;
      if (norm.gamma) of_gamma = load(norm.gamma, c);
#pragma unroll
      for (int j = 0; j < VEC; ++j) {
        float value = to_float(of_x.v[j]);
        if (norm.gamma) {
          squares += value * value;
          value *= to_float(of_gamma.v[j]);
        }
#pragma unroll
        for (int r = 0; r < N; ++r) sums[r] += value * to_float(held[u][r].v[j]);
      }
    }
  }
  const float scale = norm.gamma ? rsqrtf(warp_sum(squares) / ((float)packs * VEC) + norm.epsilon) : 1.f;
#pragma unroll
  for (int r = 0; r < N; ++r) sums[r] = warp_sum(sums[r]) * scale;
}

// Where a head's vectors lie: queries one after the other, keys and values at the newest position of their cache.
struct Heads {
  int count, half;  // half of the head dimension
  int position, room;
  MEMBER i64 in_cache(int token, int head) const { return (((i64)token * count + head) * room + position) * 2 * half; }
  MEMBER i64 in_queries(int token, int head) const { return ((i64)token * count + head) * 2 * half; }
};

// q, k and v of the normalised token, q and k rotated by its position (RoFormer: Su et al., 2021), k and v into their
// caches. A warp has elements i and i + half of a head, which are rotated together; `rotation` has cosines, then sines.
KERNEL __launch_bounds__(32 * WARPS) norm_qkv_rotate(
    const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ w_q, const T* __restrict__ w_k,
    const T* __restrict__ w_v, const float* __restrict__ rotation, T* __restrict__ q, T* __restrict__ keys,
    T* __restrict__ values, int packs, int count, int half, int position, int room, float epsilon) {
  const Heads heads{count, half, position, room};
  const int pairs = count * half, which = warp_index() / pairs, pair = warp_index() % pairs;
  if (which > 2) return;
  const int head = pair / half, i = pair % half;
  const T* w = which == 0 ? w_q : which == 1 ? w_k : w_v;
  const i64 row = head * 2 * half + i, length = packs * VEC;
  const T* rows[2] = {w + row * length, w + (row + half) * length};
  float sums[2];
  products(sums, rows, x, packs, Norm{gamma, epsilon});
  if (threadIdx.x % 32) return;
  const float cosine = which < 2 ? rotation[i] : 1.f, sine = which < 2 ? rotation[half + i] : 0.f;
  T* to = which == 0   ? q + heads.in_queries(0, head)
          : which == 1 ? keys + heads.in_cache(0, head)
                       : values + heads.in_cache(0, head);
  from_float(sums[0] * cosine - sums[1] * sine, &to[i]);
  from_float(sums[1] * cosine + sums[0] * sine, &to[half + i]);
}

// residual + w x
KERNEL __launch_bounds__(32 * WARPS) project_add(const T* __restrict__ x, const T* __restrict__ w,
                                                 const T* __restrict__ residual, T* __restrict__ out, int packs,
                                                 int outputs) {
  const int row = warp_index();
  if (row >= outputs) return;
  const T* rows[1] = {w + (i64)row * packs * VEC};
  float sums[1];
  products(sums, rows, x, packs, Norm{nullptr, 0.f});
  if (threadIdx.x % 32 == 0) from_float(to_float(residual[row]) + sums[0], &out[row]);
}

// silu(gate y) * (up y) of the normalised y
KERNEL __launch_bounds__(32 * WARPS) norm_gate(const T* __restrict__ x, const T* __restrict__ gamma,
                                               const T* __restrict__ gate, const T* __restrict__ up,
                                               T* __restrict__ out, int packs, int outputs, float epsilon) {
  const int row = warp_index();
  if (row >= outputs) return;
  const T* rows[2] = {gate + (i64)row * packs * VEC, up + (i64)row * packs * VEC};
  float sums[2];
  products(sums, rows, x, packs, Norm{gamma, epsilon});
  if (threadIdx.x % 32 == 0) from_float(__fdividef(sums[0], 1.f + expf(-sums[0])) * sums[1], &out[row]);
}

// Behind one product for q, k and v of many tokens, [tokens, 3, heads, head dimension]: rotation, and k and v into
// their caches. A thread has a pack and the one half a head further on.
KERNEL rotate_store(const T* __restrict__ qkv, const float* __restrict__ rotation, T* __restrict__ q,
                    T* __restrict__ keys, T* __restrict__ values, int tokens, int count, int half, int position,
                    int room) {
  const Heads heads{count, half, position, room};
  const int packs = half / VEC, i = blockIdx.x * blockDim.x + threadIdx.x;
  const int c = i % packs, head = i / packs % count, which = i / packs / count % 3, token = i / packs / count / 3;
  if (token >= tokens) return;
  const T* from = qkv + (((i64)token * 3 + which) * count + head) * 2 * half;
  T* to = which == 0   ? q + heads.in_queries(token, head)
          : which == 1 ? keys + heads.in_cache(token, head)
                       : values + heads.in_cache(token, head);
  Pack low = load(from, c), high = load(from, packs + c);
  if (which < 2) {
#pragma unroll
    for (int j = 0; j < VEC; ++j) {
      const float cosine = rotation[c * VEC + j], sine = rotation[half + c * VEC + j];
      const float a = to_float(low.v[j]), b = to_float(high.v[j]);
      from_float(a * cosine - b * sine, &low.v[j]);
      from_float(b * cosine + a * sine, &high.v[j]);
    }
  }
  store(to, c, low);
  store(to, packs + c, high);
}
