//===- Checksum.cpp - XXH64 -------------------------------------------------===//
#include "runtime_lib/format/Checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ogc::format {

static_assert(std::endian::native == std::endian::little, "bundles are little endian and read in place");

namespace {

template <typename T> T load(const uint8_t *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

} // namespace

void Checksum::consume(const uint8_t *stripe) {
  for (int i = 0; i < 4; ++i)
    lanes_[i] = std::rotl(lanes_[i] + load<uint64_t>(stripe + 8 * i) * kPrime2, 31) * kPrime1;
}

void Checksum::update(const void *data, size_t size) {
  if (size == 0)
    return;
  const auto *bytes = static_cast<const uint8_t *>(data);
  total_ += size;
  if (pendingSize_ != 0) {
    size_t taken = std::min(size, sizeof pending_ - pendingSize_);
    std::memcpy(pending_ + pendingSize_, bytes, taken);
    pendingSize_ += taken;
    bytes += taken;
    size -= taken;
    if (pendingSize_ < sizeof pending_)
      return;
    consume(pending_);
    pendingSize_ = 0;
  }
  for (; size >= sizeof pending_; bytes += sizeof pending_, size -= sizeof pending_)
    consume(bytes);
  std::memcpy(pending_, bytes, size);
  pendingSize_ = size;
}

uint64_t Checksum::value() const {
  uint64_t hash = kPrime5;
  if (total_ >= sizeof pending_) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (uint64_t lane : lanes_)
      hash = (hash ^ std::rotl(lane * kPrime2, 31) * kPrime1) * kPrime1 + kPrime4;
  }
  hash += total_;
  const uint8_t *bytes = pending_, *end = pending_ + pendingSize_;
  for (; end - bytes >= 8; bytes += 8)
    hash = std::rotl(hash ^ std::rotl(load<uint64_t>(bytes) * kPrime2, 31) * kPrime1, 27) * kPrime1 + kPrime4;
  if (end - bytes >= 4) {
    hash = std::rotl(hash ^ load<uint32_t>(bytes) * kPrime1, 23) * kPrime2 + kPrime3;
    bytes += 4;
  }
  for (; bytes < end; ++bytes)
    hash = std::rotl(hash ^ *bytes * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

uint64_t checksum(const void *data, size_t size) {
  Checksum sum;
  sum.update(data, size);
  return sum.value();
}

} // namespace ogc::format
