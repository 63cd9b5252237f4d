//===- Dump.h - a bundle for people and for scripts -----------------------===//
#ifndef OGC_FORMAT_DUMP_H
#define OGC_FORMAT_DUMP_H

#include "runtime_lib/format/Bundle.h"

#include <string>

namespace ogc::format {

struct MemoryPlan;

struct GraphCounts {
  uint32_t byKind[4] = {}; // indexed by fb::NodeKind
  uint32_t nodes = 0, fullEdges = 0, programmaticEdges = 0;
};
GraphCounts countGraph(const fb::Graph &graph);

/// Scratch bytes over the bound below which no plan of the same order can go; 1 where nothing is needed.
double scratchRatio(const fb::Graph &graph);

/// "1x3x224x224", "scalar" for no dimensions; with `symbols`, "batch=1x3x224x224".
std::string shapeText(const fb::Binding &binding, bool withSymbols);
std::string shapeText(const std::vector<int64_t> &shape);

/// One line about each named dimension: whether it may be padded, and what forbids it.
std::string symbolText(const fb::Symbol &symbol);
std::string symbolText(const std::string &name, bool isSafe, const std::string &operatorType, const std::string &node,
                       const std::string &reason);

/// Readable text; with `nodes`, every node, its slices and its edges.
std::string dumpText(const Bundle &bundle, bool nodes);

/// The summary as JSON. docs/bundle.md lists the fields.
std::string dumpJson(const Bundle &bundle);

/// The memory plan and the graph of each ID as one page for a browser, without references to anything outside of it.
std::string dumpHtml(const Bundle &bundle);

/// What determines the scratch that a graph needs: sizes, the node where most of it lives, and the buffers that live there.
/// Several lines.
std::string peakText(const fb::Manifest &manifest, const fb::Graph &graph, const MemoryPlan &plan);

/// "kernel NAME", "gemm 1x8x16x4 F32", …
std::string nodeTitle(const fb::Manifest &manifest, const fb::Node &node);

/// The ONNX nodes of a node.
std::string nodeNames(const fb::Node &node, const char *separator);

/// The graphs as Graphviz DOT: nodes labelled with kernel and ONNX names, programmatic edges dashed.
std::string dumpDot(const Bundle &bundle);

} // namespace ogc::format

#endif
