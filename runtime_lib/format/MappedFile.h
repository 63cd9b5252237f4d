//===- MappedFile.h - a file mapped for reading ---------------------------===//
#ifndef OGC_FORMAT_MAPPED_FILE_H
#define OGC_FORMAT_MAPPED_FILE_H

#include "runtime_lib/format/Status.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace ogc::format {

/// The bytes of a regular file, mapped read-only. The file must not shrink while it is mapped.
class MappedFile {
public:
  /// Fails with NotFound where the file cannot be opened, and InvalidArgument where it is no regular file. An empty file has no
  /// bytes.
  static Result<std::unique_ptr<MappedFile>> open(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

private:
  MappedFile() = default;

  const std::byte *data_ = nullptr;
  size_t size_ = 0;
};

} // namespace ogc::format

#endif
