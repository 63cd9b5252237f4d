//===- CpuTarget.h - the processor that kernels are compiled for ----------===//
#ifndef OGC_CODEGEN_CPU_CPUTARGET_H
#define OGC_CODEGEN_CPU_CPUTARGET_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"
#include <cstdint>
#include <string>
#include <utility>

namespace ogc::codegen {

/// Processor name and features in LLVM's spelling, and what the schedules derive from them.
struct CpuTarget {
  std::string cpu;
  /// Comma separated `+feature` and `-feature`, sorted; empty: those of the processor name.
  std::string features;
  /// f32 lanes of a vector register.
  int64_t lanes = 4;
  /// Vector registers.
  int64_t registers = 16;
  bool hasFma = false;
  /// Conversions between f32 and f16 in hardware.
  bool hasF16C = false;

  /// The processor that this program runs on.
  static CpuTarget host();

  /// A processor by name, e.g. `x86-64-v2`, `haswell`, `sapphirerapids` or `host`; failure for an unknown name and
  /// for x86 processors without SSE 4.1.
  static llvm::FailureOr<CpuTarget> named(llvm::StringRef cpu);
};

} // namespace ogc::codegen

#endif
