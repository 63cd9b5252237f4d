//===- conv_reference.h - convolutions, slowly ----------------------------===//
#ifndef OGC_TEST_GPU_CONV_REFERENCE_H
#define OGC_TEST_GPU_CONV_REFERENCE_H

#include "harness.h"

namespace bench {

/// An operand as it is stored.
struct StoredOperand {
  template <class T> static __device__ double of(T x) { return ogc::toFloat(x); }
};

/// Of pixels with strides Q::XSb, XSh, XSw and a filter in panels of P columns, or one for each channel.
template <class Q, class Operand = StoredOperand>
__global__ void convReference(const typename Q::Element *x, const typename Q::Element *w, double *out, int P, bool depthwise) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  int F = depthwise ? (int)Q::C : (int)Q::F;
  if (i >= (long long)Q::Batch * Q::OH * Q::OW * F)
    return;
  int f = i % F, ox = i / F % Q::OW, oy = i / F / Q::OW % Q::OH, b = i / F / Q::OW / Q::OH;
  double sum = 0;
  for (int kh = 0; kh < Q::KH; ++kh)
    for (int kw = 0; kw < Q::KW; ++kw) {
      int y = oy * Q::StrideH - Q::PadTop + kh * Q::DilationH, xx = ox * Q::StrideW - Q::PadLeft + kw * Q::DilationW;
      if (y < 0 || y >= Q::H || xx < 0 || xx >= Q::W)
        continue;
      const typename Q::Element *px = x + ((long long)b * Q::XSb + (long long)y * Q::XSh + xx * Q::XSw);
      int tap = kh * Q::KW + kw;
      if (depthwise)
        sum += Operand::of(px[f]) * Operand::of(w[tap * Q::C + f]);
      else
        for (int c = 0; c < Q::C; ++c)
          sum += Operand::of(px[c]) *
                 Operand::of(w[(long long)(f / P) * Q::KH * Q::KW * Q::C * P + (long long)(tap * Q::C + c) * P + f % P]);
    }
  out[i] = sum;
}

} // namespace bench

#endif
