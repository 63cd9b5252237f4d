//===- Compare.cpp - how far one array is from another --------------------===//
#include "tools/common/Compare.h"

#include <cmath>
#include <cstring>

namespace ogc::tools {

Difference compare(format::DataType type, std::span<const std::byte> actual, std::span<const std::byte> expected) {
  Difference result;
  size_t bytes = format::elementBytes(type);
  result.count = expected.size() / bytes;
  double differenceSquares = 0, expectedSquares = 0;
  bool incomparable = false;
  for (size_t i = 0; i < result.count; ++i) {
    if (std::memcmp(actual.data() + i * bytes, expected.data() + i * bytes, bytes) != 0)
      ++result.mismatches;
    double a = format::readElement(type, actual.data(), i), e = format::readElement(type, expected.data(), i);
    if ((std::isnan(a) && std::isnan(e)) || (std::isinf(e) && a == e))
      continue;
    double difference = std::fabs(a - e);
    if (!std::isfinite(difference)) {
      if (!incomparable)
        result.firstIndex = i;
      incomparable = true;
      continue;
    }
    differenceSquares += difference * difference;
    expectedSquares += e * e;
    if (difference > result.largest && !incomparable)
      result.firstIndex = i;
    result.largest = std::fmax(result.largest, difference);
  }
  if (incomparable)
    result.relativeL2 = result.largest = INFINITY;
  else if (differenceSquares > 0)
    result.relativeL2 = expectedSquares > 0 ? std::sqrt(differenceSquares / expectedSquares) : INFINITY;
  return result;
}

} // namespace ogc::tools
