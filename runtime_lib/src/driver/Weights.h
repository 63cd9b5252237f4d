//===- Weights.h - where the bytes of the weights section come from -------===//
#ifndef OGC_RUNTIME_DRIVER_WEIGHTS_H
#define OGC_RUNTIME_DRIVER_WEIGHTS_H

#include "runtime_lib/src/driver/Driver.h"

#include <memory>
#include <span>
#include <vector>

namespace ogc::runtime {

/// The bytes of a weights section on the host: mapped from the bundle or a second file, or made up. Keeps its source alive.
class HostWeights {
public:
  /// Finds the weights of `bundle` after `options`. FailedPrecondition where there are none, DataLoss where a file does not match
  /// the bundle's checksum.
  static Result<HostWeights> find(const BundlePtr &bundle, const EngineOptions &options);

  /// Aligned to 4096.
  std::span<const std::byte> bytes() const { return bytes_; }

private:
  BundlePtr bundle_;
  std::unique_ptr<format::MappedFile> file_;
  std::unique_ptr<std::byte[], void (*)(std::byte *)> made_{nullptr, nullptr};
  std::span<const std::byte> bytes_;
};

/// Fills the float weights of `manifest` with numbers of the magnitude 1/sqrt(fan-in), the others with zero. The same for every
/// device.
void fillRandomWeights(const fb::Manifest &manifest, std::span<std::byte> bytes, uint64_t seed);

} // namespace ogc::runtime

#endif
