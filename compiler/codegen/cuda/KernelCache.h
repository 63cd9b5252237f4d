//===- KernelCache.h - compiled programs on disk --------------------------===//
#ifndef OGC_CODEGEN_CUDA_KERNELCACHE_H
#define OGC_CODEGEN_CUDA_KERNELCACHE_H

#include "llvm/ADT/ArrayRef.h"
#include <optional>
#include <string>
#include <vector>

namespace ogc::codegen {

/// A folder of files named by the hash of everything that determines their content. Safe for several processes at once: files
/// appear by renaming. Every problem (an unwritable folder, a damaged file) costs only a compilation and a warning on stderr,
/// never an error.
class KernelCache {
public:
  /// An empty folder name switches the cache off.
  explicit KernelCache(std::string folder) : folder(std::move(folder)) {}

  /// $OGC_CACHE_DIR/kernels, else $HOME/.cache/ogc/kernels; empty when neither variable is set.
  static std::string defaultFolder();

  /// The key of a program: SHA-256 of the parts, each with its length.
  static std::string key(llvm::ArrayRef<std::string> parts);

  std::optional<std::vector<char>> load(const std::string &key) const;
  void store(const std::string &key, llvm::ArrayRef<char> content) const;

private:
  std::string path(const std::string &key) const;
  std::string folder;
};

} // namespace ogc::codegen

#endif
