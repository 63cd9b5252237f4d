//===- RowDomain.h - the iteration space of a row schedule ----------------===//
#ifndef OGC_PASSES_FUSE_ROWDOMAIN_H
#define OGC_PASSES_FUSE_ROWDOMAIN_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace ogc::fuse {

/// How an operation lies in a row domain.
enum class RowRole {
  None,      ///< does not
  Full,      ///< element-wise over [outer…, inner…]
  Reduction, ///< reduces the inner dimensions of [outer…, inner…]
  Statistic, ///< element-wise over [outer…]: works on reduced values
};

/// The iteration space [outer…, inner…] whose inner dimensions are reduced; one kernel block does one row.
struct RowDomain {
  llvm::SmallVector<int64_t> shape;
  unsigned numOuter = 0;

  /// Rows shorter than this are left to one thread a result.
  static constexpr int64_t minInner = 32;
  /// The same for rows whose elements do not follow each other in memory (a mean over the pixels of a channels-last image):
  /// neighbouring threads then read neighbouring rows, which is the better order unless there are few rows and these are long.
  static constexpr int64_t minStridedInner = 128, maxStridedRows = 16384;
  /// Short rows are worth it when the row goes on with the reduced value (softmax, normalization), which would be several kernels
  /// otherwise; with very many rows a thread a result is faster all the same.
  static constexpr int64_t minChainedInner = 2, maxChainedRows = 65536;

  /// The domain of a reduction with combiners: all reduced loops innermost, results written in the order of the outer loops, rows
  /// long enough.
  /// `isChained`: the row goes on with the reduced value. Failure when `op` is none such.
  static mlir::FailureOr<RowDomain> ofReduction(mlir::linalg::GenericOp op,
                                                llvm::function_ref<bool(const RowDomain &)> isChained);

  int64_t rows() const;  ///< elements of the outer dimensions
  int64_t inner() const; ///< elements of a row

  /// The role of `op` by its loops and result maps.
  RowRole roleOf(mlir::linalg::GenericOp op) const;

  /// True when `reader`, of role `readerRole`, reads through `operand` only elements of its own row of a value made by an
  /// operation of role `valueRole`; `isReshaped` says that reshapes lie between.
  bool readsOwnRow(mlir::OpOperand &operand, RowRole readerRole, RowRole valueRole, bool isReshaped) const;
};

} // namespace ogc::fuse

#endif
