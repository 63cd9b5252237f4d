//===- Npy.h - numpy's file format ----------------------------------------===//
#ifndef OGC_TOOLS_COMMON_NPY_H
#define OGC_TOOLS_COMMON_NPY_H

#include "runtime_lib/format/DataType.h"
#include "runtime_lib/format/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ogc::tools {

/// A dense array in C order.
struct Array {
  /// numpy's description of an element without byte order: "f4", "i8", "b1", "V2".
  std::string descr;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
};

/// Reads a .npy file of version 1, 2 or 3: little endian, C order (Fortran order is refused), and not larger than its header
/// says.
Result<Array> readNpy(const std::string &path);

/// Writes version 1.0. The file appears under its name only when it is complete.
Status writeNpy(const std::string &path, const std::string &descr, const std::vector<int64_t> &shape, const void *data,
                size_t bytes);

/// How arrays of `type` are stored: numpy has no bfloat16 ("u2": the bits), no floats of 8 and fewer bits ("u1": the bits, one
/// element a byte), and no integers of 2 and 4 bits ("i1" and "u1": the numbers, one a byte).
const char *npyDescr(format::DataType type);

/// True where an array of `descr` can be taken as `type`: as stored, or as the raw bytes ("V2") that ml_dtypes writes.
bool matchesType(const std::string &descr, format::DataType type);

} // namespace ogc::tools

#endif
