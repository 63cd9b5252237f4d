//===- CompileKernels.cpp - all kernels of a bundle to cubins -------------===//
#include "compiler/codegen/cuda/CompileKernels.h"

#include "compiler/codegen/cuda/CudaTypes.h"
#include "compiler/codegen/cuda/DeviceHeaders.h"
#include "compiler/codegen/cuda/Nvrtc.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>
#include <set>
#include <thread>

using namespace mlir;

namespace ogc::codegen {

namespace {

/// Some kernels of one architecture, compiled together.
struct Program {
  std::string name;
  unsigned arch = 0;             ///< index into the options' list
  std::vector<unsigned> kernels; ///< indices into the kernel list
  std::string source;
  std::vector<std::string> options;
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
static void addPrograms(ArrayRef<KernelText> texts, CudaArch arch, unsigned archIndex, std::vector<Program> &programs) {
  unsigned cost = programCost;
  for (auto [i, text] : llvm::enumerate(texts)) {
    if (cost + text.cost > programCost) {
      Program &program = programs.emplace_back();
      program.name = arch.name() + "_" + std::to_string(programs.size() - 1);
      program.arch = archIndex;
      program.options = optionsFor(arch);
      cost = 0;
    }
    cost += text.cost;
    programs.back().kernels.push_back(i);
  }
}

static void compileProgram(Program &program, const Nvrtc &nvrtc, const KernelCache &cache, const std::string &headersHash) {
  std::string key = KernelCache::key({"1", nvrtc.version(), headersHash, llvm::join(program.options, " "), program.source});
  if (std::optional<std::vector<char>> cubin = cache.load(key)) {
    program.cubin = std::move(*cubin);
    program.wasCached = true;
    return;
  }
  llvm::Expected<std::vector<char>> cubin = nvrtc.compile(program.name, program.source, program.options);
  if (!cubin) {
    program.error = llvm::toString(cubin.takeError());
    return;
  }
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
  llvm::raw_fd_ostream os(path, error);
  if (error) {
    llvm::errs() << "warning: " << path << ": " << error.message() << "\n";
    return;
  }
  os << program.source;
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
    for (auto [position, index] : llvm::enumerate(program.kernels)) {
      std::string name = kern::KernelOp(kernels[index]).getSymName().str();
      if (paragraph.ltrim().starts_with(name + "(") || paragraph.contains("of " + name + "\n") ||
          paragraph.ends_with("of " + name))
        owner = position;
    }
    texts[owner] += "\n" + paragraph.str();
  }
  for (auto [index, text] : llvm::zip_equal(program.kernels, texts)) {
    kern::KernelOp kernel = kernels[index];
    if (!text.empty())
      emitError(kernel.getLoc()) << "kernel '" << kernel.getSymName() << "' does not compile for "
                                 << StringRef(program.name).rsplit('_').first << " (ONNX node " << nodeNames(kernel.getLoc())
                                 << "): " << text;
  }
}

FailureOr<CudaModule> compileKernels(ArrayRef<kern::KernelOp> kernels, const CudaOptions &options) {
  CudaModule result;
  std::vector<Program> programs;
  bool ok = true;
  if (kernels.empty()) {
    for (const std::string &name : options.archs)
      result.archs.push_back({name, {}, {}});
    return result;
  }
  Location loc = kern::KernelOp(kernels.front()).getLoc();
  for (auto [archIndex, name] : llvm::enumerate(options.archs)) {
    FailureOr<CudaArch> arch = CudaArch::parse(name);
    CudaArchModule &module = result.archs.emplace_back();
    module.arch = name;
    if (failed(arch))
      return emitError(loc) << "CUDA architecture '" << name << "' is not of the form sm_90";
    std::vector<KernelText> texts;
    for (kern::KernelOp kernel : kernels) {
      FailureOr<KernelText> text = printKernel(kernel, *arch);
      ok &= succeeded(text);
      texts.push_back(succeeded(text) ? std::move(*text) : KernelText());
      module.kernels.push_back({kernel.getSymName().str(), 0, texts.back().launch});
    }
    if (!ok)
      continue;
    size_t first = programs.size();
    addPrograms(texts, *arch, archIndex, programs);
    for (Program &program : MutableArrayRef(programs).drop_front(first)) {
      std::vector<KernelText> parts;
      for (unsigned i : program.kernels)
        parts.push_back(texts[i]);
      program.source = programText(parts);
      if (!options.dumpDir.empty())
        dump(program, options.dumpDir);
    }
  }
  if (!ok)
    return failure();
  if (programs.empty())
    return result;

  llvm::Expected<const Nvrtc *> nvrtc = Nvrtc::get();
  if (!nvrtc)
    return emitError(loc) << llvm::toString(nvrtc.takeError());
  compilePrograms(programs, **nvrtc, options);
  for (Program &program : programs) {
    if (!program.error.empty()) {
      report(program, kernels);
      ok = false;
      continue;
    }
    CudaArchModule &module = result.archs[program.arch];
    for (unsigned i : program.kernels)
      module.kernels[i].cubin = module.cubins.size();
    module.cubins.push_back(std::move(program.cubin));
    ++result.programs;
    result.cacheHits += program.wasCached;
  }
  if (!ok)
    return failure();
  return result;
}

} // namespace ogc::codegen
