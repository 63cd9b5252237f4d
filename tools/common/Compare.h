//===- Compare.h - how far one array is from another ----------------------===//
#ifndef OGC_TOOLS_COMMON_COMPARE_H
#define OGC_TOOLS_COMMON_COMPARE_H

#include "runtime_lib/format/DataType.h"

#include <cstddef>
#include <span>

namespace ogc::tools {

struct Difference {
  /// ‖actual − expected‖ / ‖expected‖ of floats; 0 where both are zero. Infinite where NaNs or infinities stand at different
  /// places.
  double relativeL2 = 0;
  double largest = 0;    ///< largest absolute difference
  size_t firstIndex = 0; ///< of the largest difference
  size_t mismatches = 0; ///< elements whose bytes differ
  size_t count = 0;
};

/// Compares two arrays of equal size. NaN equals NaN.
Difference compare(format::DataType type, std::span<const std::byte> actual, std::span<const std::byte> expected);

/// The same of two types with as many elements; those that differ as numbers are mismatches.
Difference compare(format::DataType actualType, std::span<const std::byte> actual, format::DataType expectedType,
                   std::span<const std::byte> expected);

} // namespace ogc::tools

#endif
