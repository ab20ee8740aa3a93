// Stands for CUDA's header of that name: a half is a _Float16 with CUDA's names for its conversions.
#pragma once

struct __half {
  _Float16 value;
};
inline float __half2float(__half h) { return (float)h.value; }
inline __half __float2half_rn(float x) { return {(_Float16)x}; }
