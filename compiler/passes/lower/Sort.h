//===- Sort.h - sorted positions, and the positions of what is selected ---===//
#ifndef OGC_PASSES_LOWER_SORT_H
#define OGC_PASSES_LOWER_SORT_H

#include "compiler/passes/lower/Program.h"

namespace ogc::lower {

/// True when item `a` comes before item `b` in every sorted order; items are positions. Items of which neither comes before the
/// other stay in the order of their positions.
using Before = llvm::function_ref<mlir::Value(ProgramBody &, mlir::Value a, mlir::Value b)>;

/// Sorts the positions 0 … length-1 within one group by merging, n log n: afterwards the first `kept` of `order` (from `base`
/// on) are right. `spare` is a second buffer of the same size, not used for at most `fewItems`. Both hold i32.
void mergeSort(ProgramBody &p, mlir::Value base, mlir::Value order, mlir::Value spare, int64_t length, int64_t kept,
               Before before);
/// The same for at most `fewItems` by one thread.
void sortFew(ProgramBody &p, mlir::Value base, mlir::Value order, int64_t length, Before before);
constexpr int64_t fewItems = 32;

/// The order of two elements: NaN counts as larger than every number.
mlir::Value comesBefore(Scalar &s, mlir::Value a, mlir::Value b, bool largest, bool isUnsigned);

/// The order of the lines of `data` along `axis`: i32 [lines, length], of which the first `kept` columns are right.
mlir::Value sortLines(Builder &b, mlir::Value data, int64_t axis, int64_t kept, bool largest, bool isUnsigned);

/// Positions of the elements of `flags` (i1, one dimension) that are set, ascending, then zeros: i64 of the same length; and
/// their number: i64 [1].
struct Selected {
  mlir::Value positions, count;
};
Selected selectSet(Builder &b, mlir::Value flags);

} // namespace ogc::lower

#endif
