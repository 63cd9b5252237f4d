//===- Engine.cpp - chooses the driver of a device ------------------------===//
#include "runtime_lib/src/driver/Driver.h"

#include <charconv>

namespace ogc::runtime {

Result<std::shared_ptr<Engine>> createEngine(BundlePtr bundle, const std::string &device, const EngineOptions &options) {
  if (device == "cpu")
    return createCpuEngine(std::move(bundle), options);
  if (device == "cuda")
    return createCudaEngine(std::move(bundle), 0, options);
  int index = 0;
  if (device.starts_with("cuda:")) {
    const char *begin = device.data() + 5, *end = device.data() + device.size();
    if (auto parsed = std::from_chars(begin, end, index); parsed.ec == std::errc() && parsed.ptr == end && index >= 0)
      return createCudaEngine(std::move(bundle), index, options);
  }
  return Status(Code::InvalidArgument, "unknown device '" + device + "', expected 'cpu' or 'cuda:N'");
}

} // namespace ogc::runtime
