//===- Panels.cpp - packed weights of other widths ------------------------===//
#include "compiler/passes/fuse/Panels.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::fuse {

Value splitPanels(OpBuilder &builder, Location loc, Value panels, int64_t width, int64_t columns) {
  auto source = cast<RankedTensorType>(panels.getType());
  int64_t count = source.getDimSize(0), k = source.getDimSize(1), parts = source.getDimSize(2) / width;
  auto type = [&](ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, source.getElementType()); };
  Value split = tensor::ExpandShapeOp::create(builder, loc, type({count, k, parts, width}), panels,
                                              ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}});
  Value empty = tensor::EmptyOp::create(builder, loc, ArrayRef<int64_t>{count, parts, k, width}, source.getElementType());
  split = linalg::TransposeOp::create(builder, loc, split, empty, ArrayRef<int64_t>{0, 2, 1, 3})->getResult(0);
  split = tensor::CollapseShapeOp::create(builder, loc, type({count * parts, k, width}), split,
                                          ArrayRef<ReassociationIndices>{{0, 1}, {2}, {3}});
  int64_t needed = llvm::divideCeil(columns, width);
  if (needed == count * parts)
    return split;
  // Columns past the last one filled panels of their own.
  SmallVector<OpFoldResult> zeros(3, builder.getIndexAttr(0)), ones(3, builder.getIndexAttr(1)),
      sizes{builder.getIndexAttr(needed), builder.getIndexAttr(k), builder.getIndexAttr(width)};
  return tensor::ExtractSliceOp::create(builder, loc, split, zeros, sizes, ones);
}

} // namespace ogc::fuse
