//===- Compare.cpp - how far one array is from another --------------------===//
#include "tools/common/Compare.h"

#include <cmath>
#include <cstring>

namespace ogc::tools {

Difference compare(format::DataType type, std::span<const std::byte> actual, std::span<const std::byte> expected) {
  Difference result = compare(type, actual, type, expected);
  size_t bytes = format::elementBytes(type);
  result.mismatches = 0;
  for (size_t i = 0; i < result.count; ++i)
    result.mismatches += std::memcmp(actual.data() + i * bytes, expected.data() + i * bytes, bytes) != 0;
  return result;
}

Difference compare(format::DataType actualType, std::span<const std::byte> actual, format::DataType expectedType,
                   std::span<const std::byte> expected) {
  Difference result;
  result.count = expected.size() / format::elementBytes(expectedType);
  double differenceSquares = 0, expectedSquares = 0;
  bool incomparable = false;
  for (size_t i = 0; i < result.count; ++i) {
    double a = format::readElement(actualType, actual.data(), i), e = format::readElement(expectedType, expected.data(), i);
    result.mismatches += a != e && !(std::isnan(a) && std::isnan(e));
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
