//===- Phases.h - the phases of the compiler ------------------------------===//
#ifndef OGC_PIPELINE_PHASES_H
#define OGC_PIPELINE_PHASES_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace ogc {

/// The phases in order. `--stop-after`, the IR dumps, the documentation and the test folders use these names.
enum class Phase {
  Import,     // ONNX protobuf → onnx dialect, newest form of each operator
  Normalize,  // operators kept whole or made whole again: attention, layer normalization, GELU
  Specialize, // one function per graph ID, every dimension known, shape chains folded
  Lower,      // onnx → linalg, tensor, arith, math and kern anchors, in the storage precision asked for
  Fuse,       // kernel regions with schedules, constants evaluated, equal regions outlined
  Plan,       // cg graphs: sections, offsets, edges
  Codegen,    // cubins and a shared object
  Bundle,     // the file
};

constexpr Phase phases[] = {Phase::Import, Phase::Normalize, Phase::Specialize, Phase::Lower,
                            Phase::Fuse,   Phase::Plan,      Phase::Codegen,    Phase::Bundle};

llvm::StringRef phaseName(Phase phase);

/// The phase of a name, or nothing.
std::optional<Phase> parsePhase(llvm::StringRef name);

} // namespace ogc

#endif
