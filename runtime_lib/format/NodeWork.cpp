//===- NodeWork.cpp - what a node has to do -------------------------------===//
#include "runtime_lib/format/NodeWork.h"

#include "runtime_lib/format/Bundle.h"
#include "runtime_lib/format/DataType.h"

#include <algorithm>

namespace ogc::format {

namespace {

bool hasKernel(const fb::Node &node) { return node.kind() == fb::NodeKind::Kernel || node.kind() == fb::NodeKind::Gemm; }

const fb::KernelWork *countsOf(const fb::Manifest &manifest, const fb::Node &node) {
  return hasKernel(node) ? manifest.kernels()->Get(node.kernel())->work() : nullptr;
}

bool isWorkspace(const fb::Node &node, unsigned index) {
  return node.kind() == fb::NodeKind::Gemm && node.gemm()->has_workspace() && index + 1 == node.args()->size();
}

} // namespace

uint64_t touchedBytes(const fb::Manifest &manifest, const fb::Node &node, unsigned index) {
  uint64_t size = node.args()->Get(index)->size_bytes();
  if (isWorkspace(node, index))
    return 0; // the library need not use it
  const fb::KernelWork *counts = countsOf(manifest, node);
  return counts ? std::min<uint64_t>(size, counts->arg_bytes()->Get(index)) : size;
}

NodeWork nodeWork(const fb::Manifest &manifest, const fb::Node &node) {
  NodeWork work;
  work.kind = nodeKindName(node.kind());
  for (unsigned i = 0; i < node.args()->size(); ++i) {
    const fb::Slice &slice = *node.args()->Get(i);
    uint64_t bytes = touchedBytes(manifest, node, i);
    if (slice.access() != fb::Access::Write)
      (slice.section() == fb::Section::Weights ? work.weightBytes : work.readBytes) += bytes;
    if (slice.access() != fb::Access::Read)
      work.writtenBytes += bytes;
  }
  if (const fb::KernelWork *counts = countsOf(manifest, node)) {
    if (node.kind() == fb::NodeKind::Kernel)
      work.kind = counts->schedule()->str();
    work.productOperations = counts->product_operations();
    work.otherOperations = counts->other_operations();
    work.productType = counts->product_type();
    work.tf32 = counts->tf32();
  } else if (node.kind() == fb::NodeKind::Gemm) {
    const fb::Gemm &gemm = *node.gemm();
    work.productOperations = 2 * static_cast<uint64_t>(gemm.batch()) * static_cast<uint64_t>(gemm.m()) *
                             static_cast<uint64_t>(gemm.n()) * static_cast<uint64_t>(gemm.k());
    work.productType = gemm.element_type();
    work.tf32 = gemm.tf32();
  } else {
    work.isCounted = !hasKernel(node);
  }
  return work;
}

std::string productTypeName(const NodeWork &work) { return work.tf32 ? "tf32" : typeName(work.productType); }

} // namespace ogc::format
