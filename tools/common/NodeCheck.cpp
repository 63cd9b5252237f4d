//===- NodeCheck.cpp - compares two devices node by node ------------------===//
#include "tools/common/NodeCheck.h"

#include "tools/common/Compare.h"

#include <cstdio>

namespace ogc::tools {

using format::DataType;

namespace {

bool isHalf(DataType type) { return type == DataType::F16 || type == DataType::BF16; }

std::string describe(const fb::Manifest &manifest, unsigned index, const fb::Node &node) {
  std::string text = "node " + std::to_string(index) + ", " + format::nodeKindName(node.kind());
  if (node.kind() == fb::NodeKind::Kernel || node.kind() == fb::NodeKind::Gemm)
    text += " " + manifest.kernels()->Get(node.kernel())->name()->str();
  for (unsigned i = 0; node.names() && i < node.names()->size(); ++i)
    text += (i ? ", " : " of ") + node.names()->Get(i)->str();
  return text;
}

/// The workspace of a library holds nothing that another node reads.
bool isWorkspace(const fb::Node &node, unsigned index) {
  return node.kind() == fb::NodeKind::Gemm && node.gemm()->has_workspace() && index + 1 == node.args()->size();
}

/// The element type of an argument, bytes where the bundle does not say.
DataType argumentType(const fb::Manifest &manifest, const fb::Node &node, unsigned index) {
  if (node.kind() == fb::NodeKind::Gemm && index + 1 + node.gemm()->has_workspace() == node.args()->size())
    return node.gemm()->result_type();
  if (node.kind() != fb::NodeKind::Kernel)
    return DataType::U8;
  const auto *types = manifest.kernels()->Get(node.kernel())->arg_types();
  DataType type = types ? static_cast<DataType>(types->Get(index)) : DataType::U8;
  return node.args()->Get(index)->size_bytes() % format::elementBytes(type) == 0 ? type : DataType::U8;
}

Result<std::vector<std::byte>> read(runtime::Context &context, const fb::Slice &slice) {
  std::vector<std::byte> bytes(slice.size_bytes());
  OGC_RETURN_IF_ERROR(context.copyOut(slice.section(), slice.offset_bytes(), bytes.data(), bytes.size()));
  OGC_RETURN_IF_ERROR(context.synchronize());
  return bytes;
}

NodeDifference judge(std::string name, DataType type, const std::vector<std::byte> &actual,
                     const std::vector<std::byte> &expected, double tolerance) {
  Difference difference = compare(type, actual, expected);
  char detail[160];
  std::snprintf(detail, sizeof detail, "relative L2 error %.3g, largest difference %.3g at %zu of %zu", difference.relativeL2,
                difference.largest, difference.firstIndex, difference.count);
  bool passed = format::isFloat(type) ? difference.relativeL2 <= tolerance : difference.mismatches == 0;
  return {std::move(name), passed, detail, difference.relativeL2};
}

} // namespace

double defaultTolerance(const fb::Manifest &manifest) {
  double tolerance = 1e-4;
  for (const fb::Kernel *kernel : *manifest.kernels())
    for (unsigned i = 0; kernel->arg_types() && i < kernel->arg_types()->size(); ++i)
      if (isHalf(static_cast<DataType>(kernel->arg_types()->Get(i))))
        return 2e-2;
  for (const fb::Graph *graph : *manifest.graphs())
    for (const fb::Node *node : *graph->nodes())
      if (node->kind() == fb::NodeKind::Gemm) {
        if (isHalf(node->gemm()->element_type()))
          return 2e-2;
        if (node->gemm()->tf32())
          tolerance = 5e-3;
      }
  for (const auto *flag : *manifest.provenance()->flags())
    if (flag->string_view().find("tf32") != std::string_view::npos)
      tolerance = 5e-3;
  return tolerance;
}

Result<std::vector<NodeDifference>> checkNodes(const Session &session, runtime::Context &context, runtime::Context &reference,
                                               double tolerance) {
  const fb::Manifest &manifest = session.bundle->manifest();
  std::vector<NodeDifference> results;
  OGC_RETURN_IF_ERROR(resetAndUpload(session, context));
  OGC_RETURN_IF_ERROR(resetAndUpload(session, reference));
  for (unsigned i = 0; i < session.graph->nodes()->size(); ++i) {
    const fb::Node &node = *session.graph->nodes()->Get(i);
    OGC_RETURN_IF_ERROR(reference.runNodes(session.graphIndex, i, i + 1));
    OGC_RETURN_IF_ERROR(context.runNodes(session.graphIndex, i, i + 1));
    for (unsigned a = 0; a < node.args()->size(); ++a) {
      const fb::Slice &slice = *node.args()->Get(a);
      if (slice.access() == fb::Access::Read || slice.size_bytes() == 0 || isWorkspace(node, a))
        continue;
      Result<std::vector<std::byte>> expected = read(reference, slice), actual = read(context, slice);
      if (!expected.ok() || !actual.ok())
        return expected.ok() ? actual.status() : expected.status();
      std::string name = describe(manifest, i, node) + ", argument " + std::to_string(a);
      results.push_back(judge(std::move(name), argumentType(manifest, node, a), actual.value(), expected.value(), tolerance));
      OGC_RETURN_IF_ERROR(context.copyIn(slice.section(), slice.offset_bytes(), expected.value().data(), slice.size_bytes()));
    }
  }
  return results;
}

} // namespace ogc::tools
