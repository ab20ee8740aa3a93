// What follows a matrix product, in one pass over its result, in place.

struct BiasRelu {
  MEMBER float operator()(const float* x, const float* column, const float*) const { return relu(x[0] + column[0]); }
};
struct BiasMaskRelu {
  MEMBER float operator()(const float* x, const float* column, const float*) const {
    return relu((x[0] + column[0]) * x[1]);
  }
};

KERNEL bias_relu(T* y, const T* bias, i64 rows, int packs, int across) {
  map_matrix<1, 1, 0>(rows, packs, across, y, BiasRelu(), {{y}}, {{bias}}, {{nullptr}});
}
KERNEL bias_mask_relu(T* y, const T* bias, const T* mask, i64 rows, int packs, int across) {
  map_matrix<2, 1, 0>(rows, packs, across, y, BiasMaskRelu(), {{y, mask}}, {{bias}}, {{nullptr}});
}
