//===- SharedObject.cpp - code loaded from memory -------------------------===//
#include "runtime_lib/src/cpu/SharedObject.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ogc::runtime {

namespace {

Status systemError(const char *what) { return Status(Code::Internal, std::string(what) + ": " + std::strerror(errno)); }

Status writeAll(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return systemError("cannot write the shared object to memory");
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return Status();
}

} // namespace

Result<std::unique_ptr<SharedObject>> SharedObject::load(std::span<const std::byte> image) {
  int fd = memfd_create("ogc-cpu-kernels", MFD_CLOEXEC);
  if (fd < 0)
    return systemError("cannot create memory for the shared object");
  std::unique_ptr<SharedObject> object(new SharedObject);
  object->fd_ = fd;
  OGC_RETURN_IF_ERROR(writeAll(fd, image));
  // The loader takes an object whose name it has loaded already for the same. So the file stays open as long as the object is
  // loaded, and no other bundle gets its number, which is its name.
  object->handle_ = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (const char *reason = object->handle_ ? nullptr : dlerror(); !object->handle_)
    return Status(Code::Unsupported, std::string("cannot load the cpu kernels: ") + (reason ? reason : "?"));
  return object;
}

SharedObject::~SharedObject() {
  if (handle_)
    dlclose(handle_);
  if (fd_ >= 0)
    close(fd_);
}

void *SharedObject::find(const std::string &symbol) const { return dlsym(handle_, symbol.c_str()); }

} // namespace ogc::runtime
