//===- VectorChain.h - stages that each need all of a vector --------------===//
//
// A vector chain computes, for each image (or row) by itself, one vector after the other: sums over the pixels of a channels-last
// image, products of one row with a constant matrix, and element-wise work between them. A stage needs the whole vector before
// it, so that its elements cannot be computed apart; together they are too little work for a kernel each.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_ANALYSIS_VECTORCHAIN_H
#define OGC_ANALYSIS_VECTORCHAIN_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace ogc {

/// An operation that gives one vector an image.
struct VectorStage {
  mlir::Operation *op = nullptr;
  bool isProduct = false; ///< a row times packed weights (kern.matmul, kern.conv); else a reduction over pixels
  int64_t images = 1;
  int64_t length = 0; ///< elements of the result for one image
  int64_t depth = 0;  ///< summands of one element: length of the multiplied vector, or pixels

  mlir::Value input() const { return op->getOperand(0); }
  mlir::Value weights() const { return isProduct ? op->getOperand(1) : mlir::Value(); }
  int64_t weightBytes() const;
};

/// The operation as a stage: a product with as many rows as images, or a reduction of `[images, pixels…, channels]` by an
/// associative operation.
std::optional<VectorStage> vectorStageOf(mlir::Operation *op);

/// A value that is computed element by element from the results of stages.
struct ChainValue {
  mlir::Value value;
  llvm::SmallVector<unsigned> stages; ///< those that it is computed from, ascending
  unsigned number = 0;                ///< of a yielded value: its position among the results

  unsigned lastStage() const { return stages.back(); }
  bool needs(unsigned stage) const { return llvm::is_contained(stages, stage); }
};

/// The body of a kernel region as a vector chain.
struct VectorChain {
  int64_t images = 1;
  llvm::SmallVector<VectorStage> stages; ///< reductions alone, of one length, or with products
  llvm::SmallVector<ChainValue> vectors; ///< what products read of what the chain computes, each value once
  llvm::SmallVector<ChainValue> results; ///< what is yielded
  llvm::SmallVector<int> vectorOf;       ///< for each stage: its input among `vectors`; -1 for what comes from outside

  bool hasProduct() const {
    return llvm::any_of(stages, [](const VectorStage &stage) { return stage.isProduct; });
  }

  /// Failure (without a message) when the body is none.
  static mlir::FailureOr<VectorChain> analyze(mlir::Block &body);
};

} // namespace ogc

#endif
