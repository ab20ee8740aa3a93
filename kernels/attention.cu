// softmax(scale * q k' + mask) v for every head, without the matrix of scores in memory (Dao et al., 2022 and 2023).
//
// A block has QUERY_ROWS queries of one head, a warp 32 of them, and walks over the keys in tiles of KEY_ROWS. Scores
// stay in registers, in the layout in which a product leaves them, and that is also the layout in which the next
// product takes its left operand. While a product runs, the tile of the next one is being copied.
constexpr int QUERY_ROWS = 128, THREADS = 128;
constexpr int GROUPS = 2;  // of 16 rows a warp: an operand that is loaded once is used for both
constexpr float FLOOR = -1e30f;

// `valid` rows, and zeros for the others, which are not read
template <int D, int ROWS_OF_TILE> DEVICE void copy_tile(T* tile, const T* rows, int valid) {
  constexpr int PACKS = D / VEC, STEP = THREADS / PACKS;
  const int row = threadIdx.x / PACKS, column = threadIdx.x % PACKS * VEC;
  tile += row * (D + 8) + column;
  rows += row * D + column;
#pragma unroll
  for (int r = 0; r < ROWS_OF_TILE; r += STEP) copy_async(tile + r * (D + 8), rows + r * D, row + r < valid);
}

struct Limits {
  int queries, keys, causal;
  // the first key that a query must not see
  MEMBER int end(int query) const { return causal ? min(keys, query + 1 + keys - queries) : keys; }
};

template <int D, int KEY_ROWS> struct Warp {
  float out[GROUPS][D / 8][4], scores[GROUPS][KEY_ROWS / 8][4];
  u32 weights[GROUPS][KEY_ROWS / 16][4];
  float most[GROUPS][2], sum[GROUPS][2];  // by row; `most` in units of log2, lagging behind the true maximum
  int lane, row;                          // of the first row of the warp in the tile

  MEMBER void begin() {
    lane = threadIdx.x % 32;
    row = threadIdx.x / 32 * 16 * GROUPS;
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
#pragma unroll
      for (int i = 0; i < D / 8; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) out[g][i][e] = 0.f;
      most[g][0] = most[g][1] = FLOOR;
      sum[g][0] = sum[g][1] = 0.f;
    }
  }
  // row of the thread's elements 2 * half and 2 * half + 1, in the tile
  MEMBER int row_of(int g, int half) const { return row + g * 16 + half * 8 + lane / 4; }

  MEMBER void score(const T* tile_q, const T* tile_k) {
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
#pragma unroll
      for (int i = 0; i < KEY_ROWS / 8; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) scores[g][i][e] = 0.f;
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
      u32 q[GROUPS][4];
#pragma unroll
      for (int g = 0; g < GROUPS; ++g)
        load_tiles(q[g], tile_q + (row + g * 16 + lane % 16) * (D + 8) + k * 16 + lane / 16 * 8);
#pragma unroll
      for (int n = 0; n < KEY_ROWS / 16; ++n) {
        u32 keys[4];
        load_tiles(keys, tile_k + (n * 16 + lane % 8 + lane / 16 * 8) * (D + 8) + k * 16 + lane / 8 % 2 * 8);
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
          multiply_add(scores[g][2 * n], q[g], keys[0], keys[1], T());
          multiply_add(scores[g][2 * n + 1], q[g], keys[2], keys[3], T());
        }
      }
    }
  }
  MEMBER void mask(const Limits& limits, int first_query, int first_key) {
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int end = limits.end(first_query + row_of(g, half)) - first_key - lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < KEY_ROWS / 8; ++i)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (i * 8 + e >= end) scores[g][i][2 * half + e] = NEG_INF;
      }
  }
  // Scores become weights relative to `most`. Any `most` near the maximum serves, as it cancels in the end; so it
  // follows only where it is left behind by a factor of 2^8, and what has been summed is seldom rescaled.
  MEMBER void weigh(float scale) {
    float top[GROUPS][2];
    bool behind = false;
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float t = scores[g][0][2 * half];
#pragma unroll
        for (int i = 0; i < KEY_ROWS / 8; ++i) t = fmaxf(t, fmaxf(scores[g][i][2 * half], scores[g][i][2 * half + 1]));
        t = fmaxf(t, __shfl_xor_sync(0xffffffffu, t, 1));
        t = fmaxf(t, __shfl_xor_sync(0xffffffffu, t, 2));
        top[g][half] = t * scale;
        behind |= top[g][half] > most[g][half] + 8.f;
      }
    if (any_in_warp(behind)) follow(top);
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
#pragma unroll
      for (int i = 0; i < KEY_ROWS / 8; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float a = two_to_the(scores[g][i][2 * half] * scale - most[g][half]);
          const float b = two_to_the(scores[g][i][2 * half + 1] * scale - most[g][half]);
          sum[g][half] += a + b;
          weights[g][i / 2][i % 2 * 2 + half] = both(a, b, T());
        }
  }
  MEMBER void follow(const float (&top)[GROUPS][2]) {
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float now = fmaxf(most[g][half], top[g][half]), factor = two_to_the(most[g][half] - now);
        most[g][half] = now;
        sum[g][half] *= factor;
#pragma unroll
        for (int i = 0; i < D / 8; ++i) {
          out[g][i][2 * half] *= factor;
          out[g][i][2 * half + 1] *= factor;
        }
      }
  }
  MEMBER void gather(const T* tile_v) {
#pragma unroll
    for (int k = 0; k < KEY_ROWS / 16; ++k) {
#pragma unroll
      for (int d = 0; d < D / 16; ++d) {
        u32 values[4];
        load_tiles_transposed(values, tile_v + (k * 16 + lane % 16) * (D + 8) + d * 16 + lane / 16 * 8);
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
          multiply_add(out[g][2 * d], weights[g][k], values[0], values[1], T());
          multiply_add(out[g][2 * d + 1], weights[g][k], values[2], values[3], T());
        }
      }
    }
  }
  MEMBER void finish(T* result, int valid) {
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float total = sum[g][half];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        const float share = 1.f / total;
        if (row_of(g, half) >= valid) continue;
        T* to = result + (i64)row_of(g, half) * D + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < D / 8; ++i) {
          const float low = out[g][i][2 * half] * share, high = out[g][i][2 * half + 1] * share;
          *reinterpret_cast<u32*>(to + i * 8) = both(low, high, T());
        }
      }
  }
};

template <int D, int KEY_ROWS>
DEVICE void flash_attention(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                            T* __restrict__ out, Limits limits, int tiles, float scale) {
  DYNAMIC_SHARED(T, tile_q);
  T* const tile_k = tile_q + QUERY_ROWS * (D + 8);
  T* const tile_v = tile_k + KEY_ROWS * (D + 8);
  const i64 head = blockIdx.x / tiles;
  const int first = (tiles - 1 - (int)(blockIdx.x % tiles)) * QUERY_ROWS;  // under a causal mask, the longest first
  q += (head * limits.queries + first) * D;
  k += head * limits.keys * D;
  v += head * limits.keys * D;
  const int end = limits.end(min(first + QUERY_ROWS, limits.queries) - 1);

  copy_tile<D, QUERY_ROWS>(tile_q, q, limits.queries - first);
  copy_tile<D, KEY_ROWS>(tile_k, k, limits.keys);
  Warp<D, KEY_ROWS> warp;
  warp.begin();
  const int row = first + warp.row, begun = limits.end(row);
  const int ended = row < limits.queries ? limits.end(row + 16 * GROUPS - 1) : 0;
  wait_for_copies();
  __syncthreads();
  for (int key = 0; key < end; key += KEY_ROWS) {
    const bool busy = key < ended;  // a warp may have no keys to see, or no more, while others of its block have
    copy_tile<D, KEY_ROWS>(tile_v, v, limits.keys - key);
    if (busy) warp.score(tile_q, tile_k);
    wait_for_copies();
    __syncthreads();
    k += KEY_ROWS * D;
    v += KEY_ROWS * D;
    if (key + KEY_ROWS < end) copy_tile<D, KEY_ROWS>(tile_k, k, limits.keys - KEY_ROWS - key);
    if (busy) {
      if (key + KEY_ROWS > begun) warp.mask(limits, first, key);
      warp.weigh(scale);
      warp.gather(tile_v);
    }
    wait_for_copies();
    __syncthreads();
  }
  warp.finish(out + (head * limits.queries + first) * D, limits.queries - first);
}

#define FLASH(D, KEY_ROWS, BLOCKS)                                                                        \
  KERNEL __launch_bounds__(THREADS, BLOCKS) flash_##D(                                                    \
      const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, T* __restrict__ out,     \
      int queries, int keys, int causal, int tiles, float scale) {                                        \
    flash_attention<D, KEY_ROWS>(q, k, v, out, Limits{queries, keys, causal}, tiles, scale);              \
  }
FLASH(64, 128, 2)
FLASH(128, 64, 2)
