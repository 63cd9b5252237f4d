//===- KernelCache.cpp - compiled programs on disk ------------------------===//
#include "compiler/codegen/cuda/KernelCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

namespace ogc::codegen {

/// A file is a line `ogc-cubin SHA256`, the hash of what follows it.
static constexpr llvm::StringLiteral magic = "ogc-cubin ";

static std::string hash(llvm::StringRef text) {
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), /*LowerCase=*/true);
}

std::string KernelCache::defaultFolder() {
  if (const char *folder = std::getenv("OGC_CACHE_DIR"); folder && *folder)
    return std::string(folder) + "/kernels";
  if (const char *home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/ogc/kernels";
  return "";
}

std::string KernelCache::key(llvm::ArrayRef<std::string> parts) {
  std::string all;
  for (const std::string &part : parts)
    all += std::to_string(part.size()) + ":" + part;
  return hash(all);
}

std::string KernelCache::path(const std::string &key) const { return folder + "/" + key + ".cubin"; }

std::optional<std::vector<char>> KernelCache::load(const std::string &key) const {
  if (folder.empty())
    return std::nullopt;
  auto file = llvm::MemoryBuffer::getFile(path(key), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt; // not there yet
  llvm::StringRef content = (*file)->getBuffer();
  auto [line, body] = content.split('\n');
  if (!line.consume_front(magic) || line != hash(body)) {
    llvm::errs() << "warning: damaged cache entry ignored: " + path(key) + "\n";
    return std::nullopt;
  }
  return std::vector<char>(body.begin(), body.end());
}

void KernelCache::store(const std::string &key, llvm::ArrayRef<char> content) const {
  if (folder.empty())
    return;
  auto warn = [&](const std::string &why) {
    llvm::errs() << "warning: kernel cache not written: " + path(key) + ": " + why + "\n";
  };
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return warn(error.message());
  int descriptor = -1;
  llvm::SmallString<128> temporary;
  if (std::error_code error = llvm::sys::fs::createUniqueFile(path(key) + ".%%%%%%%%.tmp", descriptor, temporary))
    return warn(error.message());
  llvm::StringRef body(content.data(), content.size());
  {
    llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
    os << magic << hash(body) << '\n' << body;
    os.close();
    if (os.has_error()) {
      warn(os.error().message());
      os.clear_error();
      llvm::sys::fs::remove(temporary);
      return;
    }
  }
  if (std::error_code error = llvm::sys::fs::rename(temporary, path(key))) {
    warn(error.message());
    llvm::sys::fs::remove(temporary);
  }
}

} // namespace ogc::codegen
