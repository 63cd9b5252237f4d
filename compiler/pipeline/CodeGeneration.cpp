//===- CodeGeneration.cpp - the code of a bundle for all its targets ------===//
#include "compiler/pipeline/CodeGeneration.h"

#include "compiler/bundle/ElementTypes.h"
#include "compiler/codegen/cpu/CompileKernels.h"
#include "compiler/codegen/cuda/CompileKernels.h"
#include "compiler/dialect/kern/Kern.h"
#include "compiler/pipeline/Refit.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include <thread>

namespace ogc {

using namespace mlir;

namespace {

/// What NVRTC 13 compiles for.
constexpr llvm::StringRef cudaArchs[] = {"sm_75", "sm_80",  "sm_86",  "sm_87",  "sm_88",  "sm_89",
                                         "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121"};

bool isCudaArch(llvm::StringRef target) { return llvm::is_contained(cudaArchs, target); }

unsigned threadCount(const CompileOptions &options) {
  return options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
}

LogicalResult generateCpu(ArrayRef<kern::KernelOp> kernels, ModuleOp module, const CompileOptions &options,
                          bundle::BundleParts &parts) {
  FailureOr<codegen::CpuTarget> target = codegen::CpuTarget::named(options.cpu);
  if (failed(target))
    return module.emitError() << "unknown processor '" << options.cpu << "' for the cpu target";
  codegen::CpuOptions cpu;
  cpu.target = *target;
  cpu.threads = threadCount(options);
  FailureOr<codegen::CpuObject> object = codegen::compileKernels(kernels, cpu);
  if (failed(object))
    return failure();
  parts.sharedObject.assign(object->image.begin(), object->image.end());
  parts.cpuFeatures = object->features;
  for (auto [code, entry] : llvm::zip(parts.kernels, object->kernels))
    code.cpu = bundle::CpuEntry{entry.symbol, entry.units};
  return success();
}

/// Dimensions in elements become bytes.
bundle::TensorMap toTensorMap(const codegen::TensorMap &map) {
  uint64_t bytes = map.element.getIntOrFloatBitWidth() / 8;
  bundle::TensorMap result;
  result.argument = map.argument;
  result.type = *bundle::dataTypeOf(map.element);
  result.offsetBytes = static_cast<uint64_t>(map.offset) * bytes;
  result.extents.assign(map.extents.begin(), map.extents.end());
  for (int64_t stride : map.strides)
    result.stridesBytes.push_back(static_cast<uint64_t>(stride) * bytes);
  result.box.assign(map.box.begin(), map.box.end());
  result.swizzleBytes = static_cast<uint32_t>(map.swizzleBytes);
  return result;
}

/// The table that was asked for, if any.
llvm::Expected<std::optional<codegen::TuningTable>> readTuning(const CompileOptions &options) {
  if (options.tuning.empty() || options.tuning == "none")
    return std::nullopt;
  return codegen::TuningTable::read(options.tuning);
}

LogicalResult generateCuda(ArrayRef<kern::KernelOp> kernels, ModuleOp module, const CompileOptions &options,
                           bundle::BundleParts &parts) {
  codegen::CudaOptions cuda;
  cuda.archs.clear();
  for (const std::string &target : options.targets)
    if (isCudaArch(target))
      cuda.archs.push_back(target);
  if (cuda.archs.empty())
    return success();
  if (!options.cacheDir.empty())
    cuda.cacheDir = options.cacheDir;
  cuda.threads = threadCount(options);
  cuda.dumpDir = options.dumpDir;
  cuda.candidates = options.tuningCandidates;
  cuda.useShippedTuning = options.tuning != "none";
  llvm::Expected<std::optional<codegen::TuningTable>> table = readTuning(options);
  if (!table)
    return module.emitError() << llvm::toString(table.takeError());
  cuda.tuning = *table ? &**table : nullptr;
  FailureOr<codegen::CudaModule> code = codegen::compileKernels(kernels, cuda);
  if (failed(code))
    return failure();
  for (const codegen::CudaArchModule &arch : code->archs) {
    unsigned first = parts.cubins.size();
    for (const std::vector<char> &cubin : arch.cubins)
      parts.cubins.push_back({arch.arch, std::string(cubin.begin(), cubin.end())});
    auto toLaunch = [&](const std::string &entry, uint32_t cubin, const codegen::LaunchShape &shape,
                        ArrayRef<codegen::TensorMap> maps) {
      bundle::CudaLaunch launch{first + cubin,           entry, {shape.grid, 1, 1}, {shape.block, 1, 1}, {shape.cluster, 1, 1},
                                shape.dynamicSharedBytes};
      for (const codegen::TensorMap &map : maps)
        launch.tensorMaps.push_back(toTensorMap(map));
      return launch;
    };
    for (auto [kernel, compiled] : llvm::zip(parts.kernels, arch.kernels)) {
      kernel.cuda.push_back(toLaunch(compiled.name, compiled.cubin, compiled.launch, compiled.tensorMaps));
      for (const codegen::CudaVariant &variant : compiled.variants)
        kernel.variants.push_back(
            {variant.problem, variant.knobs, toLaunch(variant.name, variant.cubin, variant.launch, variant.tensorMaps)});
    }
  }
  return success();
}

std::string fileHash(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return "";
  llvm::StringRef bytes = (*buffer)->getBuffer();
  return llvm::formatv("xxh3:{0:x-16}", llvm::xxh3_64bits(bytes));
}

/// Flags that change the result, spelled as on the command line: no paths, no thread counts.
std::vector<std::string> provenanceFlags(const CompileOptions &options) {
  std::vector<std::string> flags;
  for (const std::string &shapes : options.shapes)
    flags.push_back("--shapes=" + shapes);
  for (const std::string &value : options.values)
    flags.push_back("--value=" + value);
  for (const std::string &target : options.targets)
    flags.push_back("--target=" + target);
  flags.push_back("--precision=" + options.precision);
  flags.push_back("--gemm=" + options.gemm);
  for (const std::string &state : options.states)
    flags.push_back("--state=" + state);
  if (options.memoryBytes)
    flags.push_back("--memory=" + std::to_string(options.memoryBytes));
  if (options.serial)
    flags.push_back("--serial");
  if (!options.pdl)
    flags.push_back("--no-pdl");
  for (const std::string &pass : options.disabled)
    flags.push_back("--disable=" + pass);
  if (!options.tuning.empty())
    flags.push_back("--tuning=" + (options.tuning == "none" ? options.tuning : fileHash(options.tuning)));
  return flags;
}

LogicalResult compileKernels(ModuleOp module, const CompileOptions &options, bundle::BundleParts &parts) {
  SmallVector<kern::KernelOp> kernels(module.getOps<kern::KernelOp>());
  for (kern::KernelOp kernel : kernels)
    parts.kernels.push_back({kernel.getSymName().str(), {}, std::nullopt});
  parts.targets = options.targets;
  if (llvm::is_contained(options.targets, "cpu") && failed(generateCpu(kernels, module, options, parts)))
    return failure();
  return generateCuda(kernels, module, options, parts);
}

} // namespace

std::string refuseTarget(llvm::StringRef target) {
  if (target == "cpu" || isCudaArch(target))
    return "";
  return "unknown target '" + target.str() + "', expected cpu or one of " + llvm::join(ArrayRef(cudaArchs), ", ");
}

LogicalResult checkTargets(MLIRContext &context, const CompileOptions &options) {
  bool wrong = options.targets.empty();
  if (wrong)
    emitError(UnknownLoc::get(&context)) << "no target given, expected cpu or sm_XX";
  llvm::StringSet<> seen;
  for (const std::string &target : options.targets) {
    if (std::string reason = refuseTarget(target); !reason.empty()) {
      emitError(UnknownLoc::get(&context)) << reason;
      wrong = true;
    } else if (!seen.insert(target).second) {
      emitError(UnknownLoc::get(&context)) << "target '" << target << "' is given twice";
      wrong = true;
    }
  }
  if (llvm::is_contained(options.targets, "cpu") && failed(codegen::CpuTarget::named(options.cpu))) {
    emitError(UnknownLoc::get(&context)) << "unknown processor '" << options.cpu << "' for the cpu target";
    wrong = true;
  }
  return failure(wrong);
}

LogicalResult checkTuning(MLIRContext &context, const CompileOptions &options) {
  size_t cudaTargets = llvm::count_if(options.targets, isCudaArch);
  if (options.tuningCandidates && cudaTargets != 1)
    return emitError(UnknownLoc::get(&context)) << "tuning candidates are for one CUDA target, got " << cudaTargets;
  if (auto table = readTuning(options); !table)
    return emitError(UnknownLoc::get(&context)) << llvm::toString(table.takeError());
  return success();
}

LogicalResult generateCode(ModuleOp module, const CompileOptions &options, bundle::BundleParts &parts) {
  if (failed(options.refit ? takeCode(module, options.refit, parts) : compileKernels(module, options, parts)))
    return failure();
  parts.weightsMode = options.weights == "none"       ? bundle::WeightsMode::None
                      : options.weights == "external" ? bundle::WeightsMode::External
                                                      : bundle::WeightsMode::Inline;
  parts.provenance.model = llvm::sys::path::filename(options.modelPath).str();
  parts.provenance.modelHash = fileHash(options.modelPath);
  if (!options.refit) // those of the bundle otherwise
    parts.provenance.flags = provenanceFlags(options);
  parts.provenance.versions = {"llvm " LLVM_VERSION_STRING};
  return success();
}

} // namespace ogc
