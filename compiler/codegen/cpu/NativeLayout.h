//===- NativeLayout.h - layout changes of constants without generated code ===//
#ifndef OGC_CODEGEN_CPU_NATIVELAYOUT_H
#define OGC_CODEGEN_CPU_NATIVELAYOUT_H

#include "compiler/codegen/cpu/ConstantData.h"
#include "mlir/IR/Block.h"
#include "llvm/ADT/SmallVector.h"

namespace ogc::codegen {

/// Evaluates a region body that only moves elements (transpose, reshape, slice, pad, broadcast, concat) and converts between
/// float types, by copy loops over strides. `inputs` are the bytes of the block arguments. Returns one buffer for each yielded
/// value; failure, without a message, when the body does anything else.
mlir::FailureOr<std::vector<TensorBytes>> evaluateLayout(mlir::Block &body, llvm::ArrayRef<ConstantView> inputs);

/// Copies a box of elements between strides given in elements, converting `from` to `to` (equal, or both floats).
/// False when there is no such conversion.
bool copyStrided(char *to, mlir::Type toType, llvm::ArrayRef<int64_t> toStrides, const char *from, mlir::Type fromType,
                 llvm::ArrayRef<int64_t> fromStrides, llvm::ArrayRef<int64_t> shape);

} // namespace ogc::codegen

#endif
