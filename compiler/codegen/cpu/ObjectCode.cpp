//===- ObjectCode.cpp - LLVM IR to objects and a shared object ------------===//
#include "compiler/codegen/cpu/LibmCalls.h"
#include "compiler/codegen/cpu/LowerToLlvm.h"

#include "lld/Common/Driver.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/IR/Verifier.h"
#include "llvm/InterfaceStub/ELFObjHandler.h"
#include "llvm/InterfaceStub/IFSStub.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <mutex>

LLD_HAS_DRIVER(elf)

namespace ogc::codegen {

static std::unique_ptr<llvm::TargetMachine> createMachine(const CpuTarget &target, Effort effort, std::string &error) {
  llvm::Triple triple(llvm::sys::getProcessTriple());
  const llvm::Target *native = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!native)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  std::unique_ptr<llvm::TargetMachine> machine(
      native->createTargetMachine(triple, target.cpu, target.features, options, llvm::Reloc::PIC_, std::nullopt,
                                  effort == Effort::Small ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::Default));
  if (!machine)
    error = "no code generator for " + target.cpu;
  return machine;
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine, Effort effort) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.LoopInterleaving = tuning.LoopUnrolling = effort != Effort::Small;
  tuning.SLPVectorization = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  // LLVM 22: SROA behind the loop vectorizer can join the stores of two loops into one value that is computed before its operands
  // are loaded. What it is good for was done before the vectorizer already.
  llvm::PassInstrumentationCallbacks callbacks;
  bool vectorized = false;
  callbacks.registerShouldRunOptionalPassCallback([&](llvm::StringRef pass, llvm::Any) {
    vectorized |= pass == "LoopVectorizePass";
    return !(vectorized && pass == "SROAPass");
  });
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  builder.buildPerModuleDefaultPipeline(effort == Effort::Thorough ? llvm::OptimizationLevel::O3 : llvm::OptimizationLevel::O1)
      .run(module, modules);
}

mlir::FailureOr<llvm::SmallVector<char, 0>> compileObject(LlvmModule &module, const CpuTarget &target, Effort effort,
                                                          std::string &error) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(target, effort, error);
  if (!machine)
    return mlir::failure();
  module.module->setDataLayout(machine->createDataLayout());
  module.module->setTargetTriple(machine->getTargetTriple());
  optimize(*module.module, *machine, effort);
  // Wrong numbers are worse than none: an optimizer's mistake must not reach the code generator.
  std::string broken;
  llvm::raw_string_ostream brokenStream(broken);
  if (llvm::verifyModule(*module.module, &brokenStream)) {
    error = "the optimizer left invalid code: " + llvm::StringRef(broken).take_until([](char c) { return c == '\n'; }).str();
    return mlir::failure();
  }
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    error = "no object emission for " + target.cpu;
    return mlir::failure();
  }
  passes.run(*module.module);
  return object;
}

namespace {

/// A folder that disappears with its files. lld reads and writes files by name only, and names its output from it.
struct TemporaryFolder {
  llvm::SmallString<128> path;
  std::vector<std::string> files;

  bool create() { return !llvm::sys::fs::createUniqueDirectory("ogc-cpu", path); }
  std::string add(llvm::StringRef name) {
    files.push_back((path + "/" + name).str());
    return files.back();
  }
  ~TemporaryFolder() {
    for (const std::string &file : files)
      (void)llvm::sys::fs::remove(file);
    if (!path.empty())
      (void)llvm::sys::fs::remove(path);
  }
};

} // namespace

/// Writes a stand-in of the C library's mathematical part that has names only. Kernels linked with it ask for libm.so.6 when they
/// call it (with f64 alone), without the symbol versions of this machine's library, so that older ones serve too.
static bool writeLibmStub(llvm::StringRef path, std::string &error) {
  llvm::Triple triple(llvm::sys::getProcessTriple());
  llvm::ifs::IFSStub stub;
  stub.SoName = "libm.so.6";
  stub.Target.Arch = triple.isAArch64() ? llvm::ELF::EM_AARCH64 : llvm::ELF::EM_X86_64;
  stub.Target.BitWidth = llvm::ifs::IFSBitWidthType::IFS64;
  stub.Target.Endianness = llvm::ifs::IFSEndiannessType::Little;
  for (llvm::StringRef name : libmFunctions()) {
    llvm::ifs::IFSSymbol symbol(name.str());
    symbol.Type = llvm::ifs::IFSSymbolType::Func;
    symbol.Undefined = false;
    symbol.Weak = false;
    stub.Symbols.push_back(symbol);
  }
  if (llvm::Error failed = llvm::ifs::writeBinaryStub(path, stub)) {
    error = "cannot write a stub for the linker: " + llvm::toString(std::move(failed));
    return false;
  }
  return true;
}

mlir::FailureOr<std::vector<char>> linkShared(llvm::ArrayRef<llvm::SmallVector<char, 0>> objects, std::string &error) {
  TemporaryFolder folder;
  if (!folder.create()) {
    error = "cannot create a temporary folder for the linker";
    return mlir::failure();
  }
  std::vector<std::string> inputs;
  for (auto [number, object] : llvm::enumerate(objects)) {
    inputs.push_back(folder.add(std::to_string(number) + ".o"));
    std::error_code failed;
    llvm::raw_fd_ostream file(inputs.back(), failed);
    if (!failed)
      file.write(object.data(), object.size());
    file.close();
    if (failed || file.has_error()) {
      file.clear_error();
      error = "cannot write " + inputs.back();
      return mlir::failure();
    }
  }
  std::string output = folder.add("kernels.so"), libm = folder.add("libm.so");
  if (!writeLibmStub(libm, error))
    return mlir::failure();
  std::vector<const char *> arguments{"ld.lld",      "-shared", "-z",         "defs", "--build-id=none",
                                      "--threads=1", "-soname", "kernels.so", "-o",   output.c_str()};
  for (const std::string &input : inputs)
    arguments.push_back(input.c_str());
  arguments.insert(arguments.end(), {"--as-needed", libm.c_str()});
  std::string messages;
  {
    static std::mutex linker; // lld keeps global state
    std::lock_guard<std::mutex> lock(linker);
    llvm::raw_string_ostream stream(messages);
    lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
    if (result.retCode != 0) {
      error = "linking the cpu kernels failed: " + messages;
      return mlir::failure();
    }
  }
  auto buffer = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    error = "cannot read " + output;
    return mlir::failure();
  }
  return std::vector<char>((*buffer)->getBufferStart(), (*buffer)->getBufferEnd());
}

} // namespace ogc::codegen
