//===- IndexMath.h - folded and shared index arithmetic -------------------===//
#ifndef OGC_CODEGEN_SCALAR_INDEXMATH_H
#define OGC_CODEGEN_SCALAR_INDEXMATH_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <tuple>

namespace ogc::codegen {

/// True if `value` is defined in the block of the insertion point or in a block around it. While a kernel is built from front to
/// back this means that it dominates the insertion point.
bool isVisible(mlir::OpBuilder &builder, mlir::Value value);

/// The last of `candidates` that is visible, or null; forgets those behind it, which are of branches that have been left.
mlir::Value visibleAmong(mlir::OpBuilder &builder, llvm::SmallVectorImpl<mlir::Value> &candidates);

/// Arithmetic on `index` values: constants are folded, equal operations that are still visible are shared, and splitting undoes
/// an earlier joining of the same extents. All values are non-negative, so division is unsigned.
class IndexMath {
public:
  explicit IndexMath(mlir::OpBuilder &builder) : builder(builder) {}

  mlir::Value constant(mlir::Location loc, int64_t value);
  mlir::Value add(mlir::Location loc, mlir::Value lhs, mlir::Value rhs);
  mlir::Value sub(mlir::Location loc, mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(mlir::Location loc, mlir::Value lhs, mlir::Value rhs);
  mlir::Value div(mlir::Location loc, mlir::Value lhs, mlir::Value rhs);
  mlir::Value rem(mlir::Location loc, mlir::Value lhs, mlir::Value rhs);
  mlir::Value add(mlir::Location loc, mlir::Value lhs, int64_t rhs) { return add(loc, lhs, constant(loc, rhs)); }
  mlir::Value sub(mlir::Location loc, mlir::Value lhs, int64_t rhs) { return sub(loc, lhs, constant(loc, rhs)); }
  mlir::Value mul(mlir::Location loc, mlir::Value lhs, int64_t rhs) { return mul(loc, lhs, constant(loc, rhs)); }
  mlir::Value div(mlir::Location loc, mlir::Value lhs, int64_t rhs) { return div(loc, lhs, constant(loc, rhs)); }
  mlir::Value rem(mlir::Location loc, mlir::Value lhs, int64_t rhs) { return rem(loc, lhs, constant(loc, rhs)); }

  /// `lhs < rhs`, unsigned: false for an index that was shifted below zero. Of type i1, folded for constants.
  mlir::Value lessThan(mlir::Location loc, mlir::Value lhs, int64_t rhs);

  /// The affine expression over `dims`; floordiv and mod of something that may be negative round down.
  mlir::Value apply(mlir::Location loc, mlir::AffineExpr expr, llvm::ArrayRef<mlir::Value> dims);

  /// Row-major position of `indices` in a box of `extents`.
  mlir::Value linearize(mlir::Location loc, llvm::ArrayRef<mlir::Value> indices, llvm::ArrayRef<int64_t> extents);

  /// Inverse of `linearize`; unit extents get the constant 0.
  llvm::SmallVector<mlir::Value> delinearize(mlir::Location loc, mlir::Value position, llvm::ArrayRef<int64_t> extents);

  static std::optional<int64_t> constantValue(mlir::Value value);

private:
  enum class Kind { Constant, Add, Sub, Mul, Div, Rem };
  using Key = std::tuple<unsigned, const void *, const void *>;

  mlir::Value shared(Kind kind, mlir::Location loc, mlir::Value lhs, mlir::Value rhs);
  mlir::Value applyBinary(mlir::Location loc, mlir::AffineBinaryOpExpr expr, llvm::ArrayRef<mlir::Value> dims);
  void splitRaw(mlir::Location loc, mlir::Value position, llvm::ArrayRef<int64_t> extents,
                llvm::MutableArrayRef<mlir::Value> out);

  /// One index with the extent that it runs over.
  struct Part {
    mlir::Value index;
    int64_t extent;
  };
  /// Where a value came from when it is one digit of a split.
  struct Digit {
    mlir::Value whole;
    unsigned split, place, places;
    int64_t extent;
  };

  static int64_t sizeOf(llvm::ArrayRef<Part> parts);
  void joinDigits(llvm::SmallVectorImpl<Part> &parts);

  mlir::OpBuilder &builder;
  llvm::DenseMap<Key, llvm::SmallVector<mlir::Value, 1>> cache;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Part>> joined;
  llvm::DenseMap<mlir::Value, Digit> digits;
  unsigned splits = 0;
};

} // namespace ogc::codegen

#endif
