//===- Nvrtc.cpp - CUDA C++ text to cubins --------------------------------===//
#include "compiler/codegen/cuda/Nvrtc.h"

#include "compiler/codegen/cuda/DeviceHeaders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <cstdlib>
#include <dlfcn.h>
#include <nvrtc.h>

namespace ogc::codegen {

struct NvrtcSymbols {
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcGetErrorString) errorString = nullptr;
  decltype(&nvrtcCreateProgram) createProgram = nullptr;
  decltype(&nvrtcDestroyProgram) destroyProgram = nullptr;
  decltype(&nvrtcCompileProgram) compileProgram = nullptr;
  decltype(&nvrtcGetCUBINSize) cubinSize = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;
  decltype(&nvrtcGetPTXSize) ptxSize = nullptr;
  decltype(&nvrtcGetPTX) ptx = nullptr;
  decltype(&nvrtcGetProgramLogSize) logSize = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
};

static llvm::Error failed(const llvm::Twine &message) { return llvm::createStringError(llvm::inconvertibleErrorCode(), message); }

/// NVRTC opens its builtins by their bare name, which only finds them on the system's path: once open, they are found by that
/// name.
static void preloadBuiltins(const std::string &folder) {
  std::error_code error;
  if (folder.empty())
    return;
  for (llvm::sys::fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (llvm::sys::path::filename(it->path()).starts_with("libnvrtc-builtins.so"))
      dlopen(it->path().c_str(), RTLD_NOW | RTLD_GLOBAL);
}

/// The library's file names: with the major version of the headers first.
static void *openLibrary(std::string &tried) {
  std::vector<std::string> folders = {OGC_CUDA_DIR "/lib64/", OGC_CUDA_DIR "/lib/"};
  if (const char *home = std::getenv("CUDA_HOME"))
    folders.insert(folders.end(), {std::string(home) + "/lib64/", std::string(home) + "/lib/"});
  folders.push_back("");
  for (const std::string &folder : folders) {
    preloadBuiltins(folder);
    for (const char *name : {"libnvrtc.so.13", "libnvrtc.so"}) {
      if (void *handle = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL))
        return handle;
      tried += "\n  " + folder + name;
    }
  }
  return nullptr;
}

static llvm::Expected<NvrtcSymbols> loadSymbols() {
  std::string tried;
  void *handle = openLibrary(tried);
  if (!handle)
    return failed("NVRTC not found; tried:" + tried);
  NvrtcSymbols symbols;
  std::string missing;
  auto bind = [&](auto &function, const char *name) {
    void *address = dlsym(handle, name);
    if (!address)
      missing += llvm::formatv(" {0}", name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  bind(symbols.version, "nvrtcVersion");
  bind(symbols.errorString, "nvrtcGetErrorString");
  bind(symbols.createProgram, "nvrtcCreateProgram");
  bind(symbols.destroyProgram, "nvrtcDestroyProgram");
  bind(symbols.compileProgram, "nvrtcCompileProgram");
  bind(symbols.cubinSize, "nvrtcGetCUBINSize");
  bind(symbols.cubin, "nvrtcGetCUBIN");
  bind(symbols.ptxSize, "nvrtcGetPTXSize");
  bind(symbols.ptx, "nvrtcGetPTX");
  bind(symbols.logSize, "nvrtcGetProgramLogSize");
  bind(symbols.log, "nvrtcGetProgramLog");
  if (!missing.empty())
    return failed("NVRTC lacks functions:" + missing);
  return symbols;
}

llvm::Expected<const Nvrtc *> Nvrtc::get() {
  static std::string error;
  static const Nvrtc *instance = []() -> const Nvrtc * {
    llvm::Expected<NvrtcSymbols> symbols = loadSymbols();
    if (!symbols) {
      error = llvm::toString(symbols.takeError());
      return nullptr;
    }
    auto *nvrtc = new Nvrtc; // for the rest of the process
    nvrtc->symbols = new NvrtcSymbols(*symbols);
    if (nvrtc->symbols->version(&nvrtc->major, &nvrtc->minor) != NVRTC_SUCCESS) {
      error = "NVRTC does not tell its version";
      return nullptr;
    }
    return nvrtc;
  }();
  if (!instance)
    return failed(error);
  return instance;
}

std::string Nvrtc::version() const { return std::to_string(major) + "." + std::to_string(minor); }

static std::string readLog(const NvrtcSymbols &symbols, nvrtcProgram program) {
  size_t size = 0;
  if (symbols.logSize(program, &size) != NVRTC_SUCCESS || size <= 1)
    return "(no log)";
  std::string log(size, '\0');
  if (symbols.log(program, log.data()) != NVRTC_SUCCESS)
    return "(no log)";
  log.resize(size - 1);
  return log;
}

llvm::Expected<std::vector<char>> Nvrtc::compile(const std::string &name, const std::string &source,
                                                 llvm::ArrayRef<std::string> options, std::string *outPtx) const {
  std::vector<const char *> headerTexts, headerNames, arguments;
  for (const DeviceHeader &header : deviceHeaders()) {
    headerTexts.push_back(header.text);
    headerNames.push_back(header.name);
  }
  for (const std::string &option : options)
    arguments.push_back(option.c_str());
  nvrtcProgram program = nullptr;
  nvrtcResult result = symbols->createProgram(&program, source.c_str(), name.c_str(), int(headerNames.size()), headerTexts.data(),
                                              headerNames.data());
  if (result != NVRTC_SUCCESS)
    return failed(llvm::Twine("nvrtcCreateProgram: ") + symbols->errorString(result));
  llvm::scope_exit destroy([&] { symbols->destroyProgram(&program); });
  result = symbols->compileProgram(program, int(arguments.size()), arguments.data());
  if (result != NVRTC_SUCCESS)
    return failed(llvm::Twine(symbols->errorString(result)) + "\n" + readLog(*symbols, program));
  size_t size = 0;
  result = symbols->cubinSize(program, &size);
  if (result != NVRTC_SUCCESS || size == 0)
    return failed("no machine code for options: " + llvm::join(options, " "));
  std::vector<char> cubin(size);
  result = symbols->cubin(program, cubin.data());
  if (result != NVRTC_SUCCESS)
    return failed(llvm::Twine("nvrtcGetCUBIN: ") + symbols->errorString(result));
  if (outPtx) {
    if (symbols->ptxSize(program, &size) != NVRTC_SUCCESS || size == 0)
      return failed("no PTX for options: " + llvm::join(options, " "));
    outPtx->resize(size);
    result = symbols->ptx(program, outPtx->data());
    if (result != NVRTC_SUCCESS)
      return failed(llvm::Twine("nvrtcGetPTX: ") + symbols->errorString(result));
  }
  return cubin;
}

} // namespace ogc::codegen
