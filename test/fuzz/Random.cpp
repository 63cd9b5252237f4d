//===- Random.cpp - odd numbers and damaged bytes --------------------------===//
#include "test/fuzz/Random.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ogc::fuzz {

int64_t oddInteger(Random &random, int64_t old) {
  uint64_t bits = static_cast<uint64_t>(old);
  switch (random.below(8)) {
  case 0:
    return static_cast<int64_t>(random.below(12)) - 3;
  case 1:
    return static_cast<int64_t>((uint64_t(1) << random.below(64)) + random.below(3) - 1);
  case 2:
    return static_cast<int64_t>(bits + random.below(5) - 2);
  case 3:
    return static_cast<int64_t>(0 - bits);
  case 4:
    return random.oneIn(2) ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
  case 5:
    return random.oneIn(2) ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int32_t>::min();
  case 6:
    return static_cast<int64_t>(bits * (1 + random.below(1000)));
  default:
    return static_cast<int64_t>(random.next() >> random.below(64));
  }
}

double oddFloat(Random &random, double old) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> odd = {0.0,   -0.0,      1.0,       -1.0,     0.5,       1e-45,       1e-38,
                                   3e38,  -3e38,     1e300,     infinity, -infinity, 1e9,         2147483648.0,
                                   -1e-3, old + 1.0, old * 1e6, -old,     old / 3,   std::nan("")};
  return random.pick(odd);
}

void damageBytes(Random &random, std::string &bytes) {
  for (uint64_t count = 1 + random.below(4); count != 0 && !bytes.empty(); --count) {
    size_t at = random.below(bytes.size()), length = std::min<size_t>(bytes.size() - at, 1 + random.below(16));
    switch (random.below(5)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      break;
    case 1:
      bytes[at] = static_cast<char>(random.next());
      break;
    case 2:
      bytes.erase(at, length);
      break;
    case 3:
      bytes.insert(random.below(bytes.size()), bytes.substr(at, length));
      break;
    default:
      if (random.oneIn(4))
        bytes.resize(at);
      else
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length, static_cast<char>(random.oneIn(2) ? 0xFF : 0));
    }
  }
}

} // namespace ogc::fuzz
