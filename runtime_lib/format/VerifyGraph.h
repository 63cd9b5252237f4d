//===- VerifyGraph.h - the graphs of a manifest ---------------------------===//
#ifndef OGC_FORMAT_VERIFY_GRAPH_H
#define OGC_FORMAT_VERIFY_GRAPH_H

#include "runtime_lib/format/Status.h"
#include "runtime_lib/format/bundle_generated.h"

namespace ogc::format {

/// Checks every graph of a manifest whose sections, kernels and arena were found right.
Status verifyGraphs(const fb::Manifest &manifest);

/// FlatBuffers' own verifier checks the alignment of the length of a vector, which is less than that of 8-byte elements.
template <typename T> bool isAligned(const flatbuffers::Vector<T> &vector, size_t alignment = 8) {
  return vector.size() == 0 || reinterpret_cast<uintptr_t>(vector.Data()) % alignment == 0;
}

/// True where `shape` is aligned, has no negative dimension and its elements of `type` have exactly `bytes` bytes.
bool isTensorOfBytes(fb::DataType type, const flatbuffers::Vector<int64_t> &shape, uint64_t bytes);

} // namespace ogc::format

#endif
