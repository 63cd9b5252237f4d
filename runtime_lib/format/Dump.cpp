//===- Dump.cpp - a bundle for people and for scripts ---------------------===//
#include "runtime_lib/format/Dump.h"

#include "runtime_lib/format/DataType.h"
#include "runtime_lib/format/FileHeader.h"
#include "runtime_lib/format/Json.h"
#include "runtime_lib/format/MemoryPlan.h"
#include "runtime_lib/format/NodeWork.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace ogc::format {

namespace {

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string number(uint64_t value) { return std::to_string(value); }

const char *weightsModeName(fb::WeightsMode mode) {
  constexpr const char *names[] = {"inline", "external", "none"};
  return names[static_cast<size_t>(mode)];
}

const char *accessName(fb::Access access) {
  constexpr const char *names[] = {"none", "read", "write", "readwrite"};
  return names[static_cast<size_t>(access)];
}

std::string rangeText(fb::Section section, uint64_t offset, uint64_t size) {
  return std::string(sectionName(section)) + "[" + number(offset) + ", " + number(offset + size) + ")";
}

std::string sliceText(const fb::Slice &slice) { return rangeText(slice.section(), slice.offset_bytes(), slice.size_bytes()); }

void dumpBindings(std::string &out, const char *what, const flatbuffers::Vector<flatbuffers::Offset<fb::Binding>> &bindings) {
  for (const fb::Binding *binding : bindings)
    out += std::string("  ") + what + " '" + binding->name()->str() + "': " + typeName(binding->type()) + " " +
           shapeText(*binding, true) + " at " + sliceText(*binding->slice()) + "\n";
}

std::string workText(const NodeWork &work) {
  std::string text = "touches " + number(work.bytes()) + " bytes, " + number(work.weightBytes) + " of them weights";
  if (work.productOperations != 0)
    text += "; " + number(work.productOperations) + " operations of products in " + productTypeName(work);
  return work.otherOperations == 0 ? text : text + "; " + number(work.otherOperations) + " other operations";
}

void dumpNodes(std::string &out, const fb::Manifest &manifest, const fb::Graph &graph) {
  std::vector<std::string> incoming(graph.nodes()->size());
  for (const fb::Edge *edge : *graph.edges())
    incoming[edge->to()] += " " + number(edge->from()) + (edge->kind() == fb::EdgeKind::Programmatic ? "p" : "");
  for (unsigned i = 0; i < graph.nodes()->size(); ++i) {
    const fb::Node &node = *graph.nodes()->Get(i);
    out += "  node " + number(i) + ": " + nodeTitle(manifest, node) + (incoming[i].empty() ? "" : " after" + incoming[i]) + "\n";
    for (const fb::Slice *slice : *node.args())
      out += std::string("    ") + accessName(slice->access()) + " " + sliceText(*slice) + "\n";
    out += "    " + workText(nodeWork(manifest, node)) + "\n";
    if (std::string names = nodeNames(node, ", "); !names.empty())
      out += "    from " + names + "\n";
  }
}

void dumpPeak(std::string &out, const fb::Graph &graph, const MemoryPlan &plan) {
  if (plan.liveAtPeak.empty())
    return;
  auto title = [&](size_t node) {
    return "node " + number(node) + " (" + nodeNames(*graph.nodes()->Get(static_cast<unsigned>(node)), ", ") + ")";
  };
  out += "  most scratch at " + title(plan.peakNode) + ":\n";
  for (size_t i : plan.liveAtPeak) {
    const PlannedBuffer &buffer = plan.buffers[i];
    out += "    " + number(buffer.size) + " bytes at " + rangeText(buffer.section, buffer.offset, buffer.size) + " since " +
           title(static_cast<size_t>(buffer.first)) + "\n";
  }
}

void writeStrings(JsonWriter &json, const char *key,
                  const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> &strings) {
  json.key(key).beginArray();
  for (const auto *text : strings)
    json.value(text->string_view());
  json.endArray();
}

void writeBindings(JsonWriter &json, const char *key, const flatbuffers::Vector<flatbuffers::Offset<fb::Binding>> &bindings) {
  json.key(key).beginArray();
  for (const fb::Binding *binding : bindings) {
    json.beginObject().field("name", binding->name()->string_view()).field("dtype", typeName(binding->type()));
    json.key("shape").beginArray();
    for (int64_t dim : *binding->shape())
      json.value(dim);
    json.endArray();
    writeStrings(json, "symbols", *binding->symbols());
    if (binding->extent())
      json.field("run_time_dim", binding->extent_dim());
    json.field("bytes", binding->slice()->size_bytes()).endObject();
  }
  json.endArray();
}

void writeGraph(JsonWriter &json, const fb::Manifest &manifest, const fb::Graph &graph) {
  GraphCounts counts = countGraph(graph);
  json.beginObject().field("id", graph.id()->string_view());
  writeBindings(json, "inputs", *graph.inputs());
  writeBindings(json, "outputs", *graph.outputs());
  json.key("nodes").beginObject().field("total", counts.nodes);
  for (fb::NodeKind kind : fb::EnumValuesNodeKind())
    json.field(nodeKindName(kind), counts.byKind[static_cast<size_t>(kind)]);
  json.endObject();
  json.key("edges").beginObject().field("full", counts.fullEdges).field("programmatic", counts.programmaticEdges).endObject();
  json.key("arena").beginObject().field("peak_bytes", graph.scratch_bytes()).field("bound_bytes", graph.scratch_bound_bytes());
  json.field("ratio", scratchRatio(graph));
  MemoryPlan plan = readMemoryPlan(manifest, graph);
  json.field("peak_node", static_cast<uint64_t>(plan.peakNode)).key("peak_buffers").beginArray();
  for (size_t i : plan.liveAtPeak) {
    const PlannedBuffer &buffer = plan.buffers[i];
    json.beginObject().field("offset", buffer.offset).field("bytes", buffer.size);
    json.field("since_node", static_cast<uint64_t>(buffer.first)).endObject();
  }
  json.endArray().endObject();
  json.endObject();
}

void writeSymbol(JsonWriter &json, const fb::Symbol &symbol) {
  json.beginObject().field("name", symbol.name()->string_view()).field("padding_safe", symbol.padding_safe());
  json.field("operator", symbol.operator_type()->string_view()).field("node", symbol.node()->string_view());
  json.field("reason", symbol.reason()->string_view());
  json.key("cuts").beginArray();
  for (const fb::RowCut *cut : *symbol.cuts())
    json.beginObject().field("output", cut->output()).field("dim", cut->dim()).field("inner", cut->inner()).endObject();
  json.endArray().endObject();
}

/// `text` between quotes of DOT.
std::string dotString(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

} // namespace

std::string nodeNames(const fb::Node &node, const char *separator) {
  std::string text;
  for (unsigned i = 0; node.names() && i < node.names()->size(); ++i)
    text += (i ? separator : "") + node.names()->Get(i)->str();
  return text;
}

std::string nodeTitle(const fb::Manifest &manifest, const fb::Node &node) {
  std::string text = nodeKindName(node.kind());
  if (node.kind() == fb::NodeKind::Kernel)
    text += " " + manifest.kernels()->Get(node.kernel())->name()->str();
  if (const fb::Gemm *gemm = node.gemm(); gemm && node.kind() == fb::NodeKind::Gemm)
    text += " " + std::to_string(gemm->batch()) + "x" + std::to_string(gemm->m()) + "x" + std::to_string(gemm->n()) + "x" +
            std::to_string(gemm->k()) + " " + typeName(gemm->element_type());
  return text;
}

GraphCounts countGraph(const fb::Graph &graph) {
  GraphCounts counts;
  counts.nodes = graph.nodes()->size();
  for (const fb::Node *node : *graph.nodes())
    ++counts.byKind[static_cast<size_t>(node->kind())];
  for (const fb::Edge *edge : *graph.edges())
    ++(edge->kind() == fb::EdgeKind::Programmatic ? counts.programmaticEdges : counts.fullEdges);
  return counts;
}

std::string peakText(const fb::Manifest &manifest, const fb::Graph &graph, const MemoryPlan &plan) {
  char ratio[16];
  std::snprintf(ratio, sizeof ratio, "%.3f", scratchRatio(graph));
  std::string text = "scratch of graph '" + graph.id()->str() + "': peak " + number(graph.scratch_bytes()) +
                     " bytes, lower bound " + number(graph.scratch_bound_bytes()) + " (" + ratio + ")\n";
  if (plan.liveAtPeak.empty())
    return text;
  const fb::Node &node = *graph.nodes()->Get(static_cast<unsigned>(plan.peakNode));
  std::string names = nodeNames(node, ", ");
  text += "  most bytes live at node " + number(plan.peakNode) + ": " + nodeTitle(manifest, node) +
          (names.empty() ? "" : ", from " + names) + "\n";
  constexpr size_t shown = 6;
  for (size_t i = 0; i < std::min(shown, plan.liveAtPeak.size()); ++i) {
    const PlannedBuffer &buffer = plan.buffers[plan.liveAtPeak[i]];
    text += "    " + number(buffer.size) + " bytes, nodes " + std::to_string(buffer.first) + " to " +
            std::to_string(buffer.last) + (buffer.name.empty() ? "" : ", written by " + buffer.name) + "\n";
  }
  if (plan.liveAtPeak.size() > shown)
    text += "    and " + number(plan.liveAtPeak.size() - shown) + " smaller ones\n";
  return text;
}

double scratchRatio(const fb::Graph &graph) {
  if (graph.scratch_bound_bytes() == 0)
    return 1.0;
  return static_cast<double>(graph.scratch_bytes()) / static_cast<double>(graph.scratch_bound_bytes());
}

/// "1x3x224", with a prefix for each dimension.
template <typename Prefix> static std::string joinShape(const int64_t *shape, size_t rank, Prefix prefix) {
  std::string text = rank == 0 ? "scalar" : "";
  for (size_t i = 0; i < rank; ++i)
    text += (i ? "x" : "") + prefix(static_cast<unsigned>(i)) + std::to_string(shape[i]);
  return text;
}

std::string shapeText(const fb::Binding &binding, bool withSymbols) {
  return joinShape(binding.shape()->data(), binding.shape()->size(), [&](unsigned i) {
    // An extent that a run decides has a bound.
    std::string bound = binding.extent() && binding.extent_dim() == i ? "<=" : "";
    bool isNamed = withSymbols && binding.symbols()->Get(i)->size() != 0;
    return (isNamed ? binding.symbols()->Get(i)->str() + "=" : std::string()) + bound;
  });
}

std::string shapeText(const std::vector<int64_t> &shape) {
  return joinShape(shape.data(), shape.size(), [](unsigned) { return std::string(); });
}

std::string symbolText(const std::string &name, bool isSafe, const std::string &operatorType, const std::string &node,
                       const std::string &reason) {
  std::string text = "symbol '" + name + "': ";
  if (isSafe)
    return text + "padding is safe, its positions never mix";
  return text + "padding is not safe: " + (operatorType.empty() ? "" : operatorType + " node '" + node + "' ") + reason;
}

std::string symbolText(const fb::Symbol &symbol) {
  return symbolText(symbol.name()->str(), symbol.padding_safe(), symbol.operator_type()->str(), symbol.node()->str(),
                    symbol.reason()->str());
}

std::string dumpText(const Bundle &bundle, bool nodes) {
  const fb::Manifest &manifest = bundle.manifest();
  const fb::Provenance &from = *manifest.provenance();
  std::string out = "bundle of " + from.model()->str() + " (" + from.model_hash()->str() + ") by " + from.producer()->str() +
                    ", format " + number(kFormatVersion) + ", " + number(bundle.fileBytes()) + " bytes\n";
  for (const auto *flag : *from.flags())
    out += "  flag " + flag->str() + "\n";
  for (const auto *version : *from.versions())
    out += "  with " + version->str() + "\n";
  out += "targets:";
  for (const auto *target : *manifest.targets())
    out += " " + target->str();
  out += manifest.cpu_features()->size() ? " (cpu needs " + manifest.cpu_features()->str() + ")\n" : "\n";
  for (const fb::Blob *blob : *manifest.blobs())
    out += std::string("section ") + fb::EnumNameBlobKind(blob->kind()) + " " + blob->name()->str() + ": " +
           number(blob->size_bytes()) + " bytes at " + number(blob->offset_bytes()) + ", xxh64 " + hex(blob->checksum()) + "\n";
  const fb::Arena &arena = *manifest.arena();
  out += "weights: " + number(arena.weights_bytes()) + " bytes in " + number(manifest.weights()->size()) + " tensors, " +
         weightsModeName(manifest.weights_mode()) + ", asked for at " + hex(arena.weights_address()) + "\n";
  out += "context at " + hex(arena.context_address()) + ": state " + number(arena.state_bytes()) + ", inputs " +
         number(arena.inputs_bytes()) + ", outputs " + number(arena.outputs_bytes()) + ", scratch " +
         number(arena.scratch_bytes()) + " bytes\n";
  for (unsigned i = 0; manifest.symbols() && i < manifest.symbols()->size(); ++i)
    out += symbolText(*manifest.symbols()->Get(i)) + "\n";
  for (const fb::Graph *graph : *manifest.graphs()) {
    GraphCounts counts = countGraph(*graph);
    out += "graph '" + graph->id()->str() + "': " + number(counts.nodes) + " nodes (";
    for (fb::NodeKind kind : fb::EnumValuesNodeKind())
      out += (kind == fb::NodeKind::Kernel ? "" : ", ") + number(counts.byKind[static_cast<size_t>(kind)]) + " " +
             nodeKindName(kind);
    char ratio[16];
    std::snprintf(ratio, sizeof ratio, "%.3f", scratchRatio(*graph));
    out += "), edges: " + number(counts.fullEdges) + " full, " + number(counts.programmaticEdges) + " programmatic, scratch " +
           number(graph->scratch_bytes()) + " bytes of a bound of " + number(graph->scratch_bound_bytes()) + " (" + ratio + ")\n";
    dumpBindings(out, "input", *graph->inputs());
    dumpBindings(out, "output", *graph->outputs());
    dumpPeak(out, *graph, readMemoryPlan(manifest, *graph));
    if (nodes)
      dumpNodes(out, manifest, *graph);
  }
  return out;
}

std::string dumpJson(const Bundle &bundle) {
  const fb::Manifest &manifest = bundle.manifest();
  const fb::Arena &arena = *manifest.arena();
  JsonWriter json;
  json.beginObject().field("format_version", kFormatVersion).field("file_bytes", bundle.fileBytes());
  writeStrings(json, "targets", *manifest.targets());
  json.field("cpu_features", manifest.cpu_features()->string_view());
  json.field("weights_bytes", arena.weights_bytes()).field("weights_mode", weightsModeName(manifest.weights_mode()));
  json.key("provenance").beginObject();
  json.field("producer", manifest.provenance()->producer()->string_view())
      .field("model", manifest.provenance()->model()->string_view());
  json.field("model_hash", manifest.provenance()->model_hash()->string_view());
  writeStrings(json, "flags", *manifest.provenance()->flags());
  writeStrings(json, "versions", *manifest.provenance()->versions());
  json.endObject();
  json.key("sections").beginObject().field("state_bytes", arena.state_bytes()).field("inputs_bytes", arena.inputs_bytes());
  json.field("outputs_bytes", arena.outputs_bytes()).field("scratch_bytes", arena.scratch_bytes()).endObject();
  json.field("kernels", manifest.kernels()->size());
  json.key("symbols").beginArray();
  for (unsigned i = 0; manifest.symbols() && i < manifest.symbols()->size(); ++i)
    writeSymbol(json, *manifest.symbols()->Get(i));
  json.endArray();
  json.key("graphs").beginArray();
  for (const fb::Graph *graph : *manifest.graphs())
    writeGraph(json, manifest, *graph);
  json.endArray().endObject();
  return json.text() + "\n";
}

std::string dumpDot(const Bundle &bundle) {
  const fb::Manifest &manifest = bundle.manifest();
  std::string out = "digraph bundle {\n  node [shape=box, fontsize=10];\n";
  for (unsigned g = 0; g < manifest.graphs()->size(); ++g) {
    const fb::Graph &graph = *manifest.graphs()->Get(g);
    std::string prefix = "g" + number(g) + "_";
    out += "  subgraph cluster_" + number(g) + " {\n    label=" + dotString(graph.id()->str()) + ";\n";
    for (unsigned i = 0; i < graph.nodes()->size(); ++i) {
      const fb::Node &node = *graph.nodes()->Get(i);
      std::string label = number(i) + ": " + nodeTitle(manifest, node);
      out +=
          "    " + prefix + number(i) + " [label=" + dotString(label) + ", tooltip=" + dotString(nodeNames(node, ", ")) + "];\n";
    }
    for (const fb::Edge *edge : *graph.edges()) {
      out.append("    ").append(prefix).append(number(edge->from())).append(" -> ").append(prefix).append(number(edge->to()));
      out += edge->kind() == fb::EdgeKind::Programmatic ? " [style=dashed];\n" : ";\n";
    }
    out += "  }\n";
  }
  return out + "}\n";
}

} // namespace ogc::format
