//===- RowPlan.h - stages of a row kernel ---------------------------------===//
//
// A row kernel walks rows of a domain [rows, width]: first the reductions, stage by stage, then the outputs. Both targets do
//
//   for each row:
//     for each stage:   accumulators start at `neutral`; for each column: `accumulate`; then `finish` (combine partial sums, add
//     the init) for each output:  per column (or once, for a reduced one) emit its element and store it
//
// All elements are pulled through ElementEmitter, so the plan decides speed only, never values.
//
#ifndef OGC_CODEGEN_SCALAR_ROWPLAN_H
#define OGC_CODEGEN_SCALAR_ROWPLAN_H

#include "compiler/codegen/scalar/ElementEmitter.h"
#include "llvm/Support/LogicalResult.h"

namespace ogc::codegen {

/// A structured reduction of a row kernel: its parallel loops are the row, its reduction loops the column.
struct RowReduction {
  mlir::linalg::LinalgOp op;
  /// For each result the associative operation of the body that takes the accumulator, e.g. an `arith.addf`.
  llvm::SmallVector<mlir::Operation *> combiners;
};

/// A tensor over the whole domain that is costly and used by several stages: worth a row of scratch. `stage` computes it first
/// (`stages.size()` is the output stage).
struct RowKept {
  mlir::Value value;
  unsigned stage;
};

/// A yielded value and its position among the results; a reduced value has one element a row.
struct RowOutput {
  mlir::Value value;
  unsigned number;
  bool reduced;
};

struct RowPlan {
  int64_t rows = 0, width = 0;
  /// Reductions that do not depend on each other share a stage (one walk over the row).
  llvm::SmallVector<llvm::SmallVector<RowReduction>> stages;
  llvm::SmallVector<RowKept> kept;
  llvm::SmallVector<RowOutput> outputs;

  /// The plan of a kernel body; failure (without a message) when it has no rows, then `pointwise` is the schedule.
  static mlir::FailureOr<RowPlan> analyze(mlir::Block &body);

  /// Indices of a tensor over the domain, or of a reduced one (`column` is null), at one position.
  static llvm::SmallVector<mlir::Value> indicesAt(IndexMath &math, mlir::Value tensor, int64_t rows, mlir::Value row,
                                                  mlir::Value column);

  /// What the accumulators start from before the first column: the neutral elements of the combiners.
  static llvm::SmallVector<mlir::Value> neutral(mlir::OpBuilder &builder, const RowReduction &reduction);

  /// The accumulators after one more column; empty after an error.
  static llvm::SmallVector<mlir::Value> accumulate(ElementEmitter &emitter, const RowReduction &reduction, mlir::Value row,
                                                   mlir::Value column, llvm::ArrayRef<mlir::Value> accumulators);

  /// `lhs` and `rhs` of result number `result` joined by its combiner.
  static mlir::Value combine(mlir::OpBuilder &builder, const RowReduction &reduction, unsigned result, mlir::Value lhs,
                             mlir::Value rhs);

  /// Combines the accumulators of a whole row with the initial values of the reduction and binds the results in `emitter`.
  static mlir::LogicalResult finish(mlir::OpBuilder &builder, ElementEmitter &emitter, const RowReduction &reduction,
                                    mlir::Value row, llvm::ArrayRef<mlir::Value> accumulators);
};

} // namespace ogc::codegen

#endif
