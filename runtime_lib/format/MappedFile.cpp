//===- MappedFile.cpp - a file mapped for reading -------------------------===//
#include "runtime_lib/format/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ogc::format {

namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
};

Status systemError(Code code, const std::string &path) {
  return Status(code, "cannot open '" + path + "': " + std::strerror(errno));
}

} // namespace

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string &path) {
  // O_NONBLOCK: a FIFO without a writer must not hang the open; it is refused just below.
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0)
    return systemError(Code::NotFound, path);
  struct stat info;
  if (fstat(file.fd, &info) != 0)
    return systemError(Code::NotFound, path);
  if (!S_ISREG(info.st_mode))
    return Status(Code::InvalidArgument, "cannot open '" + path + "': not a regular file");
  std::unique_ptr<MappedFile> mapped(new MappedFile);
  mapped->size_ = static_cast<size_t>(info.st_size);
  if (mapped->size_ == 0)
    return mapped;
  void *data = mmap(nullptr, mapped->size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) {
    mapped->size_ = 0;
    return systemError(Code::OutOfMemory, path);
  }
  mapped->data_ = static_cast<const std::byte *>(data);
  return mapped;
}

MappedFile::~MappedFile() {
  if (data_)
    munmap(const_cast<std::byte *>(data_), size_);
}

} // namespace ogc::format
