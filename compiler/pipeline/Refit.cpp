//===- Refit.cpp - other weights for a bundle that exists -----------------===//
#include "compiler/pipeline/Refit.h"

#include "compiler/bundle/ElementTypes.h"
#include "compiler/dialect/kern/Kern.h"
#include "compiler/dialect/onnx/OnnxOps.h"
#include "runtime_lib/format/Refit.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace ogc {

using namespace mlir;

std::vector<bundle::Parameter> collectParameters(ModuleOp module) {
  std::vector<bundle::Parameter> parameters;
  llvm::StringSet<> seen;
  module.walk([&](onnx::ConstantOp op) {
    auto name = op->getAttrOfType<StringAttr>("name");
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (name && type && type.hasStaticShape() && bundle::dataTypeOf(type.getElementType()) && seen.insert(name.getValue()).second)
      parameters.push_back({name.str(), type});
  });
  return parameters;
}

LogicalResult checkParameters(ModuleOp module, const std::vector<bundle::Parameter> &parameters, const format::Bundle &base) {
  if (!base.manifest().parameters())
    return module.emitError()
           << "the bundle was made by a version that kept no list of the model's initializers: compile it again";
  std::vector<format::ParameterInfo> actual;
  actual.reserve(parameters.size());
  for (const bundle::Parameter &parameter : parameters)
    actual.push_back({parameter.name,
                      *bundle::dataTypeOf(parameter.type.getElementType()),
                      {parameter.type.getShape().begin(), parameter.type.getShape().end()}});
  std::vector<std::string> problems = format::compareParameters(format::parametersOf(base.manifest()), actual);
  for (const std::string &problem : problems)
    module.emitError() << problem;
  return failure(!problems.empty());
}

static std::array<int64_t, 3> toArray(const format::fb::Dim3 &dims) { return {dims.x(), dims.y(), dims.z()}; }

static StringRef textOf(std::span<const std::byte> bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

/// Indices of the cubins among the sections of a bundle, and among the cubins alone.
using CubinIndices = llvm::DenseMap<uint32_t, unsigned>;

static bundle::CudaLaunch launchOf(const format::fb::CudaKernel &launch, const CubinIndices &cubins) {
  bundle::CudaLaunch result{cubins.lookup(launch.cubin()), launch.entry()->str(),      toArray(*launch.grid()),
                            toArray(*launch.block()),      toArray(*launch.cluster()), launch.shared_bytes()};
  for (unsigned i = 0; launch.tensor_maps() && i < launch.tensor_maps()->size(); ++i) {
    const format::fb::TensorMap &map = *launch.tensor_maps()->Get(i);
    result.tensorMaps.push_back({map.argument(),
                                 map.type(),
                                 map.offset_bytes(),
                                 {map.extents()->begin(), map.extents()->end()},
                                 {map.strides_bytes()->begin(), map.strides_bytes()->end()},
                                 {map.box()->begin(), map.box()->end()},
                                 map.swizzle_bytes()});
  }
  return result;
}

static bundle::KernelCode codeOf(const format::fb::Kernel &kernel, const CubinIndices &cubins) {
  bundle::KernelCode code{kernel.name()->str(), {}, std::nullopt};
  for (unsigned i = 0; kernel.cuda() && i < kernel.cuda()->size(); ++i)
    code.cuda.push_back(launchOf(*kernel.cuda()->Get(i), cubins));
  if (const format::fb::CpuKernel *cpu = kernel.cpu())
    code.cpu = bundle::CpuEntry{cpu->symbol()->str(), cpu->units()};
  for (unsigned i = 0; kernel.variants() && i < kernel.variants()->size(); ++i) {
    const format::fb::CudaVariant &variant = *kernel.variants()->Get(i);
    code.variants.push_back({variant.problem()->str(), variant.knobs()->str(), launchOf(*variant.kernel(), cubins)});
  }
  return code;
}

LogicalResult takeCode(ModuleOp module, const std::shared_ptr<const format::Bundle> &base, bundle::BundleParts &parts) {
  const format::fb::Manifest &manifest = base->manifest();
  CubinIndices cubins; // the writer puts these first
  for (unsigned i = 0; i < manifest.blobs()->size(); ++i) {
    const format::fb::Blob &blob = *manifest.blobs()->Get(i);
    if (blob.kind() == format::fb::BlobKind::Cubin) {
      cubins[i] = static_cast<unsigned>(parts.cubins.size());
      parts.cubins.push_back({blob.name()->str(), textOf(base->blob(i)).str()});
    } else if (blob.kind() == format::fb::BlobKind::SharedObject) {
      parts.sharedObject = textOf(base->blob(i)).str();
      parts.cpuTriple = blob.name()->str();
    }
  }
  parts.cpuFeatures = manifest.cpu_features()->str();
  llvm::StringSet<> known;
  for (const format::fb::Kernel *kernel : *manifest.kernels()) {
    known.insert(kernel->name()->str());
    parts.kernels.push_back(codeOf(*kernel, cubins));
  }
  for (auto kernel : module.getOps<kern::KernelOp>())
    if (!known.contains(kernel.getSymName()))
      return module.emitError() << "the model needs kernel '" << kernel.getSymName()
                                << "', which the bundle lacks: its constants have changed what is computed";
  for (const auto *target : *manifest.targets())
    parts.targets.push_back(target->str());
  for (const auto *flag : *manifest.provenance()->flags())
    parts.provenance.flags.push_back(flag->str());
  parts.accept = [base](const format::Bundle &refitted) { return format::checkRefit(*base, refitted); };
  return success();
}

} // namespace ogc
