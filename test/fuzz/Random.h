//===- Random.h - the random numbers of the fuzzer -------------------------===//
#ifndef OGC_TEST_FUZZ_RANDOM_H
#define OGC_TEST_FUZZ_RANDOM_H

#include <cstdint>
#include <string>
#include <vector>

namespace ogc::fuzz {

/// SplitMix64: every case has a generator of its own, so that a case can be made again from its seed alone.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  /// A number in [0, limit); 0 where the limit is 0.
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : next() % limit; }
  /// True once in `n` times.
  bool oneIn(uint64_t n) { return below(n) == 0; }
  template <typename T> const T &pick(const std::vector<T> &list) { return list[below(list.size())]; }

private:
  uint64_t state;
};

/// A number of the kind that code forgets: limits, powers of two and their neighbours, small numbers, neighbours of `old`.
int64_t oddInteger(Random &random, int64_t old);
double oddFloat(Random &random, double old);
/// Damages bytes in place: flips, overwrites, removes, repeats, cuts.
void damageBytes(Random &random, std::string &bytes);

} // namespace ogc::fuzz

#endif
