//===- Folder.h - evaluation of small operators ---------------------------===//
#ifndef OGC_PASSES_SPECIALIZE_FOLDER_H
#define OGC_PASSES_SPECIALIZE_FOLDER_H

#include "compiler/dialect/onnx/OnnxOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ogc::specialize {

/// Largest tensor, in elements, that is folded here.
constexpr int64_t maxFoldedElements = 4096;
/// The same for arithmetic on floats: the scales that shapes are computed from. Larger tensors are weights, and computed by the
/// kernels that would compute them at run time, so that a value does not depend on what else is constant.
constexpr int64_t maxFoldedFloats = 16;

/// The results of an operator with known operands, or nothing when it cannot be folded here. Its result types must be inferred.
std::optional<llvm::SmallVector<mlir::ElementsAttr>> foldOperator(onnx::OnnxOp op);

/// Told of every operator that is folded, and its results, just before these take its place.
using FoldListener = llvm::function_ref<void(mlir::Operation *, llvm::ArrayRef<mlir::ElementsAttr>)>;

/// Infers all types of a function and evaluates its shape arithmetic.
llvm::LogicalResult foldShapes(mlir::func::FuncOp function, FoldListener listener = {});

} // namespace ogc::specialize

#endif
