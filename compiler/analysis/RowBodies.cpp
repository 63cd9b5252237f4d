//===- RowBodies.cpp - bodies and constants that hold for every size ------===//
#include "compiler/analysis/RowFlow.h"

#include "compiler/analysis/RowIndices.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace ogc::rows {
namespace {

/// The elements of a constant, each as its bytes.
class Elements {
public:
  explicit Elements(Attribute value) {
    if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
      isSplat = dense.isSplat();
      if (dense.getElementType().isInteger(1)) { // packed into bits
        for (bool bit : dense.getValues<bool>())
          bits.push_back(bit);
        bytes = bits;
        isSplat = false;
      } else {
        bytes = dense.getRawData();
      }
      count = isSplat ? 1 : dense.getNumElements();
    } else if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
      if (AsmResourceBlob *blob = resource.getRawHandle().getBlob()) {
        bytes = blob->getData();
        count = cast<ShapedType>(resource.getType()).getNumElements();
      }
    }
  }

  bool isKnown() const { return count > 0 && bytes.size() % count == 0; }
  bool isOneValue() const { return isSplat; }
  StringRef at(int64_t index) const {
    size_t width = bytes.size() / count;
    return {bytes.data() + (isSplat ? 0 : index) * width, width};
  }

private:
  ArrayRef<char> bytes;
  SmallVector<char> bits;
  int64_t count = 0;
  bool isSplat = false;
};

/// True when the constants agree at every position that the smaller one has.
bool agree(const Elements &small, const Elements &large, ArrayRef<int64_t> shape, ArrayRef<int64_t> largeShape) {
  int64_t count = ShapedType::getNumElements(shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, other = 0, stride = 1;
    for (size_t dim = shape.size(); dim-- > 0;) {
      other += rest % shape[dim] * stride;
      stride *= largeShape[dim];
      rest /= shape[dim];
    }
    if (small.at(i) != large.at(other))
      return false;
  }
  return true;
}

} // namespace

LogicalResult RowFlow::visitConstant(arith::ConstantOp a, arith::ConstantOp b) {
  if (a.getValue() == b.getValue())
    return define(a, b.getResult(), {});
  auto type = dyn_cast<RankedTensorType>(a.getType()), largeType = dyn_cast<RankedTensorType>(b.getType());
  Elements small(a.getValue()), large(b.getValue());
  if (!type || !largeType || type.getRank() != largeType.getRank() || !small.isKnown() || !large.isKnown())
    return fail("computes with its size");
  State state;
  for (auto [size, largeSizeOfDim] : llvm::zip_equal(type.getShape(), largeType.getShape())) {
    std::optional<Factor> &factor = state.dims.emplace_back();
    if (size == largeSizeOfDim)
      continue;
    if (size > largeSizeOfDim || size % smallSize)
      return fail("computes with its size");
    factor = Factor{1, size / smallSize, small.isOneValue() && large.isOneValue()};
  }
  if (!agree(small, large, type.getShape(), largeType.getShape()))
    return fail("computes with its size");
  return define(a, b.getResult(), state);
}

/// Compares the bodies of two loop nests from their results down, so that it does not matter where equal constants were merged.
class RowFlow::BodyMatcher {
public:
  BodyMatcher(RowFlow &flow, linalg::LinalgOp a, linalg::LinalgOp b, Nest &nest) : flow(flow), a(a), b(b), nest(nest) {
    SmallVector<int64_t> ranges = a.getStaticLoopRanges(), largeRanges = b.getStaticLoopRanges();
    for (unsigned loop = 0; loop < ranges.size(); ++loop)
      if (ranges[loop] != largeRanges[loop])
        varying.push_back(loop);
  }

  LogicalResult match(Value value, Value other) {
    if (!known.insert({value, other}).second)
      return success();
    if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == a.getBlock()) {
      auto pair = dyn_cast<BlockArgument>(other);
      bool isSame = pair && pair.getOwner() == b.getBlock() && pair.getArgNumber() == argument.getArgNumber();
      return isSame ? success() : differs();
    }
    Operation *op = value.getDefiningOp(), *pair = other.getDefiningOp();
    if (!op || !pair || op->getBlock() != a.getBlock())
      return matchOuter(value, other);
    if (op->getName() != pair->getName() || op->getNumRegions() || op->getResultTypes() != pair->getResultTypes() ||
        op->getNumOperands() != pair->getNumOperands())
      return differs();
    if (auto read = dyn_cast<tensor::ExtractOp>(op))
      return matchRead(read, cast<tensor::ExtractOp>(pair));
    if (op->getAttrDictionary() != pair->getAttrDictionary())
      return isa<arith::ConstantOp>(op) ? flow.fail("computes with its size") : differs();
    if (auto index = dyn_cast<linalg::IndexOp>(op))
      nest.indexed.insert(index.getDim());
    for (auto [operand, otherOperand] : llvm::zip_equal(op->getOperands(), pair->getOperands()))
      if (failed(match(operand, otherOperand)))
        return failure();
    return success();
  }

private:
  /// A value from outside: only constants have not been seen before.
  LogicalResult matchOuter(Value value, Value other) {
    auto constant = value.getDefiningOp<arith::ConstantOp>(), pair = other.getDefiningOp<arith::ConstantOp>();
    if (constant && pair && failed(flow.visitConstant(constant, pair)))
      return failure();
    auto state = flow.states.find(value);
    return state != flow.states.end() && flow.counterpart(value) == other && !state->second.varies() ? success() : differs();
  }

  LogicalResult differs() { return flow.fail("is another computation for another size"); }

  /// Along a dimension that follows the symbol, the index must be that of a loop, whatever computes it; elsewhere it may be
  /// anything that is the same for both sizes.
  LogicalResult matchRead(tensor::ExtractOp read, tensor::ExtractOp other) {
    auto constant = read.getTensor().getDefiningOp<arith::ConstantOp>(),
         pair = other.getTensor().getDefiningOp<arith::ConstantOp>();
    if (constant && pair && failed(flow.visitConstant(constant, pair)))
      return failure();
    auto found = flow.states.find(read.getTensor());
    if (found == flow.states.end() || flow.counterpart(read.getTensor()) != other.getTensor())
      return differs();
    Read source{read.getTensor(), {}};
    for (auto [dim, factor] : llvm::enumerate(found->second.dims)) {
      int loop = factor ? findIndexLoop(a, read.getIndices()[dim], varying) : -1;
      if (factor && (loop < 0 || findIndexLoop(b, other.getIndices()[dim], varying) != loop))
        return flow.fail("reads positions by index");
      if (!factor && failed(match(read.getIndices()[dim], other.getIndices()[dim])))
        return failure();
      source.loops.push_back(loop);
    }
    nest.reads.push_back(std::move(source));
    return success();
  }

  RowFlow &flow;
  linalg::LinalgOp a, b;
  Nest &nest;
  SmallVector<unsigned> varying;
  llvm::DenseSet<std::pair<Value, Value>> known;
};

LogicalResult RowFlow::visitLinalg(linalg::LinalgOp a, linalg::LinalgOp b) {
  if (a.getIndexingMapsArray() != b.getIndexingMapsArray() || a.getIteratorTypesArray() != b.getIteratorTypesArray())
    return fail("is another computation for another size");
  Nest nest;
  nest.mixing = "reads other positions";
  for (utils::IteratorType type : a.getIteratorTypesArray())
    nest.isReduction.push_back(type != utils::IteratorType::parallel);
  auto loopsOf = [&](AffineMap map) {
    SmallVector<int> loops;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      loops.push_back(dim ? static_cast<int>(dim.getPosition()) : -1);
      for (unsigned loop = 0; !dim && loop < a.getNumLoops(); ++loop)
        if (expr.isFunctionOfDim(loop))
          nest.indexed.insert(loop);
    }
    return loops;
  };
  for (OpOperand &operand : a->getOpOperands()) {
    if (!states.contains(operand.get()))
      return fail("is not known to keep positions apart");
    if (isa<RankedTensorType>(operand.get().getType()))
      nest.reads.push_back({operand.get(), loopsOf(a.getMatchingIndexingMap(&operand))});
  }
  for (OpOperand &init : a.getDpsInitsMutable())
    nest.results.push_back(loopsOf(a.getMatchingIndexingMap(&init)));
  BodyMatcher matcher(*this, a, b, nest);
  for (auto [value, other] :
       llvm::zip_equal(a.getBlock()->getTerminator()->getOperands(), b.getBlock()->getTerminator()->getOperands()))
    if (failed(matcher.match(value, other)))
      return failure();
  return visitNest(a, b, nest);
}

} // namespace ogc::rows
