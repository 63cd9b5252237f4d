//===- ProgramLanes.h - neighbouring iterations as vectors ----------------===//
#ifndef OGC_CODEGEN_CPU_PROGRAMLANES_H
#define OGC_CODEGEN_CPU_PROGRAMLANES_H

#include "compiler/dialect/kern/Kern.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"

namespace ogc::codegen {

/// Computes `lanes` neighbouring iterations of a `kern.parallel` at once. That is possible where they do the same steps (loops
/// with common bounds, no branches) and load and store neighbouring elements; loops that sum along another dimension, which no
/// loop vectorizer turns inside out, gain most.
class ProgramLanes {
public:
  /// Tries 64 lanes and fewer, down to `fewest`; `lanes()` is 0 when no number works or nothing is gained.
  ProgramLanes(kern::ParallelOp op, int64_t fewest);
  int64_t lanes() const { return width; }

  /// Emits the iterations [first, first + lanes) at the insertion point; `first` is a multiple of `lanes`. `mapping` maps what is
  /// defined outside.
  void emit(mlir::OpBuilder &builder, mlir::Value first, const mlir::IRMapping &mapping);

private:
  enum class Kind { Uniform, Contiguous, Varying };
  Kind kindOf(mlir::Value value) const;
  bool analyze(mlir::Block &block);
  bool analyzeOp(mlir::Operation &op);
  bool analyzeIndex(mlir::Operation &op);
  void emitBlock(mlir::OpBuilder &builder, mlir::Block &block, mlir::IRMapping &mapping);
  void emitOp(mlir::OpBuilder &builder, mlir::Operation &op, mlir::IRMapping &mapping);
  mlir::Type widened(mlir::Type element) const;
  mlir::Value varying(mlir::OpBuilder &builder, mlir::Value value, mlir::IRMapping &mapping) const;

  kern::ParallelOp op;
  int64_t width = 0;
  bool hasLoop = false;
  llvm::DenseMap<mlir::Value, Kind> kinds; ///< of values that are not uniform
};

} // namespace ogc::codegen

#endif
