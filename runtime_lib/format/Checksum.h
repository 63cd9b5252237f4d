//===- Checksum.h - XXH64 ---------------------------------------------------===//
#ifndef OGC_FORMAT_CHECKSUM_H
#define OGC_FORMAT_CHECKSUM_H

#include <cstddef>
#include <cstdint>

namespace ogc::format {

/// The 64-bit xxHash of a stream of bytes (seed 0), after the algorithm's published description (xxHash specification 0.1.1).
/// Guards against damage, not against forgery.
class Checksum {
public:
  void update(const void *data, size_t size);
  uint64_t value() const;

private:
  void consume(const uint8_t *stripe);

  uint64_t lanes_[4] = {kPrime1 + kPrime2, kPrime2, 0, 0 - kPrime1};
  uint64_t total_ = 0;
  uint8_t pending_[32] = {};
  size_t pendingSize_ = 0;

  static constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87ull, kPrime2 = 0xC2B2AE3D27D4EB4Full, kPrime3 = 0x165667B19E3779F9ull,
                            kPrime4 = 0x85EBCA77C2B2AE63ull, kPrime5 = 0x27D4EB2F165667C5ull;
};

/// The checksum of one range of bytes.
uint64_t checksum(const void *data, size_t size);

} // namespace ogc::format

#endif
