// Batch normalisation of [batch, channels, height, width]: a channel is `batch` pieces of memory, each of `plane` packs.
struct Channel {
  int channel, channels, plane;
  // where the channel's pack c is
  MEMBER i64 operator()(int c) const {
    const u32 image = (u32)c / (u32)plane;
    return ((i64)image * channels + channel) * plane + ((u32)c - image * plane);
  }
};

DEVICE Pack normalised(const Pack& p, float mean, float rstd, float gamma, float beta) {
  Pack r;
#pragma unroll
  for (int j = 0; j < VEC; ++j) from_float((to_float(p.v[j]) - mean) * rstd * gamma + beta, &r.v[j]);
  return r;
}
