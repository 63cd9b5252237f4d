//===- Lowering.h - which operators have a lowering -----------------------===//
#ifndef OGC_PASSES_LOWER_LOWERING_H
#define OGC_PASSES_LOWER_LOWERING_H

#include "llvm/ADT/StringRef.h"

namespace ogc {

/// True when ogc-lower-onnx has a lowering of the operator ("Conv", "com.microsoft.MatMulNBits"); some of its attribute values
/// may still be refused.
bool hasLowering(llvm::StringRef opType);

} // namespace ogc

#endif
