//===- Accuracy.cpp - how far one precision of a model is from another ----===//
#include "tools/common/Accuracy.h"

#include "runtime_lib/format/Dump.h"
#include "runtime_lib/format/Json.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

namespace ogc::tools {

using format::DataType;

namespace {

double largestFinite(DataType type) {
  switch (type) {
  case DataType::F16:
    return 65504;
  case DataType::BF16:
    return 0x1.fep127;
  case DataType::F32:
    return FLT_MAX;
  default:
    return DBL_MAX;
  }
}

double largestOf(DataType type, std::span<const std::byte> bytes) {
  double largest = 0;
  for (size_t i = 0; i < bytes.size() / format::elementBytes(type); ++i)
    if (double value = std::fabs(format::readElement(type, bytes.data(), i)); std::isfinite(value))
      largest = std::max(largest, value);
  return largest;
}

/// A tensor that a kernel stores.
struct Stored {
  std::string name;
  DataType type;
  std::vector<std::byte> bytes;
};

/// Runs the nodes one after the other and hands over each float tensor that they store.
template <typename Visit> Status visitStored(const Session &session, runtime::Context &context, Visit visit) {
  const fb::Manifest &manifest = session.bundle->manifest();
  OGC_RETURN_IF_ERROR(resetAndUpload(session, context));
  for (unsigned i = 0; i < session.graph->nodes()->size(); ++i) {
    const fb::Node &node = *session.graph->nodes()->Get(i);
    OGC_RETURN_IF_ERROR(context.runNodes(session.graphIndex, i, i + 1));
    const auto *types = node.kind() == fb::NodeKind::Kernel ? manifest.kernels()->Get(node.kernel())->arg_types() : nullptr;
    size_t results = std::count_if(node.args()->begin(), node.args()->end(),
                                   [](const fb::Slice *slice) { return slice->access() != fb::Access::Read; });
    for (unsigned a = 0, result = 0; types && a < node.args()->size(); ++a) {
      const fb::Slice &slice = *node.args()->Get(a);
      DataType type = static_cast<DataType>(types->Get(a));
      if (slice.access() == fb::Access::Read)
        continue;
      ++result;
      if (!format::isFloat(type) || slice.size_bytes() == 0 || slice.size_bytes() % format::elementBytes(type) != 0)
        continue;
      // A kernel with another number of results stores other values.
      std::string name = format::nodeNames(node, ", ");
      if (results > 1)
        name += ", result " + std::to_string(result) + " of " + std::to_string(results);
      Stored value{std::move(name), type, std::vector<std::byte>(slice.size_bytes())};
      OGC_RETURN_IF_ERROR(context.copyOut(slice.section(), slice.offset_bytes(), value.bytes.data(), value.bytes.size()));
      OGC_RETURN_IF_ERROR(context.synchronize());
      visit(std::move(value));
    }
  }
  return Status();
}

ValueAccuracy judge(ValueAccuracy::Kind kind, const std::string &name, DataType type, std::span<const std::byte> actual,
                    DataType expectedType, std::span<const std::byte> expected) {
  return {kind,
          name,
          type,
          compare(type, actual, expectedType, expected),
          largestOf(expectedType, expected),
          largestFinite(type),
          /*order=*/0};
}

/// Stored values of the reference by name, each handed out once: kernels of equal names follow in order.
class Reference {
public:
  void add(Stored value) { values_[value.name].push_back(std::move(value)); }

  /// The next one that has the name and the number of elements.
  std::optional<Stored> take(const Stored &like) {
    auto found = values_.find(like.name);
    if (found == values_.end())
      return std::nullopt;
    auto count = [](const Stored &value) { return value.bytes.size() / format::elementBytes(value.type); };
    auto match = std::find_if(found->second.begin(), found->second.end(), [&](auto &v) { return count(v) == count(like); });
    if (match == found->second.end())
      return std::nullopt;
    Stored value = std::move(*match);
    found->second.erase(match);
    return value;
  }

private:
  std::map<std::string, std::vector<Stored>> values_;
};

} // namespace

Result<AccuracyReport> compareAccuracy(const Session &reference, const Session &reduced, const std::string &device,
                                       DataType storage, unsigned threads) {
  SessionOptions options;
  options.threads = threads;
  Result<std::unique_ptr<runtime::Context>> expected = openContext(reference, "cpu", options);
  if (!expected.ok())
    return expected.status();
  Result<std::unique_ptr<runtime::Context>> actual = openContext(reduced, device, options);
  if (!actual.ok())
    return actual.status();
  AccuracyReport report;
  Reference stored;
  OGC_RETURN_IF_ERROR(visitStored(reference, *expected.value(), [&](Stored value) { stored.add(std::move(value)); }));
  OGC_RETURN_IF_ERROR(visitStored(reduced, *actual.value(), [&](Stored value) {
    std::optional<Stored> like = stored.take(value);
    if (!like)
      return void(++report.unmatched);
    report.stored.push_back(judge(ValueAccuracy::Kind::Stored, value.name, value.type, value.bytes, like->type, like->bytes));
    report.stored.back().order = report.stored.size();
  }));
  std::sort(report.stored.begin(), report.stored.end(), [](const ValueAccuracy &a, const ValueAccuracy &b) {
    return std::pair(-a.difference.relativeL2, a.order) < std::pair(-b.difference.relativeL2, b.order);
  });
  auto expectedOutputs = downloadOutputs(reference, *expected.value()), actualOutputs = downloadOutputs(reduced, *actual.value());
  if (!expectedOutputs.ok() || !actualOutputs.ok())
    return expectedOutputs.ok() ? actualOutputs.status() : expectedOutputs.status();
  for (unsigned i = 0; i < reduced.graph->outputs()->size(); ++i) {
    const fb::Binding &binding = *reduced.graph->outputs()->Get(i);
    report.outputs.push_back(judge(ValueAccuracy::Kind::Output, binding.name()->str(), binding.type(), actualOutputs.value()[i],
                                   binding.type(), expectedOutputs.value()[i]));
  }
  for (unsigned i = 0; i < reduced.graph->inputs()->size(); ++i) {
    const fb::Binding &binding = *reduced.graph->inputs()->Get(i);
    if (binding.type() != DataType::F32)
      continue;
    ValueAccuracy input{ValueAccuracy::Kind::Input,
                        binding.name()->str(),
                        storage,
                        {},
                        largestOf(binding.type(), reduced.inputs[i]),
                        largestFinite(storage),
                        /*order=*/0};
    if (input.overflows())
      report.inputs.push_back(std::move(input));
  }
  return report;
}

std::string overflowText(const ValueAccuracy &value) {
  constexpr const char *kinds[] = {"input '", "output '", "the value of "};
  char text[80] = " has infinities or NaN where fp32 has numbers";
  if (value.largest > value.range)
    std::snprintf(text, sizeof text, " reaches %.6g, %s ends at %.6g", value.largest, format::typeName(value.type), value.range);
  return kinds[static_cast<size_t>(value.kind)] + value.name + (value.kind == ValueAccuracy::Kind::Stored ? "" : "'") + text;
}

namespace {

std::string line(const ValueAccuracy &value) {
  char text[120];
  const Difference &difference = value.difference;
  std::snprintf(text, sizeof text, "%11.3g %12.3g %12.4g %10.2g  %-8s  ", difference.relativeL2, difference.largest,
                value.largest, value.largest / value.range, format::typeName(value.type));
  return text + value.name + "\n";
}

void write(format::JsonWriter &json, const ValueAccuracy &value) {
  const Difference &difference = value.difference;
  json.beginObject().field("name", value.name).field("dtype", format::typeName(value.type));
  if (value.kind != ValueAccuracy::Kind::Input) {
    // JSON has no infinity.
    if (std::isfinite(difference.relativeL2))
      json.field("relative_l2", difference.relativeL2).field("largest_difference", difference.largest);
    json.field("at", static_cast<uint64_t>(difference.firstIndex)).field("elements", static_cast<uint64_t>(difference.count));
  }
  json.field("largest_value", value.largest).field("range", value.range);
  json.field("overflows", value.overflows()).endObject();
}

} // namespace

std::string accuracyText(const AccuracyReport &report, size_t shown) {
  const std::string heads = "relative L2   difference        value   of range  type      ";
  std::string text = heads + "output\n";
  for (const ValueAccuracy &output : report.outputs)
    text += line(output);
  if (shown == 0)
    return text;
  text += "\n" + heads + "stored by\n";
  for (size_t i = 0; i < std::min(shown, report.stored.size()); ++i)
    text += line(report.stored[i]);
  if (shown < report.stored.size())
    text += "and " + std::to_string(report.stored.size() - shown) + " values with smaller errors\n";
  if (report.unmatched != 0)
    text += std::to_string(report.unmatched) + " stored values have no counterpart in the reference\n";
  return text;
}

std::string accuracyJson(const AccuracyReport &report, const std::string &precision, size_t shown) {
  format::JsonWriter json;
  json.beginObject().field("precision", precision).field("reference", "fp32").key("outputs").beginArray();
  for (const ValueAccuracy &output : report.outputs)
    write(json, output);
  json.endArray().key("overflowing_inputs").beginArray();
  for (const ValueAccuracy &input : report.inputs)
    write(json, input);
  json.endArray().key("values").beginArray();
  for (size_t i = 0; i < std::min(shown, report.stored.size()); ++i)
    write(json, report.stored[i]);
  json.endArray().field("values_total", static_cast<uint64_t>(report.stored.size()));
  json.field("unmatched_values", static_cast<uint64_t>(report.unmatched)).key("overflowing_values").beginArray();
  for (const ValueAccuracy &value : report.stored)
    if (value.overflows())
      write(json, value);
  json.endArray().endObject();
  return json.text();
}

} // namespace ogc::tools
