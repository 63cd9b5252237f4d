//===- ScatterElements.h - tensor.scatter, element by element -------------===//
//
// A scatter in the form of the lowering: `indices` is [count, depth] and names positions along the first `depth` dimensions of
// the destination, `source` is [count, the other dimensions]. Unlike in the tensor dialect nothing is undefined here: an update
// outside the destination is ignored, and the last of several updates of one element stays.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_CODEGEN_SCALAR_SCATTERELEMENTS_H
#define OGC_CODEGEN_SCALAR_SCATTERELEMENTS_H

#include "compiler/codegen/scalar/ElementEmitter.h"
#include "compiler/codegen/scalar/ResultBuffer.h"

namespace ogc::codegen {

/// The element of the result at `indices`, by looking at all updates; null after an error.
mlir::Value emitScatter(ElementEmitter &emitter, mlir::OpBuilder &builder, mlir::tensor::ScatterOp op,
                        llvm::ArrayRef<mlir::Value> indices);

/// Where the element of the source at `position` goes.
struct ScatterTarget {
  llvm::SmallVector<mlir::Value> indices; ///< in the destination; empty after an error
  mlir::Value isValid;                    ///< i1: inside the destination, and no later update replaces it
};
ScatterTarget emitScatterTarget(ElementEmitter &emitter, mlir::OpBuilder &builder, mlir::tensor::ScatterOp op,
                                llvm::ArrayRef<mlir::Value> position);

/// The scatter that the kernel does in place: only the updated elements are written. Null when it computes its result otherwise.
mlir::tensor::ScatterOp inPlaceScatter(kern::KernelOp kernel);

} // namespace ogc::codegen

#endif
