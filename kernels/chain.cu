template <int LENGTH> struct Chain {
  float by, up;
  MEMBER float operator()(float x) const {
#pragma unroll
    for (int k = 0; k < LENGTH; ++k) x = k % 2 ? x + up : x * by;
    return x;
  }
};

#define CHAIN(LENGTH)                                                                                       \
  KERNEL chain_##LENGTH(const T* __restrict__ x, T* __restrict__ out, i64 n, float by, float up) {          \
    map_flat(n, out, Chain<LENGTH>{by, up}, x);                                                             \
  }
CHAIN(1)
CHAIN(2)
CHAIN(3)
CHAIN(4)
CHAIN(8)
CHAIN(16)
