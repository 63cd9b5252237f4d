//===- RowState.h - which dimensions of a value follow a symbol -----------===//
#ifndef OGC_ANALYSIS_ROWSTATE_H
#define OGC_ANALYSIS_ROWSTATE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace ogc::rows {

/// A dimension of `outer * n * inner` elements, n the size of the symbol: element i is at position `i / inner % n`. A dimension
/// whose values are all alike has any factor.
struct Factor {
  int64_t outer = 1, inner = 1;
  bool isAny = false;

  bool operator==(const Factor &other) const { return outer == other.outer && inner == other.inner && isAny == other.isAny; }
};

/// The factor that both describe, or nothing.
inline std::optional<Factor> meet(const Factor &a, const Factor &b) {
  if (a.isAny || b.isAny)
    return a.isAny ? b : a;
  return a == b ? std::optional(a) : std::nullopt;
}

/// Of one value: a factor for every dimension whose size follows the symbol. `row` is the dimension along which elements depend
/// on inputs at their own position; a value without one depends on no input that has the symbol.
struct State {
  llvm::SmallVector<std::optional<Factor>> dims;
  int row = -1;

  bool varies() const {
    for (const auto &dim : dims)
      if (dim)
        return true;
    return false;
  }
};

} // namespace ogc::rows

#endif
