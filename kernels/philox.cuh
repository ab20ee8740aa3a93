// Philox4x32-10: ten rounds over a counter of 128 bits, of which the lower 64 are used here, and a key of 64.
struct Words { u32 v[4]; };
DEVICE Words philox(u64 counter, u64 key) {
  u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = 0, c3 = 0, k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
    c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
    c1 = (u32)p1;
    c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
    c3 = (u32)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Counter e / 8 serves elements 8 (e / 8) .. + 7, 16 bits each, the lower half of a word first: the draw of an
// element does not depend on its type, and one call of Philox serves a whole pack of halves.
constexpr int GROUP = 8;
DEVICE u32 draw_of(u64 element, u64 key) {
  const Words w = philox(element / GROUP, key);
  const int j = element % GROUP;
  const u32 word = j < 4 ? (j < 2 ? w.v[0] : w.v[1]) : (j < 6 ? w.v[2] : w.v[3]);
  return j % 2 ? word >> 16 : word & 0xffff;
}
struct Draws { u32 v[VEC]; };
DEVICE Draws draws_of(i64 pack, u64 key) {
  const Words w = philox((u64)pack * VEC / GROUP, key);
  // a pack of four floats is one half of a group; selected without indexing, which would need local memory
  const bool second = VEC < GROUP && pack % 2;
  u32 words[4] = {second ? w.v[2] : w.v[0], second ? w.v[3] : w.v[1], w.v[2], w.v[3]};
  Draws d;
#pragma unroll
  for (int j = 0; j < VEC; ++j) d.v[j] = j % 2 ? words[j / 2] >> 16 : words[j / 2] & 0xffff;
  return d;
}
