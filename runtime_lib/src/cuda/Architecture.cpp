//===- Architecture.cpp - which cubins run on which device ----------------===//
#include "runtime_lib/src/cuda/Architecture.h"

#include <charconv>

namespace ogc::cuda {

namespace {

struct Parsed {
  int major = -1, minor = -1;
  char suffix = 0;
};

Parsed parse(std::string_view arch) {
  if (!arch.starts_with("sm_"))
    return {};
  int number = 0;
  const char *end = arch.data() + arch.size();
  auto [rest, error] = std::from_chars(arch.data() + 3, end, number);
  if (error != std::errc() || number < 10 || end - rest > 1)
    return {};
  return {number / 10, number % 10, rest == end ? '\0' : *rest};
}

} // namespace

bool runsOn(std::string_view arch, int major, int minor) {
  Parsed parsed = parse(arch);
  if (parsed.suffix == 'a')
    return parsed.major == major && parsed.minor == minor;
  return parsed.major == major && parsed.minor >= 0 && parsed.minor <= minor && (parsed.suffix == 0 || parsed.suffix == 'f');
}

Result<std::string> chooseArchitecture(const std::vector<std::string> &archs, int major, int minor,
                                       const std::string &deviceName) {
  const std::string *best = nullptr;
  auto rank = [](const std::string &arch) { return 2 * parse(arch).minor + (parse(arch).suffix == 'a'); };
  std::string all;
  for (const std::string &arch : archs) {
    all += (all.empty() ? "" : ", ") + arch;
    if (runsOn(arch, major, minor) && (!best || rank(arch) > rank(*best)))
      best = &arch;
  }
  if (best)
    return *best;
  std::string device = "sm_" + std::to_string(major) + std::to_string(minor) + " (" + deviceName + ")";
  if (archs.empty())
    return Status(Code::Unsupported, "the bundle has no code for GPUs, the device is " + device);
  return Status(Code::Unsupported, "the bundle has code for " + all + ", the device is " + device);
}

} // namespace ogc::cuda
