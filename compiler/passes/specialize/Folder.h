//===- Folder.h - evaluation of small operators ---------------------------===//
#ifndef OGC_PASSES_SPECIALIZE_FOLDER_H
#define OGC_PASSES_SPECIALIZE_FOLDER_H

#include "compiler/dialect/onnx/OnnxOps.h"

namespace ogc::specialize {

/// Largest tensor, in elements, that is folded here.
constexpr int64_t maxFoldedElements = 4096;

/// The results of an operator with known operands, or nothing when it cannot be folded here. Its result types must be inferred.
std::optional<llvm::SmallVector<mlir::ElementsAttr>> foldOperator(onnx::OnnxOp op);

} // namespace ogc::specialize

#endif
