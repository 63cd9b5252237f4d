//===- StridedView.cpp - a tensor as an offset and strides of another -----===//
#include "compiler/analysis/StridedView.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ogc {

namespace {

/// Shape and strides of the value reached so far.
struct Layout {
  SmallVector<int64_t> shape;
  SmallVector<int64_t> strides;
  int64_t offset = 0;
};

bool isStatic(ArrayRef<int64_t> values) { return !llvm::is_contained(values, ShapedType::kDynamic); }

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

bool applySlice(tensor::ExtractSliceOp op, Layout &layout) {
  llvm::SmallBitVector dropped = op.getDroppedDims();
  SmallVector<int64_t> strides;
  for (size_t i = 0; i < layout.shape.size(); ++i) {
    layout.offset += op.getStaticOffsets()[i] * layout.strides[i];
    if (!dropped.test(i))
      strides.push_back(op.getStaticStrides()[i] * layout.strides[i]);
  }
  layout.strides = std::move(strides);
  return true;
}

bool applyExpand(tensor::ExpandShapeOp op, Layout &layout) {
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  SmallVector<int64_t> strides(shape.size(), 1);
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    int64_t stride = layout.strides[dim];
    for (int64_t i : llvm::reverse(group)) {
      strides[i] = stride;
      stride *= shape[i];
    }
  }
  layout.strides = std::move(strides);
  return true;
}

bool applyCollapse(tensor::CollapseShapeOp op, Layout &layout) {
  SmallVector<int64_t> strides;
  for (ArrayRef<int64_t> group : op.getReassociationIndices()) {
    int64_t stride = 1, next = -1;
    for (int64_t i : llvm::reverse(group)) {
      if (layout.shape[i] == 1)
        continue;
      if (next == -1)
        stride = layout.strides[i];
      else if (layout.strides[i] != next)
        return false;
      next = layout.strides[i] * layout.shape[i];
    }
    strides.push_back(stride);
  }
  layout.strides = std::move(strides);
  return true;
}

/// Moves `layout` over one view operation; false when the result has no single stride a dimension.
bool apply(Operation *op, Layout &layout) {
  bool ok = llvm::TypeSwitch<Operation *, bool>(op)
                .Case([&](tensor::ExtractSliceOp slice) { return applySlice(slice, layout); })
                .Case([&](tensor::ExpandShapeOp expand) { return applyExpand(expand, layout); })
                .Case([&](tensor::CollapseShapeOp collapse) { return applyCollapse(collapse, layout); })
                .Case([&](linalg::TransposeOp transpose) {
                  applyPermutationToVector(layout.strides, transpose.getPermutation());
                  return true;
                })
                .Default([](Operation *) { return false; });
  if (ok)
    layout.shape.assign(shapeOf(op->getResult(0)).begin(), shapeOf(op->getResult(0)).end());
  return ok;
}

Layout rowMajor(Value value) {
  Layout layout;
  layout.shape.assign(shapeOf(value).begin(), shapeOf(value).end());
  layout.strides.assign(layout.shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(layout.shape.size()) - 2; i >= 0; --i)
    layout.strides[i] = layout.strides[i + 1] * layout.shape[i + 1];
  return layout;
}

} // namespace

bool StridedView::isReshape() const {
  return llvm::all_of(chain, [](Operation *op) { return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op); });
}

bool isViewOp(Operation *op) {
  if (!op || !isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, linalg::TransposeOp>(op) ||
      op->getNumResults() != 1)
    return false;
  auto from = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!from || !to || !from.hasStaticShape() || !to.hasStaticShape())
    return false;
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  return !slice || (isStatic(slice.getStaticOffsets()) && isStatic(slice.getStaticStrides()));
}

StridedView resolveStridedView(Value value, llvm::function_ref<bool(Value)> isRoot) {
  SmallVector<Operation *> chain;
  Value root = value;
  while ((!isRoot || !isRoot(root)) && isViewOp(root.getDefiningOp())) {
    chain.push_back(root.getDefiningOp());
    root = chain.back()->getOperand(0);
  }
  std::reverse(chain.begin(), chain.end());

  StridedView view{root, 0, {}, {}};
  Layout layout = rowMajor(root);
  for (Operation *op : chain) {
    if (apply(op, layout)) {
      view.chain.push_back(op);
      continue;
    }
    // From here up there is no single stride: the result of `op` is the root of the rest.
    view.root = op->getResult(0);
    view.chain.clear();
    layout = rowMajor(view.root);
  }
  view.offset = layout.offset;
  view.strides = std::move(layout.strides);
  return view;
}

bool isConversion(Operation *op) {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  if (!generic || generic.getNumDpsInputs() != 1 || generic.getNumDpsInits() != 1 || generic.getNumReductionLoops() != 0 ||
      !llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return false;
  Block &body = generic.getRegion().front();
  Operation &first = body.front();
  return body.getOperations().size() == 2 && isa<arith::ExtFOp, arith::TruncFOp>(first) &&
         first.getOperand(0) == body.getArgument(0) && body.back().getOperand(0) == first.getResult(0);
}

StridedView resolveStoredView(Value value) {
  StridedView view = resolveStridedView(value);
  Operation *conversion = view.root.getDefiningOp();
  if (!isConversion(conversion) || !isa<BlockArgument>(conversion->getOperand(0)))
    return view;
  view.root = conversion->getOperand(0);
  view.chain.insert(view.chain.begin(), conversion);
  return view;
}

} // namespace ogc
