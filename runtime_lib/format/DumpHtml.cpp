//===- DumpHtml.cpp - a bundle as a page for a browser ---------------------===//
#include "runtime_lib/format/Dump.h"
#include "runtime_lib/format/Json.h"
#include "runtime_lib/format/MemoryPlan.h"

namespace ogc::format {

namespace {

constexpr struct {
  const char *name, *text;
} pages[] = {
#include "runtime_lib/format/InspectPage.inc"
};

/// Arrays of numbers and names, since there may be thousands of them; Inspect.html reads them by position.
void writeBuffers(JsonWriter &json, const MemoryPlan &plan) {
  json.key("buffers").beginArray();
  for (const PlannedBuffer &buffer : plan.buffers) {
    json.beginArray().value(static_cast<int>(buffer.section)).value(buffer.offset).value(buffer.size);
    json.value(buffer.first).value(buffer.last).value(buffer.name).endArray();
  }
  json.endArray();
}

void writeNodes(JsonWriter &json, const fb::Manifest &manifest, const fb::Graph &graph) {
  json.key("nodes").beginArray();
  for (const fb::Node *node : *graph.nodes()) {
    json.beginArray().value(nodeKindName(node->kind())).value(nodeTitle(manifest, *node)).value(nodeNames(*node, ", "));
    json.beginArray();
    for (const fb::Slice *slice : *node->args())
      json.beginArray()
          .value(static_cast<int>(slice->section()))
          .value(slice->offset_bytes())
          .value(slice->size_bytes())
          .value(static_cast<int>(slice->access()))
          .endArray();
    json.endArray().endArray();
  }
  json.endArray();
  json.key("edges").beginArray();
  for (const fb::Edge *edge : *graph.edges())
    json.beginArray().value(edge->from()).value(edge->to()).value(edge->kind() == fb::EdgeKind::Programmatic ? 1 : 0).endArray();
  json.endArray();
}

void writeGraph(JsonWriter &json, const fb::Manifest &manifest, const fb::Graph &graph) {
  MemoryPlan plan = readMemoryPlan(manifest, graph);
  json.beginObject().field("id", graph.id()->string_view());
  json.field("peak", graph.scratch_bytes()).field("bound", graph.scratch_bound_bytes()).field("ratio", scratchRatio(graph));
  json.field("peakNode", static_cast<uint64_t>(plan.peakNode)).field("peakText", peakText(manifest, graph, plan));
  json.key("live").beginArray();
  for (size_t buffer : plan.liveAtPeak)
    json.value(static_cast<uint64_t>(buffer));
  json.endArray();
  writeNodes(json, manifest, graph);
  writeBuffers(json, plan);
  json.endObject();
}

} // namespace

std::string dumpHtml(const Bundle &bundle) {
  const fb::Manifest &manifest = bundle.manifest();
  JsonWriter json;
  json.beginObject().field("model", manifest.provenance()->model()->string_view()).field("fileBytes", bundle.fileBytes());
  json.key("targets").beginArray();
  for (const auto *target : *manifest.targets())
    json.value(target->string_view());
  json.endArray();
  json.key("sections").beginArray();
  for (fb::Section section : fb::EnumValuesSection())
    json.beginArray().value(sectionName(section)).value(sectionBytes(*manifest.arena(), section)).endArray();
  json.endArray().key("graphs").beginArray();
  for (const fb::Graph *graph : *manifest.graphs())
    writeGraph(json, manifest, *graph);
  json.endArray().endObject();
  // Names may hold anything, also what would end the script element: inside of JSON strings "<" has another spelling.
  std::string data;
  for (char c : json.text())
    data += c == '<' ? "\\u003c" : std::string(1, c);
  std::string text = pages[0].text;
  const std::string mark = "@DATA@";
  return text.replace(text.find(mark), mark.size(), data);
}

} // namespace ogc::format
