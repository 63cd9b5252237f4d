//===- Refit.cpp - bundles that differ in their weights alone -------------===//
#include "runtime_lib/format/Refit.h"

#include "runtime_lib/format/DataType.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace ogc::format {

namespace {

/// A table as bytes, to compare two of them whatever their place in a file.
template <typename Table> std::string packed(const Table &table) {
  std::unique_ptr<typename Table::NativeTableType> native(table.UnPack());
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Table::Pack(builder, native.get()));
  return {reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize()};
}

/// A kernel as it is launched: what it has to do is for people to read, and not in bundles of all versions.
std::string packedCode(const fb::Kernel &kernel) {
  std::unique_ptr<fb::KernelT> native(kernel.UnPack());
  native->work.reset();
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Kernel::Pack(builder, native.get()));
  return {reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize()};
}

std::string describe(fb::DataType type, std::span<const int64_t> shape) {
  std::string text = typeName(type);
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "x" : " ") + std::to_string(shape[i]);
  return text;
}

/// "initializer 'name'", and what follows.
std::string aboutInitializer(std::string_view name, const std::string &what) {
  return std::string("initializer '").append(name).append("'").append(what);
}

std::string describe(const fb::Weight &weight) {
  return "'" + weight.name()->str() + "', " + describe(weight.type(), {weight.shape()->data(), weight.shape()->size()}) + " at " +
         std::to_string(weight.offset_bytes());
}

/// The ONNX nodes that launch a kernel.
std::string usersOf(const fb::Manifest &manifest, uint32_t kernel) {
  std::string names;
  for (const fb::Graph *graph : *manifest.graphs())
    for (const fb::Node *node : *graph->nodes()) {
      if ((node->kind() != fb::NodeKind::Kernel && node->kind() != fb::NodeKind::Gemm) || node->kernel() != kernel)
        continue;
      for (unsigned i = 0; node->names() && i < node->names()->size(); ++i)
        names += (names.empty() ? " of " : ", ") + node->names()->Get(i)->str();
      if (!names.empty())
        return names;
    }
  return names;
}

class Comparison {
public:
  Comparison(const Bundle &base, const Bundle &refitted) : a_(base.manifest()), b_(refitted.manifest()) {}

  Status run() {
    compareLists();
    if (problems_.empty())
      compareWeights();
    compareKernels();
    compareGraphs();
    compareCode();
    if (problems_.empty())
      return Status();
    constexpr size_t most = 20;
    std::string text = "the bundles differ in more than their weights";
    for (size_t i = 0; i < std::min(problems_.size(), most); ++i)
      text += "\n  " + problems_[i];
    if (problems_.size() > most)
      text += "\n  and " + std::to_string(problems_.size() - most) + " more";
    return Status(Code::InvalidArgument, text);
  }

private:
  void problem(std::string what) { problems_.push_back(std::move(what)); }

  void compareLists() {
    if (!a_.parameters() || !b_.parameters())
      return; // bundles from before the list was kept: their weights are compared all the same
    for (std::string &problem : compareParameters(parametersOf(a_), parametersOf(b_)))
      problems_.push_back(std::move(problem));
  }

  void compareWeights() {
    if (a_.weights()->size() != b_.weights()->size() || a_.arena()->weights_bytes() != b_.arena()->weights_bytes()) {
      problem("the weights section has " + std::to_string(b_.weights()->size()) + " tensors in " +
              std::to_string(b_.arena()->weights_bytes()) + " bytes, expected " + std::to_string(a_.weights()->size()) + " in " +
              std::to_string(a_.arena()->weights_bytes()) +
              ": tensors of equal values are stored once, and constants of one value are part of the code");
      return;
    }
    for (unsigned i = 0; i < a_.weights()->size(); ++i) {
      const fb::Weight &x = *a_.weights()->Get(i), &y = *b_.weights()->Get(i);
      if (packed(x) != packed(y))
        problem("weight " + std::to_string(i) + " is " + describe(y) + ", expected " + describe(x));
    }
  }

  void compareKernels() {
    if (a_.kernels()->size() != b_.kernels()->size())
      return problem("there are " + std::to_string(b_.kernels()->size()) + " kernels, expected " +
                     std::to_string(a_.kernels()->size()));
    for (unsigned i = 0; i < a_.kernels()->size(); ++i)
      if (packedCode(*a_.kernels()->Get(i)) != packedCode(*b_.kernels()->Get(i)))
        problem("kernel '" + a_.kernels()->Get(i)->name()->str() + "'" + usersOf(a_, i) +
                " has other code: a constant that is part of it has changed");
  }

  void compareGraphs() {
    if (a_.graphs()->size() != b_.graphs()->size())
      return problem("there are " + std::to_string(b_.graphs()->size()) + " graphs, expected " +
                     std::to_string(a_.graphs()->size()));
    for (unsigned i = 0; i < a_.graphs()->size(); ++i)
      if (packed(*a_.graphs()->Get(i)) != packed(*b_.graphs()->Get(i)))
        problem("graph '" + a_.graphs()->Get(i)->id()->str() + "' has other nodes, edges or bindings");
  }

  /// The code itself, and what it asks of memory and processor.
  void compareCode() {
    auto codeOf = [](const fb::Manifest &manifest) {
      std::vector<uint64_t> checksums;
      for (const fb::Blob *blob : *manifest.blobs())
        if (blob->kind() != fb::BlobKind::Weights)
          checksums.push_back(blob->checksum());
      return checksums;
    };
    if (codeOf(a_) != codeOf(b_))
      problem("the compiled code is another");
    if (packed(*a_.arena()) != packed(*b_.arena()))
      problem("the sections of memory have other sizes");
    if (a_.cpu_features()->string_view() != b_.cpu_features()->string_view())
      problem("the cpu code needs other instruction sets");
    bool sameTargets = std::equal(a_.targets()->begin(), a_.targets()->end(), b_.targets()->begin(), b_.targets()->end(),
                                  [](const auto *x, const auto *y) { return x->string_view() == y->string_view(); });
    if (!sameTargets)
      problem("the targets are others");
  }

  const fb::Manifest &a_, &b_;
  std::vector<std::string> problems_;
};

} // namespace

std::vector<ParameterInfo> parametersOf(const fb::Manifest &manifest) {
  std::vector<ParameterInfo> parameters;
  for (unsigned i = 0; manifest.parameters() && i < manifest.parameters()->size(); ++i) {
    const fb::Parameter &parameter = *manifest.parameters()->Get(i);
    parameters.push_back({parameter.name()->str(), parameter.type(), {parameter.shape()->begin(), parameter.shape()->end()}});
  }
  return parameters;
}

std::vector<std::string> compareParameters(const std::vector<ParameterInfo> &expected, const std::vector<ParameterInfo> &actual) {
  std::vector<std::string> problems;
  std::map<std::string_view, const ParameterInfo *> wanted;
  for (const ParameterInfo &parameter : expected)
    wanted[parameter.name] = &parameter;
  for (const ParameterInfo &parameter : actual) {
    auto found = wanted.find(parameter.name);
    std::string description = describe(parameter.type, parameter.shape);
    if (found == wanted.end()) {
      problems.push_back(aboutInitializer(parameter.name, " (" + description + ") is not in the bundle's model"));
      continue;
    }
    std::string wantedDescription = describe(found->second->type, found->second->shape);
    if (description != wantedDescription)
      problems.push_back(aboutInitializer(parameter.name, " is " + description + ", expected " + wantedDescription));
    wanted.erase(found);
  }
  for (const auto &[name, parameter] : wanted)
    problems.push_back(aboutInitializer(name, " (" + describe(parameter->type, parameter->shape) + ") is missing"));
  return problems;
}

Status checkRefit(const Bundle &base, const Bundle &refitted) { return Comparison(base, refitted).run(); }

} // namespace ogc::format
