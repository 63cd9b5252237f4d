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

/// Reads element `index` of an array of `type` as a double; 64-bit integers lose their low bits beyond 2^53.
double readElement(DataType type, const void *data, size_t index);

/// Writes `value` as element `index`, rounded to nearest even (floats) or towards zero (integers; the value must be in range).
void writeElement(DataType type, void *data, size_t index, double value);

} // namespace ogc::format

#endif
