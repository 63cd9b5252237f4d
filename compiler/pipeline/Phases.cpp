//===- Phases.cpp - the phases of the compiler ----------------------------===//
#include "compiler/pipeline/Phases.h"

namespace ogc {

llvm::StringRef phaseName(Phase phase) {
  switch (phase) {
  case Phase::Import:
    return "import";
  case Phase::Normalize:
    return "normalize";
  case Phase::Specialize:
    return "specialize";
  case Phase::Lower:
    return "lower";
  case Phase::Fuse:
    return "fuse";
  case Phase::Plan:
    return "plan";
  case Phase::Codegen:
    return "codegen";
  case Phase::Bundle:
    return "bundle";
  }
  return "";
}

std::optional<Phase> parsePhase(llvm::StringRef name) {
  for (Phase phase : phases)
    if (phaseName(phase) == name)
      return phase;
  return std::nullopt;
}

} // namespace ogc
