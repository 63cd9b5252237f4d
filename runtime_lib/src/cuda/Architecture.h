//===- Architecture.h - which cubins run on which device ------------------===//
#ifndef OGC_RUNTIME_CUDA_ARCHITECTURE_H
#define OGC_RUNTIME_CUDA_ARCHITECTURE_H

#include "runtime_lib/format/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace ogc::cuda {

/// True where a cubin for `arch` ("sm_90", "sm_90a", "sm_120f") runs on compute capability major.minor: the same major and no
/// higher a minor number; with the suffix a, exactly that device.
bool runsOn(std::string_view arch, int major, int minor);

/// The best of `archs` for a device: one with the suffix a first, then the highest minor number. Unsupported, naming both sides,
/// where none runs.
Result<std::string> chooseArchitecture(const std::vector<std::string> &archs, int major, int minor,
                                       const std::string &deviceName);

} // namespace ogc::cuda

#endif
