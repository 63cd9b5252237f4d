//===- ConstantOps.h - operations that are evaluated at compile time ------===//
#ifndef OGC_PASSES_FUSE_CONSTANTOPS_H
#define OGC_PASSES_FUSE_CONSTANTOPS_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace ogc::fuse {

/// The operations of a block that are computed from constants only.
class ConstantOps {
public:
  explicit ConstantOps(mlir::Block &block);

  bool contains(mlir::Value value) const { return value.getDefiningOp() && ops.contains(value.getDefiningOp()); }

  /// `value`, which is constant, or a copy of its computation before the insertion point when that lies above it.
  static mlir::Value hoist(mlir::OpBuilder &builder, mlir::Value value);

  /// The constants, of more than one element, that the constant `value` is computed from.
  static llvm::SetVector<mlir::Attribute> rootsOf(mlir::Value value);

private:
  llvm::DenseSet<mlir::Operation *> ops;
};

} // namespace ogc::fuse

#endif
