//===- Random.h - a small generator of equal numbers everywhere -----------===//
#ifndef OGC_RUNTIME_DRIVER_RANDOM_H
#define OGC_RUNTIME_DRIVER_RANDOM_H

#include <cmath>
#include <cstdint>

namespace ogc::runtime {

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). The standard library's distributions
/// differ between implementations; these do not.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
  }

  /// In [0, bound); `bound` > 0. The bias is below 2^-32 for the small bounds used here.
  uint64_t below(uint64_t bound) { return next() % bound; }

  /// In (0, 1].
  double uniform() { return (static_cast<double>(next() >> 11) + 1.0) * 0x1p-53; }

  /// Standard normal, by Box and Muller.
  double normal() { return std::sqrt(-2.0 * std::log(uniform())) * std::cos(6.283185307179586 * uniform()); }

private:
  uint64_t state_;
};

} // namespace ogc::runtime

#endif
