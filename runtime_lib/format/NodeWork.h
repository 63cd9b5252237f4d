//===- NodeWork.h - what a node has to do ---------------------------------===//
#ifndef OGC_FORMAT_NODE_WORK_H
#define OGC_FORMAT_NODE_WORK_H

#include "runtime_lib/format/bundle_generated.h"

#include <string>

namespace ogc::format {

/// Bytes and operations of one run of a node that no code can go below: each argument is read or written once. Of kernels
/// without counts (bundles of earlier versions) the whole arguments are taken, and no operations are known.
struct NodeWork {
  /// The schedule of the kernel ("kernel" where the bundle does not say), "gemm", "memcpy" or "memset".
  std::string kind;
  uint64_t weightBytes = 0; ///< constants
  uint64_t readBytes = 0;   ///< everything else that is read
  uint64_t writtenBytes = 0;
  uint64_t productOperations = 0; ///< 2 for each multiply-add
  uint64_t otherOperations = 0;
  fb::DataType productType = fb::DataType::F32;
  bool tf32 = false;
  bool isCounted = true; ///< false: operations are not known

  uint64_t bytes() const { return weightBytes + readBytes + writtenBytes; }
};

NodeWork nodeWork(const fb::Manifest &manifest, const fb::Node &node);

/// Most bytes of argument `index` of a node that it touches.
uint64_t touchedBytes(const fb::Manifest &manifest, const fb::Node &node, unsigned index);

/// "tf32", or the name of the product's type.
std::string productTypeName(const NodeWork &work);

} // namespace ogc::format

#endif
