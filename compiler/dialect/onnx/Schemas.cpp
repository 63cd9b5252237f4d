//===- Schemas.cpp - the operator schemas of the onnx package -------------===//
#include "compiler/dialect/onnx/Schemas.h"

#include "compiler/dialect/onnx/ContributedSchema.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using ::onnx::OpSchema;
using ::onnx::OpSchemaRegistry;

namespace ogc::onnx {

/// Adds the operators of com.microsoft to the package's registry, once a process.
static void registerContributed() {
  static const bool once = [] {
    OpSchemaRegistry::DomainToVersionRange::Instance().AddDomainToVersion("com.microsoft", 1, 1);
    contributed::addElementwiseSchemas();
    contributed::addNormalizationSchemas();
    contributed::addAttentionSchemas();
    contributed::addCacheSchemas();
    contributed::addQuantizedSchemas();
    contributed::addBlockQuantizedSchemas();
    return true;
  }();
  (void)once;
}

const OpSchema *findSchema(llvm::StringRef opType, llvm::StringRef domain, int64_t version) {
  registerContributed();
  // The registry takes an int and keeps its own statics; both are safe for any version in range.
  int bounded = static_cast<int>(std::clamp<int64_t>(version, 1, std::numeric_limits<int>::max()));
  return OpSchemaRegistry::Schema(opType.str(), bounded, domain.str());
}

/// Operators of other domains (previews) are taken where they are functions of these.
static bool isTaken(const OpSchema &schema) {
  return schema.domain().empty() || schema.domain() == "com.microsoft" || schema.HasFunction() ||
         schema.HasContextDependentFunction();
}

const std::vector<const OpSchema *> &newestSchemas() {
  static const std::vector<const OpSchema *> schemas = [] {
    registerContributed();
    std::vector<const OpSchema *> found;
    // Copies: the pointers come from a second look-up.
    for (const OpSchema &copy : OpSchemaRegistry::get_all_schemas())
      if (isTaken(copy) && !copy.deprecated())
        if (const OpSchema *schema = OpSchemaRegistry::Schema(copy.Name(), copy.SinceVersion(), copy.domain()))
          found.push_back(schema);
    llvm::sort(found, [](const OpSchema *a, const OpSchema *b) { return qualifiedName(*a) < qualifiedName(*b); });
    return found;
  }();
  return schemas;
}

const OpSchema *findNewestSchema(llvm::StringRef opType) {
  static const llvm::StringMap<const OpSchema *> byName = [] {
    llvm::StringMap<const OpSchema *> map;
    for (const OpSchema *schema : newestSchemas())
      map[qualifiedName(*schema)] = schema;
    return map;
  }();
  return byName.lookup(opType);
}

std::string qualifiedName(const OpSchema &schema) {
  return schema.domain().empty() ? schema.Name() : schema.domain() + "." + schema.Name();
}

std::string qualifiedName(llvm::StringRef opType, llvm::StringRef domain) {
  return domain.empty() ? opType.str() : (domain + "." + opType).str();
}

int64_t newestOpset() {
  static const int64_t version = [] {
    auto map = ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
    auto it = map.find("");
    return it == map.end() ? 1 : it->second.second;
  }();
  return version;
}

bool isRandom(const OpSchema &schema) {
  llvm::StringRef name = schema.Name();
  return name.starts_with("Random") || name == "Multinomial" || name == "Bernoulli";
}

unsigned countBodies(const OpSchema &schema) {
  return llvm::count_if(schema.attributes(), [](const auto &entry) {
    return entry.second.type == ::onnx::AttributeProto::GRAPH && entry.second.required;
  });
}

} // namespace ogc::onnx
