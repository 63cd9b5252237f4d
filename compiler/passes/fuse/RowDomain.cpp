//===- RowDomain.cpp - the iteration space of a row schedule --------------===//
#include "compiler/passes/fuse/RowDomain.h"

#include "compiler/analysis/Combiner.h"
#include "compiler/passes/fuse/Grouping.h"

using namespace mlir;

namespace ogc::fuse {

/// The extents of dimensions that are not one.
static SmallVector<int64_t> nonUnit(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result;
  llvm::copy_if(shape, std::back_inserter(result), [](int64_t extent) { return extent != 1; });
  return result;
}

static int64_t product(ArrayRef<int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

int64_t RowDomain::rows() const { return product(ArrayRef(shape).take_front(numOuter)); }
int64_t RowDomain::inner() const { return product(ArrayRef(shape).drop_front(numOuter)); }

FailureOr<RowDomain> RowDomain::ofReduction(linalg::GenericOp op, function_ref<bool(const RowDomain &)> isChained) {
  if (op.getNumReductionLoops() == 0)
    return failure();
  RowDomain domain{op.getStaticLoopRanges(), op.getNumParallelLoops()};
  if (domain.roleOf(op) != RowRole::Reduction)
    return failure();
  bool readsInOrder = llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) { return mapOf(*input).isIdentity(); });
  bool isLong = readsInOrder ? domain.inner() >= minInner : domain.inner() >= minStridedInner && domain.rows() <= maxStridedRows;
  bool mayChain = readsInOrder && domain.inner() >= minChainedInner && domain.rows() <= maxChainedRows;
  if (!isLong && !(mayChain && isChained(domain)))
    return failure();
  return domain;
}

RowRole RowDomain::roleOf(linalg::GenericOp op) const {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  if (op.getNumReductionLoops() == 0) {
    if (!isElementwise(op))
      return RowRole::None;
    if (ranges == shape)
      return RowRole::Full;
    return nonUnit(ranges) == nonUnit(ArrayRef(shape).take_front(numOuter)) ? RowRole::Statistic : RowRole::None;
  }
  if (ranges != shape)
    return RowRole::None;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  for (auto [i, iterator] : llvm::enumerate(iterators))
    if ((i < numOuter) != (iterator == utils::IteratorType::parallel))
      return RowRole::None;
  AffineMap outer = AffineMap::getMultiDimIdentityMap(shape.size(), op.getContext()).getMajorSubMap(numOuter);
  bool writesOuter = llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) { return mapOf(init) == outer; });
  // Without a combiner there is no row kernel, and what follows in the same kernel would reduce the row again for each element.
  bool combines = llvm::all_of(llvm::seq(op.getNumResults()), [&](unsigned i) { return findCombiner(op, i) != nullptr; });
  return writesOuter && combines ? RowRole::Reduction : RowRole::None;
}

bool RowDomain::readsOwnRow(OpOperand &operand, RowRole readerRole, RowRole valueRole, bool isReshaped) const {
  auto reader = cast<linalg::GenericOp>(operand.getOwner());
  AffineMap map = mapOf(operand);
  if (valueRole == RowRole::Full)
    return readerRole != RowRole::Statistic && map.isIdentity() && !isReshaped;

  // A reduced value: the outer loops of extents other than one must be read in order, and nothing else.
  SmallVector<int64_t> ranges = reader.getStaticLoopRanges();
  SmallVector<unsigned> read, wanted;
  for (AffineExpr expr : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      if (ranges[dim.getPosition()] != 1)
        read.push_back(dim.getPosition());
    } else if (!isa<AffineConstantExpr>(expr) || cast<AffineConstantExpr>(expr).getValue() != 0) {
      return false;
    }
  }
  unsigned outerLoops = readerRole == RowRole::Statistic ? ranges.size() : numOuter;
  for (unsigned i = 0; i < outerLoops; ++i)
    if (ranges[i] != 1)
      wanted.push_back(i);
  return read == wanted;
}

} // namespace ogc::fuse
