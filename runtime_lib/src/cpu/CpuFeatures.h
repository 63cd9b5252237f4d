//===- CpuFeatures.h - does this processor run the kernels? ---------------===//
#ifndef OGC_RUNTIME_CPU_CPU_FEATURES_H
#define OGC_RUNTIME_CPU_CPU_FEATURES_H

#include "runtime_lib/format/Status.h"

#include <string_view>

namespace ogc::runtime {

/// Checks that this machine has every feature of a comma-separated list in LLVM's spelling ("+avx2,+fma"; "-x" entries are
/// ignored). Unsupported names all that are missing.
Status checkCpuFeatures(std::string_view required);

/// The same against the words of the "flags" line of /proc/cpuinfo, for tests.
Status checkCpuFeatures(std::string_view required, std::string_view flags);

} // namespace ogc::runtime

#endif
