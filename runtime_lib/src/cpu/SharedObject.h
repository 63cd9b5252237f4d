//===- SharedObject.h - code loaded from memory ---------------------------===//
#ifndef OGC_RUNTIME_CPU_SHARED_OBJECT_H
#define OGC_RUNTIME_CPU_SHARED_OBJECT_H

#include "runtime_lib/format/Status.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace ogc::runtime {

/// A shared object that lies in no file: written to an anonymous one (memfd) and opened from there.
class SharedObject {
public:
  static Result<std::unique_ptr<SharedObject>> load(std::span<const std::byte> image);
  ~SharedObject();
  SharedObject(const SharedObject &) = delete;
  SharedObject &operator=(const SharedObject &) = delete;

  /// Address of a symbol, or null.
  void *find(const std::string &symbol) const;

private:
  SharedObject() = default;
  void *handle_ = nullptr;
  int fd_ = -1;
};

} // namespace ogc::runtime

#endif
