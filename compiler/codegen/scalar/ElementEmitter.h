//===- ElementEmitter.h - scalar IR for one element of a tensor value -----===//
//
// The one meaning of a kernel body: both targets compute elements through this class, so they cannot disagree about an operator.
//
#ifndef OGC_CODEGEN_SCALAR_ELEMENTEMITTER_H
#define OGC_CODEGEN_SCALAR_ELEMENTEMITTER_H

#include "compiler/codegen/scalar/IndexMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include <map>
#include <vector>

namespace ogc::kern {
class MatmulOp;
class ConvOp;
class DepthwiseConvOp;
class AttentionOp;
class RowStatisticsOp;
class MergeStatisticsOp;
class MergeMeansOp;
} // namespace ogc::kern

namespace ogc::codegen {

/// Emits scalar operations (arith, math, scf, memref.load) that compute single elements of the tensor values of one kernel body,
/// by pulling from its buffers: element-wise operations are inlined with their index maps composed, views become index
/// arithmetic, reductions become sequential loops.
///
/// A value that was computed for the same indices in a block around the insertion point is reused. Therefore the code of a kernel
/// must be built from front to back: the insertion point may move forward and into nested blocks, never back before code that
/// already exists.
class ElementEmitter {
public:
  explicit ElementEmitter(mlir::OpBuilder &builder) : builder(builder), math(builder) {}

  /// Elements of `tensor` are loaded from `buffer`: a memref of the same shape, or a flat one in row-major order. A tensor of
  /// `i1` may be bound to bytes.
  void bindBuffer(mlir::Value tensor, mlir::Value buffer);

  /// While bound, every element of `tensor` asked for is `scalar`: for the accumulator of an anchor and for reduced values of a
  /// row. The caller guarantees that only the element at its current position is asked for.
  void bindScalar(mlir::Value tensor, mlir::Value scalar);

  /// The element of `tensor` at exactly these `indices` is `value`; used inside of the block of `value` only. Other elements are
  /// computed as usual, so a wrong guess about what will be asked for costs time, not correctness.
  void bindElement(mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices, mlir::Value value);

  /// The element of `tensor` at `indices` (one `index` value a dimension), of the tensor's element type.
  /// Emits an error on the defining operation and returns a null value when it has no scalar form.
  mlir::Value emit(mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices);

  /// A scalar value of the kernel body (a constant, or computed from scalars); null after an error.
  mlir::Value emitScalar(mlir::Value scalar);

  /// Emits the combining body of a reduction for one element: `inputs` and `accumulators` stand for the block arguments in order,
  /// `loops` for the iteration space (for `linalg.index`). Returns the yielded values; empty after an error.
  llvm::SmallVector<mlir::Value> emitBody(mlir::linalg::LinalgOp op, llvm::ArrayRef<mlir::Value> loops,
                                          llvm::ArrayRef<mlir::Value> inputs, llvm::ArrayRef<mlir::Value> accumulators);

  /// The value of operand `operand` of `op` (its block argument) at the point `loops` of the iteration space; null after an
  /// error.
  mlir::Value emitOperand(mlir::linalg::LinalgOp op, mlir::OpOperand &operand, llvm::ArrayRef<mlir::Value> loops);

  /// The row of the caches that the first new one goes to (`index`, may lie outside of them); null after an error.
  mlir::Value emitPosition(kern::AttentionOp op, mlir::Value batch);

  /// Index arithmetic that shares its values with the emitted code.
  IndexMath &indices() { return math; }

private:
  using Key = std::pair<const void *, std::vector<const void *>>;

  static Key keyOf(mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitUncached(mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitLoad(mlir::Value tensor, mlir::Value buffer, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitStructured(mlir::linalg::LinalgOp op, unsigned result, llvm::ArrayRef<mlir::Value> indices);
  llvm::SmallVector<mlir::Value> emitReduction(mlir::linalg::LinalgOp op, llvm::SmallVector<mlir::Value> loops);
  llvm::SmallVector<mlir::Value> emitAt(mlir::linalg::LinalgOp op, llvm::ArrayRef<mlir::Value> loops,
                                        mlir::ValueRange accumulators);
  mlir::LogicalResult emitBodyOp(mlir::Operation &op, llvm::ArrayRef<mlir::Value> loops, mlir::IRMapping &mapping);
  mlir::Operation *cloneWithRegions(mlir::Operation &op, llvm::ArrayRef<mlir::Value> loops, mlir::IRMapping &mapping);
  mlir::Value resolve(mlir::Value value, mlir::IRMapping &mapping);
  void hoist(llvm::ArrayRef<mlir::Value> indices);

  // Views.cpp
  mlir::Value emitTensorOp(mlir::Operation *op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitExtractSlice(mlir::tensor::ExtractSliceOp op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitInsertSlice(mlir::tensor::InsertSliceOp op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitConcat(mlir::tensor::ConcatOp op, size_t first, size_t last, int64_t offset,
                         llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitPad(mlir::tensor::PadOp op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitConstant(mlir::arith::ConstantOp op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitInsert(mlir::tensor::InsertOp op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitElementwise(mlir::Operation *op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitRegion(mlir::Operation *op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitFromElements(mlir::tensor::FromElementsOp op, size_t first, size_t last, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitIf(mlir::Location loc, mlir::Type type, mlir::Value condition, llvm::function_ref<mlir::Value()> then,
                     llvm::function_ref<mlir::Value()> otherwise);
  mlir::Value emitOffset(mlir::Location loc, mlir::OpFoldResult offset);

  // AnchorElements.cpp
  mlir::Value emitAnchor(mlir::Operation *op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitMatmul(kern::MatmulOp op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitConv(kern::ConvOp op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitDepthwise(kern::DepthwiseConvOp op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitAttention(kern::AttentionOp op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitStatistic(kern::RowStatisticsOp op, bool isMean, llvm::ArrayRef<mlir::Value> indices);
  /// `count` neighbours of the innermost dimension from `indices` on, which is a multiple of `count`, as is the extent.
  llvm::SmallVector<mlir::Value> emitRun(mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices, int64_t count);
  mlir::Value emitMean(kern::MergeMeansOp op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitFactor(kern::MergeStatisticsOp op, llvm::ArrayRef<mlir::Value> indices);
  mlir::Value emitDot(mlir::Location loc, llvm::ArrayRef<int64_t> extents,
                      llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::Value>)> lhs,
                      llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::Value>)> rhs);
  mlir::Value emitPadded(mlir::Location loc, mlir::Value input, llvm::ArrayRef<mlir::Value> indices,
                         llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> dilations,
                         llvm::ArrayRef<int64_t> pads, llvm::ArrayRef<mlir::Value> taps, mlir::Value channel);

  /// Sequential loops over `extents` that carry `inits`; null values after an error of `body`.
  llvm::SmallVector<mlir::Value>
  emitLoops(mlir::Location loc, llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<mlir::Value> inits,
            llvm::function_ref<llvm::SmallVector<mlir::Value>(llvm::ArrayRef<mlir::Value> ivs, mlir::ValueRange carried)> body);

  mlir::OpBuilder &builder;
  IndexMath math;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  llvm::DenseMap<mlir::Value, mlir::Value> scalars;
  /// Elements computed so far, by tensor and indices; entries whose block is left stay unused.
  std::map<Key, llvm::SmallVector<mlir::Value, 1>> elements;
  std::map<Key, llvm::SmallVector<mlir::Value, 1>> boundElements;
  /// Loops that this class made: code may move in front of them.
  llvm::DenseSet<mlir::Operation *> ownLoops;
};

/// The product of two floats of one type, computed in f32 and rounded to that type.
mlir::Value multiplyRounded(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lhs, mlir::Value rhs);

} // namespace ogc::codegen

#endif
