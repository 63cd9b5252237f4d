//===- RowNorm.h - products whose rows are divided by their spread --------===//
//
// A packed `kern.matmul` with the attributes `ogc.row_norm` ("root_mean_square" or "standard_deviation") and `ogc.epsilon` (f32)
// divides each row of its result by sqrt(s + epsilon), where s is the mean square, or the variance, of its row of the left
// operand.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DIALECT_KERN_ROWNORM_H
#define OGC_DIALECT_KERN_ROWNORM_H

#include "compiler/dialect/kern/Kern.h"

namespace ogc::kern {

struct RowNorm {
  enum Kind { RootMeanSquare = 1, StandardDeviation = 2 };
  Kind kind;
  mlir::FloatAttr epsilon;
};

/// What the rows of the product are divided by, if anything.
std::optional<RowNorm> rowNormOf(MatmulOp op);
void setRowNorm(MatmulOp op, const RowNorm &norm);

/// Both attributes or none, with values that mean something, on a packed product.
llvm::LogicalResult verifyRowNorm(MatmulOp op);

/// True where every target's schedule of a product can divide the rows as it reads them, at less than a kernel that normalizes
/// them costs.
bool canNormalizeRows(MatmulOp op);

/// True for products of more rows whose result may be divided by spreads that another kernel has taken (`kern.row_statistics`),
/// in a type in which this loses no more than what rounding has taken from the rows already.
bool canScaleRows(MatmulOp op);
/// True where every target's schedule of a product can store statistics of the rows that its region computes.
bool canStoreStatistics(MatmulOp op);

} // namespace ogc::kern

#endif
