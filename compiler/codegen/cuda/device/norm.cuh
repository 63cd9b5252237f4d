//===- norm.cuh - normalization of the rows of a product ------------------===//
//
// A product whose rows are divided by their spread sums the rows of A while these pass through its registers, and multiplies the
// finished sums by one factor a row. So the normalized rows are never stored.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_NORM_CUH
#define OGC_DEVICE_NORM_CUH

#include "ogc/ptx.cuh"

namespace ogc {

/// Members of a configuration. Norm: 0 for none, 1 for the root of the mean square, 2 for the standard deviation. Epsilon: the
/// bits of the float that is added under the root.
struct NormDefaults {
  enum { Norm = 0, Epsilon = 0 };
};

/// One over the spread of a row of K elements with these sums.
template <class C, int K> __device__ __forceinline__ float rowFactor(float squares, float sum) {
  float spread = squares * (1.f / K);
  if constexpr (C::Norm == 2) {
    float mean = sum * (1.f / K), variance = spread - mean * mean;
    spread = variance < 0.f ? 0.f : variance; // a NaN stays one
  }
  return rsqrtf(spread + __int_as_float(C::Epsilon));
}

} // namespace ogc

#endif
