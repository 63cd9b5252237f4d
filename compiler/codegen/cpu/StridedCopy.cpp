//===- StridedCopy.cpp - blocked copies between strided boxes -------------===//
#include "compiler/codegen/cpu/NativeLayout.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace mlir;

namespace ogc::codegen {

namespace {

struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

// Conversions round to nearest, ties to even; NaN stays NaN. Written without branches on data where it matters, so that they
// vectorize.

inline float toFloat(float value) { return value; }
inline float toFloat(double value) { return static_cast<float>(value); }
inline float toFloat(Bfloat value) { return std::bit_cast<float>(uint32_t(value.bits) << 16); }
inline float toFloat(Half value) {
  uint32_t magnitude = uint32_t(value.bits & 0x7fff) << 13, sign = uint32_t(value.bits & 0x8000) << 16;
  // Scaling by 2^112 rebases the exponent and normalizes subnormals; infinity and NaN get the full exponent back.
  float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  uint32_t bits = std::bit_cast<uint32_t>(scaled) | (magnitude >= 0x0f800000u ? 0x7f800000u : 0u);
  return std::bit_cast<float>(bits | sign);
}

inline void fromFloat(float value, float &out) { out = value; }
inline void fromFloat(float value, double &out) { out = value; }
inline void fromFloat(float value, Bfloat &out) {
  uint32_t bits = std::bit_cast<uint32_t>(value), rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  out.bits = (bits & 0x7fffffff) > 0x7f800000 ? uint16_t((bits >> 16) | 0x40) : uint16_t(rounded);
}
inline void fromFloat(float value, Half &out) {
  uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  // Adding 0.5 shifts the ten significant bits of a subnormal half to the end of the word, rounded by the hardware.
  uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t normal = (magnitude - 0x38000000u + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x477ff000u ? 0x7c00u : half;
  half = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ff) : half;
  out.bits = uint16_t(half | sign);
}

/// One loop of a copy.
struct Dim {
  int64_t extent, to, from;
};

template <typename To, typename From> struct Convert {
  void operator()(To &to, const From &from) const { fromFloat(toFloat(from), to); }
};
template <typename T> struct Convert<T, T> {
  void operator()(T &to, const T &from) const { to = from; }
};

template <typename To, typename From>
void copyRow(To *to, int64_t toStride, const From *from, int64_t fromStride, int64_t count) {
  Convert<To, From> convert;
  if (toStride == 1 && fromStride == 1) {
    for (int64_t i = 0; i < count; ++i)
      convert(to[i], from[i]);
  } else if (toStride == 1 && fromStride == 0) {
    To value;
    convert(value, *from);
    std::fill(to, to + count, value);
  } else {
    for (int64_t i = 0; i < count; ++i)
      convert(to[i * toStride], from[i * fromStride]);
  }
}

/// The two innermost loops; where the sides are contiguous in different loops, in blocks that fit the first level cache.
template <typename To, typename From> void copyPlane(To *to, const From *from, Dim outer, Dim inner) {
  if (inner.from <= 1) {
    for (int64_t i = 0; i < outer.extent; ++i)
      copyRow(to + i * outer.to, inner.to, from + i * outer.from, inner.from, inner.extent);
    return;
  }
  constexpr int64_t block = 16;
  for (int64_t i = 0; i < outer.extent; i += block)
    for (int64_t j = 0; j < inner.extent; j += block)
      for (int64_t k = i; k < std::min(i + block, outer.extent); ++k)
        copyRow(to + k * outer.to + j * inner.to, inner.to, from + k * outer.from + j * inner.from, inner.from,
                std::min(block, inner.extent - j));
}

template <typename To, typename From> void copyBox(To *to, const From *from, ArrayRef<Dim> dims) {
  if (dims.size() == 2)
    return copyPlane(to, from, dims[0], dims[1]);
  for (int64_t i = 0; i < dims.front().extent; ++i)
    copyBox(to + i * dims.front().to, from + i * dims.front().from, dims.drop_front());
}

/// Sorts loops by the stride of the destination, joins those that are one walk on both sides, and puts the loop in which the
/// source is contiguous next to the innermost. At least two loops.
SmallVector<Dim> arrangeLoops(ArrayRef<int64_t> to, ArrayRef<int64_t> from, ArrayRef<int64_t> shape) {
  SmallVector<Dim> dims;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1)
      dims.push_back({shape[i], to[i], from[i]});
  llvm::sort(dims, [](const Dim &a, const Dim &b) { return a.to > b.to; });
  SmallVector<Dim> joined;
  for (const Dim &dim : dims) {
    if (!joined.empty() && joined.back().to == dim.to * dim.extent && joined.back().from == dim.from * dim.extent)
      joined.back() = {joined.back().extent * dim.extent, dim.to, dim.from};
    else
      joined.push_back(dim);
  }
  while (joined.size() < 2)
    joined.insert(joined.begin(), {1, 0, 0});
  if (joined.back().from > 1) {
    auto contiguous =
        std::find_if(joined.begin(), joined.end() - 1, [](const Dim &dim) { return dim.from == 1 && dim.extent > 1; });
    if (contiguous != joined.end() - 1)
      std::rotate(contiguous, contiguous + 1, joined.end() - 1);
  }
  return joined;
}

template <typename To, typename From> bool copyTyped(char *to, const char *from, ArrayRef<Dim> dims) {
  copyBox(reinterpret_cast<To *>(to), reinterpret_cast<const From *>(from), dims);
  return true;
}

template <typename To> bool copyFrom(char *to, const char *from, Type fromType, ArrayRef<Dim> dims) {
  if (fromType.isF32())
    return copyTyped<To, float>(to, from, dims);
  if (fromType.isF16())
    return copyTyped<To, Half>(to, from, dims);
  if (fromType.isBF16())
    return copyTyped<To, Bfloat>(to, from, dims);
  return false;
}

} // namespace

bool copyStrided(char *to, Type toType, ArrayRef<int64_t> toStrides, const char *from, Type fromType,
                 ArrayRef<int64_t> fromStrides, ArrayRef<int64_t> shape) {
  if (llvm::is_contained(shape, 0))
    return true;
  SmallVector<Dim> dims = arrangeLoops(toStrides, fromStrides, shape);
  if (toType == fromType) {
    switch (elementBytes(toType)) {
    case 1:
      return copyTyped<uint8_t, uint8_t>(to, from, dims);
    case 2:
      return copyTyped<uint16_t, uint16_t>(to, from, dims);
    case 4:
      return copyTyped<uint32_t, uint32_t>(to, from, dims);
    case 8:
      return copyTyped<uint64_t, uint64_t>(to, from, dims);
    }
    return false;
  }
  // Between f64 and 16 bits there is no way through f32 that rounds once.
  if (toType.isF32() && fromType.isF64())
    return copyTyped<float, double>(to, from, dims);
  if (toType.isF64() && fromType.isF32())
    return copyTyped<double, float>(to, from, dims);
  if (toType.isF32())
    return copyFrom<float>(to, from, fromType, dims);
  if (toType.isF16())
    return copyFrom<Half>(to, from, fromType, dims);
  if (toType.isBF16())
    return copyFrom<Bfloat>(to, from, fromType, dims);
  return false;
}

} // namespace ogc::codegen
