//===- Match.h - small matchers over the onnx dialect ---------------------===//
#ifndef OGC_PASSES_NORMALIZE_MATCH_H
#define OGC_PASSES_NORMALIZE_MATCH_H

#include "compiler/dialect/onnx/OnnxOps.h"
#include "mlir/IR/PatternMatch.h"

namespace ogc::normalize {

/// The operator `type` that makes a value, or null.
mlir::Operation *producer(mlir::Value value, llvm::StringRef type);
/// The same when the value has no other user.
mlir::Operation *onlyProducer(mlir::Value value, llvm::StringRef type);

/// The value of a float constant with one element.
std::optional<double> scalarOf(mlir::Value value);
/// True when a value is a float scalar near `expected`; how near depends on the digits of its element type.
bool isScalarNear(mlir::Value value, double expected);
/// True when two numbers agree as far as constants of the given element type can tell.
bool isNear(double a, double b, mlir::Type element);

/// The operands of a commutative operator of two operands, where `second` is such that `test(second)`; null when there are none.
std::pair<mlir::Value, mlir::Value> splitOperands(mlir::Operation *op, llvm::function_ref<bool(mlir::Value)> test);

/// A product: scalar constants multiplied, and the other factors. Goes through single-use Mul, and Div by a scalar.
struct Product {
  double scale = 1.0;
  llvm::SmallVector<mlir::Value> factors;
};
Product factorize(mlir::Operation *root);

/// Static ranked type, or null.
mlir::RankedTensorType staticType(mlir::Value value);
/// True when a reduction over the last axis alone, with the axis kept.
bool reducesLastAxis(mlir::Operation *op);

/// Builds an operator with the schema's defaults and inferred types before the rewriter's insertion point. Null when the operands
/// do not fit; an error is emitted then.
mlir::Value build(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef opType, mlir::ValueRange operands,
                  llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
/// Reshape to a static shape; the value itself when it has it.
mlir::Value reshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> shape);
mlir::Value transpose(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> perm);

/// Applies patterns to a function until nothing changes.
mlir::LogicalResult applyTo(mlir::Operation *function, mlir::RewritePatternSet patterns);

} // namespace ogc::normalize

#endif
