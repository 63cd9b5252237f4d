//===- VerifyGraph.h - the graphs of a manifest ---------------------------===//
#ifndef OGC_FORMAT_VERIFY_GRAPH_H
#define OGC_FORMAT_VERIFY_GRAPH_H

#include "runtime_lib/format/Status.h"
#include "runtime_lib/format/bundle_generated.h"

namespace ogc::format {

/// Checks every graph of a manifest whose sections, kernels and arena were found right.
Status verifyGraphs(const fb::Manifest &manifest);

/// True where `shape` has no negative dimension and its elements of `type` have exactly `bytes` bytes.
bool isTensorOfBytes(fb::DataType type, const flatbuffers::Vector<int64_t> &shape, uint64_t bytes);

} // namespace ogc::format

#endif
