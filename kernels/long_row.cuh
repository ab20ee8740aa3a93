// Rows too long for the registers of one block: held on the chip with the help of shared memory, or streamed.

#ifdef __CUDA_ARCH__
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]

// 16 bytes from global to shared memory, without a register in between
DEVICE void copy_async(Pack* to, const T* from, i64 pack) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)),
               "l"(reinterpret_cast<const uint4*>(from) + pack)
               : "memory");
}
DEVICE void copies_arrived() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#else
DEVICE void copy_async(Pack* to, const T* from, i64 pack) { *to = load(from, pack); }
DEVICE void copies_arrived() {}
#endif

DEVICE Pack* dynamic_shared() {
  DYNAMIC_SHARED(Pack, packs);
  return packs;
}

// The packs of a row, or of a block's part of one: the first P packs of every thread in registers, the rest in shared
// memory. A thread reads back only what it brought itself, so that no barrier is needed.
template <int P> struct Held {
  Pack* shared;
  int packs;
  uint4 registers[P];

  // at(c): where pack c is in `from`. What goes to registers is asked for first, since it is used first.
  template <class At> MEMBER void fetch(const T* from, At at) {
    fetch_registers(from, at);
    fetch_shared(from, at);
  }
  template <class At> MEMBER void fetch_registers(const T* from, At at) {
    each_pack<P>(packs, [&](int k, int c) { registers[k] = reinterpret_cast<const uint4*>(from)[at(c)]; });
  }
  template <class At> MEMBER void fetch_shared(const T* from, At at) {
    for (int c = threadIdx.x + P * blockDim.x; c < packs; c += blockDim.x)
      copy_async(shared + c - P * blockDim.x, from, at(c));
  }
  // f(pack, c) for every pack of this thread
  template <class F> MEMBER void visit(F f) {
    each_pack<P>(packs, [&](int k, int c) {
      forget(registers[k]);
      f(*reinterpret_cast<const Pack*>(&registers[k]), c);
    });
    copies_arrived();
#pragma unroll 2
    for (int c = threadIdx.x + P * blockDim.x; c < packs; c += blockDim.x)
      f(load(shared->v, c - P * blockDim.x), c);
  }
};

// f(pack, c) for every pack of this thread, straight from memory, U loads ahead
template <int U, class At, class F> DEVICE void stream(const T* from, int packs, At at, F f) {
  for (int first = threadIdx.x; first < packs; first += U * blockDim.x) {
    Pack in[U];
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (first + u * (int)blockDim.x < packs) in[u] = load(from, at(first + u * blockDim.x));
#pragma unroll
    for (int u = 0; u < U; ++u)
      if (first + u * (int)blockDim.x < packs) f(in[u], first + u * blockDim.x);
  }
}

// Part `rank` of `count` equal parts of a row of packs, the last ones shorter or empty.
struct Part {
  int first, packs;
  MEMBER Part(int whole, int rank, int count) {
    const int share = (whole + count - 1) / count;
    first = rank * share;
    packs = first >= whole ? 0 : whole - first < share ? whole - first : share;
  }
};
