//===- DataType.h - element types of a bundle -----------------------------===//
#ifndef OGC_FORMAT_DATA_TYPE_H
#define OGC_FORMAT_DATA_TYPE_H

#include "runtime_lib/format/bundle_generated.h"

#include <cstddef>

namespace ogc::format {

using fb::DataType;

/// Bytes of one element, 0 for a number that is no type.
size_t elementBytes(DataType type);

/// The name as ONNX and numpy people write it: "float32", "int64", "bfloat16", "bool"; "?" for a number that is no type.
const char *typeName(DataType type);

bool isFloat(DataType type);

/// 4 or 2 for the integers of so many bits, else 0.
int smallIntegerBits(DataType type);

/// Makes integers of 2 and 4 bits in bytes the numbers that their low bits are: ml_dtypes leaves the high bits of negative ones
/// zero. Arrays of other types are left alone.
void normalizeSmallIntegers(DataType type, void *data, size_t elements);

/// Reads element `index` of an array of `type` as a double; 64-bit integers lose their low bits beyond 2^53.
double readElement(DataType type, const void *data, size_t index);

/// Writes `value` as element `index`, rounded to nearest even (floats) or towards zero (integers; the value must be in range).
void writeElement(DataType type, void *data, size_t index, double value);

} // namespace ogc::format

#endif
