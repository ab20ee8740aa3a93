// Batch normalisation of [batch, channels, height, width]: a channel is `batch` pieces of memory, each of `plane` packs.
struct Channel {
  i64 start;
  u32 plane, inverse, between;  // the last: packs between two of its pieces
  MEMBER Channel(int channel, int channels, int plane)
      : start((i64)channel * plane), plane(plane), inverse(0xffffffffu / (u32)plane), between((channels - 1) * plane) {}
  // where the channel's pack c is, c below 2^31. A division would take longer than all else that is done with a pack;
  // the product with the rounded inverse is the quotient or one less.
  MEMBER i64 operator()(int c) const {
    u32 image = __umulhi(c, inverse);
    if (c - image * plane >= plane) ++image;
    return start + c + (i64)((u64)image * between);
  }
};

DEVICE Pack normalised(const Pack& p, float mean, float rstd, float gamma, float beta) {
  Floats x = unpacked(p);
#pragma unroll
  for (int j = 0; j < VEC; ++j) x.v[j] = (x.v[j] - mean) * rstd * gamma + beta;
  return packed(x);
}
