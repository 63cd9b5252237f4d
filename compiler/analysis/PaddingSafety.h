//===- PaddingSafety.h - do rows along a named dimension mix? -------------===//
//
// A call with 3 rows may run in the graph for 4, with a row of zeros, when no value of the first three rows depends on the
// fourth. The analysis compares the lowered functions of two sizes of the dimension, operation by operation:
//
// - a dimension belongs to the symbol exactly where its size differs between the two;
// - every operation must keep positions along such a dimension apart: elements at one position are computed from elements at the
//   same position, and from what does not depend on the symbol;
// - constants must be equal, or agree on the positions that both have: a factor computed from the size itself is found this way.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_ANALYSIS_PADDINGSAFETY_H
#define OGC_ANALYSIS_PADDINGSAFETY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace ogc {

struct PaddingSafety {
  /// Where an output holds the rows: `size * inner` elements of dimension `dim`, from the first on.
  struct Cut {
    unsigned output, dim;
    int64_t inner;
  };

  bool isSafe = false;
  std::vector<Cut> cuts;    ///< of a safe symbol; an output without one does not depend on it
  std::string operatorType; ///< where rows mix: "Softmax"; empty where no operator is to blame
  std::string node, reason; ///< its node's name, and what it does
};

/// Decides for `symbol`, whose size is `smallSize` in the one function and `largeSize` in the other; all else is equal. Both
/// functions are in the form after the lower phase, with `onnx.symbols` on their arguments.
PaddingSafety analyzePadding(mlir::func::FuncOp small, mlir::func::FuncOp large, llvm::StringRef symbol, int64_t smallSize,
                             int64_t largeSize);

} // namespace ogc

#endif
