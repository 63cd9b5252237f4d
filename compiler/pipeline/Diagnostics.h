//===- Diagnostics.h - the text of a problem, for people -------------------===//
#ifndef OGC_PIPELINE_DIAGNOSTICS_H
#define OGC_PIPELINE_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include <string>

namespace ogc {

/// A diagnostic on one line: its text, and its place where that is not in the text already. Names from the model may hold
/// anything: control characters become spaces.
std::string diagnosticText(const mlir::Diagnostic &diagnostic);

} // namespace ogc

#endif
