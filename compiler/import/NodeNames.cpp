//===- NodeNames.cpp - how messages and locations name a node -------------===//
#include "compiler/import/NodeNames.h"

using namespace mlir;
using ::onnx::NodeProto;

namespace ogc {

static constexpr size_t maxLength = 400;

std::string canonicalDomain(const std::string &domain) { return domain == "ai.onnx" ? "" : domain; }

std::string shorten(std::string name) {
  if (name.size() <= maxLength)
    return name;
  // No letter of several bytes is cut.
  auto boundary = [&](size_t at) {
    while (at > 0 && (name[at] & 0xC0) == 0x80)
      --at;
    return at;
  };
  return name.substr(0, boundary(maxLength / 2)) + "..." + name.substr(boundary(name.size() - maxLength / 2));
}

/// Nodes without a name go by their first output.
static std::string nameOf(const NodeProto &proto, const std::string &prefix) {
  return shorten(prefix + (!proto.name().empty() ? proto.name() : proto.output_size() ? proto.output(0) : ""));
}

std::string describe(const NodeProto &proto, const std::string &prefix) {
  std::string domain = canonicalDomain(proto.domain());
  std::string type = domain.empty() ? proto.op_type() : domain + "." + proto.op_type();
  return shorten(type) + " node '" + nameOf(proto, prefix) + "'";
}

Location nodeLocation(MLIRContext *context, const NodeProto &proto, const std::string &prefix) {
  return NameLoc::get(StringAttr::get(context, nameOf(proto, prefix) + " (" + proto.op_type() + ")"));
}

} // namespace ogc
