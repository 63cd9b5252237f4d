//===- Roofline.cpp - time of each node against what the machine allows ---===//
#include "tools/common/Roofline.h"

#include "runtime_lib/format/Dump.h"
#include "runtime_lib/format/Json.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>

namespace ogc::tools {

namespace {

double median(std::vector<double> samples) {
  auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

/// Seconds of the operations of a node, 0 where a peak is not known.
double operationSeconds(const format::NodeWork &work, const DevicePeaks &peaks) {
  auto seconds = [&](const std::string &type, uint64_t operations) {
    auto found = peaks.operations.find(type);
    return found == peaks.operations.end() ? 0 : static_cast<double>(operations) / found->second;
  };
  return std::max(seconds(productTypeName(work), work.productOperations), seconds("float32", work.otherOperations));
}

RooflineNode describe(const fb::Manifest &manifest, const fb::Graph &graph, unsigned index, const DevicePeaks &peaks) {
  const fb::Node &node = *graph.nodes()->Get(index);
  RooflineNode result;
  result.index = index;
  result.title = format::nodeTitle(manifest, node);
  result.names = format::nodeNames(node, ", ");
  result.work = format::nodeWork(manifest, node);
  if (peaks.bytes > 0) {
    double bytes = static_cast<double>(result.work.bytes()) / peaks.bytes, operations = operationSeconds(result.work, peaks);
    result.floorUs = 1e6 * std::max(bytes, operations);
    result.isComputeBound = operations > bytes;
  }
  return result;
}

/// Nodes that do not wait for the one before them.
std::vector<bool> findBeside(const fb::Graph &graph) {
  std::vector<bool> beside(graph.nodes()->size(), true);
  if (!beside.empty())
    beside[0] = false;
  for (const fb::Edge *edge : *graph.edges())
    if (edge->from() + 1 == edge->to())
      beside[edge->to()] = false;
  return beside;
}

/// Seconds of everything that a graph reads and writes for good, once, and of all operations.
double modelSeconds(const fb::Manifest &manifest, const fb::Graph &graph, const std::vector<RooflineNode> &nodes,
                    const DevicePeaks &peaks) {
  std::map<std::pair<fb::Section, uint64_t>, uint64_t> touched; // by place
  for (const fb::Node *node : *graph.nodes())
    for (unsigned i = 0; i < node->args()->size(); ++i) {
      const fb::Slice &slice = *node->args()->Get(i);
      uint64_t &bytes = touched[{slice.section(), slice.offset_bytes()}];
      if (slice.section() != fb::Section::Scratch)
        bytes = std::max(bytes, format::touchedBytes(manifest, *node, i));
    }
  double bytes = 0, operations = 0;
  for (const auto &[place, count] : touched)
    bytes += static_cast<double>(count);
  for (const RooflineNode &node : nodes)
    operations += operationSeconds(node.work, peaks);
  return std::max(bytes / peaks.bytes, operations);
}

/// Runs the whole graph until the device has reached its clock rates.
Status warmUp(const Session &session, runtime::Context &context) {
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  do {
    for (int i = 0; i < 10; ++i)
      OGC_RETURN_IF_ERROR(context.launch(session.graphIndex));
    OGC_RETURN_IF_ERROR(context.synchronize());
  } while (std::chrono::steady_clock::now() < end);
  return Status();
}

/// Prefixes are measured from the shortest to the longest and back, so that a device that becomes faster or slower meanwhile
/// makes no difference of its own.
Status timePrefixes(const Session &session, runtime::Context &context, unsigned replays, Roofline &out) {
  OGC_RETURN_IF_ERROR(warmUp(session, context));
  size_t prefixes = out.nodes.size() + 1;
  std::vector<std::vector<double>> samples(prefixes, std::vector<double>(replays));
  size_t half = replays / 2;
  auto time = [&](size_t count, size_t begin, size_t end) {
    return begin == end ? Status()
                        : context.timePrefix(session.graphIndex, count, std::span(samples[count]).subspan(begin, end - begin));
  };
  for (size_t count = 0; count < prefixes; ++count)
    OGC_RETURN_IF_ERROR(time(count, 0, half));
  for (size_t count = prefixes; count-- > 0;)
    OGC_RETURN_IF_ERROR(time(count, half, replays));
  double before = out.startUs = median(samples[0]);
  for (size_t i = 0; i < out.nodes.size(); ++i) {
    double until = median(samples[i + 1]);
    out.nodes[i].timeUs = until - before;
    before = until;
  }
  out.method = "prefixes";
  return Status();
}

Status timeDirectly(const Session &session, runtime::Context &context, unsigned replays, Roofline &out) {
  std::vector<std::vector<double>> samples(out.nodes.size(), std::vector<double>(replays));
  OGC_RETURN_IF_ERROR(context.launch(session.graphIndex));
  for (unsigned replay = 0; replay < replays; ++replay)
    for (size_t i = 0; i < out.nodes.size(); ++i) {
      auto begin = std::chrono::steady_clock::now();
      OGC_RETURN_IF_ERROR(context.runNodes(session.graphIndex, i, i + 1));
      samples[i][replay] = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    }
  for (size_t i = 0; i < out.nodes.size(); ++i)
    out.nodes[i].timeUs = median(samples[i]);
  out.method = "each node by itself";
  return Status();
}

void add(RooflineSum &sum, const RooflineNode &node) {
  ++sum.nodes;
  sum.bytes += node.work.bytes();
  sum.operations += node.work.productOperations + node.work.otherOperations;
  sum.timeUs += node.timeUs;
  sum.floorUs += node.floorUs;
}

double ratio(double floorUs, double timeUs) { return timeUs > 0 ? floorUs / timeUs : 0; }

} // namespace

DevicePeaks knownPeaks(const std::string &deviceName) {
  // Dense, without sparsity. The H200's bytes are those of a kernel that only reads, measured; the others those of data sheets.
  static const struct {
    const char *name;
    DevicePeaks peaks;
  } devices[] = {
      {"H200", {4.25e12, {{"float16", 989e12}, {"bfloat16", 989e12}, {"tf32", 494e12}, {"float32", 67e12}, {"float64", 67e12}}}},
      {"H100 80GB HBM3",
       {3.35e12, {{"float16", 989e12}, {"bfloat16", 989e12}, {"tf32", 494e12}, {"float32", 67e12}, {"float64", 67e12}}}},
      {"A100-SXM4-80GB",
       {2.039e12, {{"float16", 312e12}, {"bfloat16", 312e12}, {"tf32", 156e12}, {"float32", 19.5e12}, {"float64", 19.5e12}}}},
  };
  for (const auto &device : devices)
    if (deviceName.find(device.name) != std::string::npos)
      return device.peaks;
  return {};
}

Result<Roofline> measureRoofline(const Session &session, runtime::Context &context, const RooflineOptions &options) {
  const fb::Manifest &manifest = session.bundle->manifest();
  const fb::Graph &graph = *session.graph;
  Roofline roofline;
  std::vector<bool> beside = findBeside(graph);
  for (unsigned i = 0; i < graph.nodes()->size(); ++i) {
    roofline.nodes.push_back(describe(manifest, graph, i, options.peaks));
    roofline.nodes.back().isBeside = beside[i];
  }
  OGC_RETURN_IF_ERROR(uploadInputs(session, context));
  OGC_RETURN_IF_ERROR(context.stream() ? timePrefixes(session, context, options.replays, roofline)
                                       : timeDirectly(session, context, options.replays, roofline));
  for (const RooflineNode &node : roofline.nodes) {
    add(roofline.kinds[node.work.kind], node);
    add(roofline.total, node);
  }
  roofline.hasFloors = options.peaks.bytes > 0;
  if (roofline.hasFloors)
    roofline.modelFloorUs = 1e6 * modelSeconds(manifest, graph, roofline.nodes, options.peaks);
  return roofline;
}

namespace {

/// The order of the tables: most time lost first, in schedule order where equal.
std::vector<const RooflineNode *> byLoss(const Roofline &roofline) {
  std::vector<const RooflineNode *> order;
  for (const RooflineNode &node : roofline.nodes)
    order.push_back(&node);
  std::sort(order.begin(), order.end(),
            [](const auto *a, const auto *b) { return std::pair(-a->lostUs(), a->index) < std::pair(-b->lostUs(), b->index); });
  return order;
}

template <typename... Values> std::string line(const char *format, Values... values) {
  int length = std::snprintf(nullptr, 0, format, values...);
  std::string text(static_cast<size_t>(length) + 1, '\0');
  std::snprintf(text.data(), text.size(), format, values...);
  text.pop_back();
  return text;
}

std::string figures(double lost, double time, double floor, double bytes, double operations) {
  return line("%9.2f %9.2f %9.2f %6.2f %9.3f %9.1f", lost, time, floor, ratio(floor, time), bytes / 1e6, operations / 1e6);
}

constexpr const char *kHeads = "  lost us   time us  floor us  ratio        MB     MFLOP";

std::string nodeLine(const RooflineNode &node) {
  const format::NodeWork &work = node.work;
  double operations = static_cast<double>(work.productOperations + work.otherOperations);
  return figures(node.lostUs(), node.timeUs, node.floorUs, static_cast<double>(work.bytes()), operations) +
         line(" %9.3f  %s%s%u: %s", static_cast<double>(work.weightBytes) / 1e6, node.isComputeBound ? "*" : " ",
              node.isBeside ? "|" : " ", node.index, node.title.c_str()) +
         (node.names.empty() ? "" : ", from " + node.names) + "\n";
}

std::string notes(const Roofline &roofline) {
  std::string text;
  auto count = [&](auto property) { return std::count_if(roofline.nodes.begin(), roofline.nodes.end(), property); };
  if (count([](const RooflineNode &node) { return node.isComputeBound; }))
    text += "* the floor is that of the operations, else of the bytes\n";
  if (roofline.method == "prefixes" && count([](const RooflineNode &node) { return node.isBeside; }))
    text += "| does not wait for the node before it: with branches, a time is what the end of the graph is later by\n";
  if (auto unknown = count([](const RooflineNode &node) { return !node.work.isCounted; }))
    text += line("the bundle has no counts for %td nodes: whole arguments, no operations\n", unknown);
  if (!roofline.hasFloors)
    text += "nothing is known of this device: give --bandwidth and --peak for floors\n";
  return text;
}

} // namespace

std::string rooflineText(const Session &session, const std::string &deviceName, const Roofline &roofline, unsigned shown) {
  const RooflineSum &total = roofline.total;
  std::string text = line("graph '%s' on %s: %u nodes, %.1f us (%s)", session.graph->id()->c_str(), deviceName.c_str(),
                          total.nodes, total.timeUs, roofline.method.c_str());
  if (roofline.hasFloors)
    text += line("; floor of its nodes %.1f us, %.2f of the time; of the model however fused %.1f us, %.2f", total.floorUs,
                 ratio(total.floorUs, total.timeUs), roofline.modelFloorUs, ratio(roofline.modelFloorUs, total.timeUs));
  text += std::string("\n\n") + kHeads + " weight MB    node\n";
  std::vector<const RooflineNode *> order = byLoss(roofline);
  size_t lines = shown == 0 ? order.size() : std::min<size_t>(shown, order.size());
  for (size_t i = 0; i < lines; ++i)
    text += nodeLine(*order[i]);
  if (lines < order.size())
    text += line("  and %zu nodes that lose less\n", order.size() - lines);
  text += std::string("\n") + kHeads + " nodes  kind\n";
  std::vector<std::pair<std::string, RooflineSum>> kinds(roofline.kinds.begin(), roofline.kinds.end());
  std::sort(kinds.begin(), kinds.end(), [](const auto &a, const auto &b) {
    return std::pair(a.second.floorUs - a.second.timeUs, a.first) < std::pair(b.second.floorUs - b.second.timeUs, b.first);
  });
  kinds.push_back({"all", total});
  for (const auto &[kind, sum] : kinds)
    text += figures(sum.timeUs - sum.floorUs, sum.timeUs, sum.floorUs, static_cast<double>(sum.bytes),
                    static_cast<double>(sum.operations)) +
            line(" %5u  %s\n", sum.nodes, kind.c_str());
  std::string below = notes(roofline);
  return text + (below.empty() ? "" : "\n" + below);
}

namespace {

void writeFigures(format::JsonWriter &json, const Roofline &roofline, double timeUs, double floorUs) {
  json.field("time_us", timeUs);
  if (roofline.hasFloors)
    json.field("floor_us", floorUs).field("lost_us", timeUs - floorUs).field("ratio", ratio(floorUs, timeUs));
}

void writeNode(format::JsonWriter &json, const Roofline &roofline, const RooflineNode &node) {
  const format::NodeWork &work = node.work;
  json.beginObject().field("index", node.index).field("kind", work.kind).field("title", node.title).field("onnx", node.names);
  writeFigures(json, roofline, node.timeUs, node.floorUs);
  if (roofline.hasFloors)
    json.field("bound", node.isComputeBound ? "operations" : "bytes");
  json.field("weight_bytes", work.weightBytes).field("read_bytes", work.readBytes).field("written_bytes", work.writtenBytes);
  if (work.isCounted)
    json.field("product_operations", work.productOperations).field("other_operations", work.otherOperations);
  if (work.productOperations != 0)
    json.field("product_type", productTypeName(work));
  json.field("beside", node.isBeside).endObject();
}

} // namespace

std::string rooflineJson(const Session &session, const std::string &device, const std::string &deviceName,
                         const Roofline &roofline, const RooflineOptions &options) {
  format::JsonWriter json;
  json.beginObject().field("device", device).field("device_name", deviceName).field("graph", session.graph->id()->string_view());
  json.field("method", roofline.method).field("replays", options.replays);
  if (roofline.hasFloors) {
    json.field("bytes_per_second", options.peaks.bytes).key("operations_per_second").beginObject();
    for (const auto &[type, peak] : options.peaks.operations)
      json.field(type, peak);
    json.endObject().field("model_floor_us", roofline.modelFloorUs);
  }
  json.field("start_us", roofline.startUs);
  writeFigures(json, roofline, roofline.total.timeUs, roofline.total.floorUs);
  json.key("kinds").beginArray();
  for (const auto &[kind, sum] : roofline.kinds) {
    json.beginObject().field("kind", kind).field("nodes", sum.nodes);
    writeFigures(json, roofline, sum.timeUs, sum.floorUs);
    json.field("bytes", sum.bytes).field("operations", sum.operations).endObject();
  }
  json.endArray().key("nodes").beginArray();
  for (const RooflineNode *node : byLoss(roofline))
    writeNode(json, roofline, *node);
  json.endArray().endObject();
  return json.text();
}

} // namespace ogc::tools
