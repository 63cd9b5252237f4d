//===- CompileKernels.cpp - all kernels of a bundle to cubins -------------===//
#include "compiler/codegen/cuda/CompileKernels.h"

#include "compiler/codegen/cuda/CudaTypes.h"
#include "compiler/codegen/cuda/DependentLaunchCheck.h"
#include "compiler/codegen/cuda/DeviceHeaders.h"
#include "compiler/codegen/cuda/Nvrtc.h"
#include "compiler/codegen/cuda/Schedules.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>
#include <set>
#include <thread>

using namespace mlir;

namespace ogc::codegen {

namespace {

/// A kernel, or another choice for it.
struct Printed {
  KernelText text;
  unsigned kernel = 0;             ///< index into the kernel list
  std::optional<unsigned> variant; ///< of that kernel
};

/// Some kernels of one architecture, compiled together.
struct Program {
  std::string name;
  unsigned arch = 0; ///< index into the options' list
  std::vector<const Printed *> kernels;
  std::string source;
  std::vector<std::string> options;
  /// Where programmatic edges exist: what must wait. Programs from the cache have been checked when they were made.
  std::vector<EntryPoint> dependent;
  std::vector<char> cubin;
  std::string error;
  bool wasCached = false;
};

/// A program costs 20 ms by itself and its kernels 20 to 150 ms each; this many share one.
constexpr unsigned programCost = 36;

} // namespace

std::string programText(ArrayRef<KernelText> kernels) {
  std::set<std::string> headers;
  for (const KernelText &kernel : kernels)
    headers.insert(kernel.headers.begin(), kernel.headers.end());
  std::string text;
  for (const std::string &header : headers)
    text += "#include \"" + header + "\"\n";
  // Messages of NVRTC name the kernel as the file.
  for (const KernelText &kernel : kernels)
    text += "\n// " + kernel.nodes + "\n#line 1 \"" + kernel.name + "\"\n" + kernel.source;
  return text;
}

/// sm_90 has no successor of its family, so code for it may use everything that it has (wgmma).
static std::vector<std::string> optionsFor(CudaArch arch) {
  bool isHopper = arch.major == 9 && arch.minor == 0;
  return {"--gpu-architecture=" + arch.name() + (isHopper ? "a" : ""), "--std=c++17",
          "--diag-suppress=177"}; // digits of an index that an address did not need
}

/// Groups kernels into programs of about `programCost`, in order: the same kernels always make the same programs.
static void addPrograms(ArrayRef<Printed> printed, CudaArch arch, unsigned archIndex, std::vector<Program> &programs) {
  unsigned cost = programCost;
  for (const Printed &kernel : printed) {
    if (cost + kernel.text.cost > programCost) {
      Program &program = programs.emplace_back();
      program.name = arch.name() + "_" + std::to_string(programs.size() - 1);
      program.arch = archIndex;
      program.options = optionsFor(arch);
      cost = 0;
    }
    cost += kernel.text.cost;
    programs.back().kernels.push_back(&kernel);
  }
}

static void compileProgram(Program &program, const Nvrtc &nvrtc, const KernelCache &cache, const std::string &headersHash) {
  std::string key = KernelCache::key({"1", nvrtc.version(), headersHash, llvm::join(program.options, " "), program.source});
  if (std::optional<std::vector<char>> cubin = cache.load(key)) {
    program.cubin = std::move(*cubin);
    program.wasCached = true;
    return;
  }
  std::string ptx;
  llvm::Expected<std::vector<char>> cubin =
      nvrtc.compile(program.name, program.source, program.options, program.dependent.empty() ? nullptr : &ptx);
  if (!cubin) {
    program.error = llvm::toString(cubin.takeError());
    return;
  }
  program.error = llvm::join(checkDependentLaunch(ptx, program.dependent), "\n\n");
  if (!program.error.empty())
    return;
  program.cubin = std::move(*cubin);
  cache.store(key, program.cubin);
}

static void compilePrograms(std::vector<Program> &programs, const Nvrtc &nvrtc, const CudaOptions &options) {
  std::vector<std::string> headers;
  for (const DeviceHeader &header : deviceHeaders())
    headers.insert(headers.end(), {header.name, header.text});
  std::string headersHash = KernelCache::key(headers);
  KernelCache cache(options.cacheDir);
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i = next++; i < programs.size(); i = next++)
      compileProgram(programs[i], nvrtc, cache, headersHash);
  };
  unsigned cores = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(cores, programs.size()); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
}

static void dump(const Program &program, const std::string &folder) {
  std::error_code error = llvm::sys::fs::create_directories(folder);
  std::string path = folder + "/" + program.name + ".cu";
  {
    llvm::raw_fd_ostream os(path, error);
    if (!error) {
      os << program.source;
      os.close();
      error = os.error();
      os.clear_error(); // a stream that is destroyed with an error ends the program
    }
  }
  if (error)
    llvm::errs() << "warning: " << path << ": " << error.message() << "\n";
}

/// Reports NVRTC's log: each error at the kernel whose text it names (kernels are files to NVRTC), the others, such as errors
/// inside of a device header, at the first kernel of the program.
static void report(const Program &program, ArrayRef<kern::KernelOp> kernels) {
  SmallVector<StringRef> paragraphs;
  StringRef(program.error).split(paragraphs, "\n\n", -1, /*KeepEmpty=*/false);
  std::vector<std::string> texts(program.kernels.size());
  for (StringRef paragraph : paragraphs) {
    if (paragraph.contains("): warning"))
      continue;
    size_t owner = 0;
    for (auto [position, printed] : llvm::enumerate(program.kernels)) {
      const std::string &name = printed->text.name;
      if (paragraph.ltrim().starts_with(name + "(") || paragraph.contains("of " + name + "\n") ||
          paragraph.ends_with("of " + name))
        owner = position;
    }
    texts[owner] += "\n" + paragraph.str();
  }
  for (auto [printed, text] : llvm::zip_equal(program.kernels, texts)) {
    kern::KernelOp kernel = kernels[printed->kernel];
    if (!text.empty())
      emitError(kernel.getLoc()) << "kernel '" << printed->text.name << "' does not compile for "
                                 << StringRef(program.name).rsplit('_').first << " (ONNX node " << nodeNames(kernel.getLoc())
                                 << "): " << text;
  }
}

/// Prints the other choices for a kernel; `own` is the result of printing it, with all candidates.
static LogicalResult printVariants(kern::KernelOp kernel, unsigned index, CudaArch arch, const Tuning &own, CudaKernel &out,
                                   std::vector<Printed> &printed) {
  out.variants.push_back({own.problem, own.chosen.str(), out.name, 0, out.launch, out.tensorMaps});
  bool ok = true;
  for (const Knobs &knobs : own.candidates) {
    if (knobs == own.chosen)
      continue;
    // The entry point is called after the symbol.
    OwningOpRef<kern::KernelOp> copy = kernel.clone();
    copy->setSymName((kernel.getSymName() + "_v" + Twine(out.variants.size())).str());
    Tuning forced;
    forced.forced = knobs;
    FailureOr<KernelText> text = printKernel(*copy, arch, forced);
    ok &= succeeded(text);
    if (failed(text) || !(forced.chosen == knobs))
      continue;
    out.variants.push_back({own.problem, knobs.str(), text->name, 0, text->launch, text->tensorMaps});
    printed.push_back({std::move(*text), index, out.variants.size() - 1});
  }
  return success(ok);
}

/// Prints all kernels for one architecture.
static LogicalResult printAll(ArrayRef<kern::KernelOp> kernels, CudaArch arch, const CudaOptions &options, CudaArchModule &module,
                              std::vector<Printed> &printed) {
  bool ok = true;
  for (auto [index, kernel] : llvm::enumerate(kernels)) {
    Tuning tuning;
    if (options.tuning)
      tuning.tables.push_back(options.tuning);
    if (options.useShippedTuning)
      tuning.tables.push_back(&TuningTable::builtin(arch));
    tuning.collect = options.candidates;
    FailureOr<KernelText> text = printKernel(kernel, arch, tuning);
    CudaKernel &out = module.kernels.emplace_back();
    out.name = kern::KernelOp(kernel).getSymName().str();
    ok &= succeeded(text);
    if (failed(text))
      continue;
    out.launch = text->launch;
    out.tensorMaps = text->tensorMaps;
    printed.push_back({std::move(*text), unsigned(index), std::nullopt});
    if (options.candidates)
      ok &= succeeded(printVariants(kernel, index, arch, tuning, out, printed));
  }
  return success(ok);
}

/// The parameters of a kernel: its buffers, then the tensor maps, which are as constant as what they describe.
static EntryPoint entryPoint(kern::KernelOp kernel, const KernelText &text) {
  EntryPoint entry{text.name, constantArguments(kernel), 0};
  entry.constant.resize(kernel.getBody().getNumArguments() + kernel.getBody().front().getTerminator()->getNumOperands(), false);
  entry.firstMap = entry.constant.size();
  for (const TensorMap &map : text.tensorMaps)
    entry.constant.push_back(entry.constant[map.argument]);
  return entry;
}

/// Prints all kernels for all architectures and groups them into programs, which point into `printed`.
static LogicalResult makePrograms(ArrayRef<kern::KernelOp> kernels, const CudaOptions &options, CudaModule &result,
                                  std::vector<std::vector<Printed>> &printed, std::vector<Program> &programs) {
  bool ok = true;
  printed.resize(options.archs.size());
  for (auto [archIndex, name] : llvm::enumerate(options.archs)) {
    FailureOr<CudaArch> arch = CudaArch::parse(name);
    CudaArchModule &module = result.archs.emplace_back();
    module.arch = name;
    if (failed(arch))
      return emitError(kern::KernelOp(kernels.front()).getLoc()) << "CUDA architecture '" << name << "' is not of the form sm_90";
    ok &= succeeded(printAll(kernels, *arch, options, module, printed[archIndex]));
    if (!ok)
      continue;
    size_t first = programs.size();
    addPrograms(printed[archIndex], *arch, archIndex, programs);
    for (Program &program : MutableArrayRef(programs).drop_front(first)) {
      std::vector<KernelText> parts;
      for (const Printed *kernel : program.kernels) {
        parts.push_back(kernel->text);
        if (arch->hasClusters())
          program.dependent.push_back(entryPoint(kernels[kernel->kernel], kernel->text));
      }
      program.source = programText(parts);
      if (!options.dumpDir.empty())
        dump(program, options.dumpDir);
    }
  }
  return success(ok);
}

FailureOr<CudaModule> compileKernels(ArrayRef<kern::KernelOp> kernels, const CudaOptions &options) {
  CudaModule result;
  if (kernels.empty()) {
    for (const std::string &name : options.archs)
      result.archs.push_back({name, {}, {}});
    return result;
  }
  std::vector<std::vector<Printed>> printed;
  std::vector<Program> programs;
  if (failed(makePrograms(kernels, options, result, printed, programs)))
    return failure();
  if (programs.empty())
    return result;

  llvm::Expected<const Nvrtc *> nvrtc = Nvrtc::get();
  if (!nvrtc)
    return emitError(kern::KernelOp(kernels.front()).getLoc()) << llvm::toString(nvrtc.takeError());
  compilePrograms(programs, **nvrtc, options);
  bool ok = true;
  for (Program &program : programs) {
    if (!program.error.empty()) {
      report(program, kernels);
      ok = false;
      continue;
    }
    CudaArchModule &module = result.archs[program.arch];
    for (const Printed *kernel : program.kernels) {
      CudaKernel &out = module.kernels[kernel->kernel];
      (kernel->variant ? out.variants[*kernel->variant].cubin : out.cubin) = module.cubins.size();
      if (!kernel->variant && !out.variants.empty())
        out.variants.front().cubin = module.cubins.size();
    }
    module.cubins.push_back(std::move(program.cubin));
    ++result.programs;
    result.cacheHits += program.wasCached;
  }
  if (!ok)
    return failure();
  return result;
}

} // namespace ogc::codegen
