//===- Combiner.h - reductions that may be split into parts ---------------===//
#ifndef OGC_ANALYSIS_COMBINER_H
#define OGC_ANALYSIS_COMBINER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace ogc {

/// The operation of a reduction's body that joins the accumulator of result `position` with an element: binary, with a known
/// neutral element, and yielded directly. Null when the body is not of this form: its elements are then taken one by one.
mlir::Operation *findCombiner(mlir::linalg::LinalgOp op, unsigned position);

} // namespace ogc

#endif
