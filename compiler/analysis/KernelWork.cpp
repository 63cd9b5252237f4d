//===- KernelWork.cpp - what a launch of a kernel has to do ----------------===//
#include "compiler/analysis/KernelWork.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace ogc {

using namespace mlir;

namespace {

int64_t elements(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? type.getNumElements() : 0;
}

int64_t bytesOf(Value value, int64_t count) { return count * ((getElementTypeOrSelf(value).getIntOrFloatBitWidth() + 7) / 8); }

double extent(Value value, unsigned dim) { return static_cast<double>(cast<RankedTensorType>(value.getType()).getDimSize(dim)); }

/// Multiply-adds for each element of an anchor's result.
double productsPerElement(Operation *anchor) {
  if (auto matmul = dyn_cast<kern::MatmulOp>(anchor))
    return extent(matmul.getLhs(), 2);
  if (auto conv = dyn_cast<kern::ConvOp>(anchor))
    return extent(conv.getFilter(), 1);
  if (auto conv = dyn_cast<kern::DepthwiseConvOp>(anchor))
    return extent(conv.getFilter(), 0) * extent(conv.getFilter(), 1);
  if (auto attention = dyn_cast<kern::AttentionOp>(anchor)) // scores and their product with the values
    return extent(attention.getKey(), 1) * (extent(attention.getQuery(), 3) / extent(attention.getValue(), 3) + 1);
  return 0;
}

int64_t points(linalg::LinalgOp op) {
  int64_t count = 1;
  for (int64_t range : op.getStaticLoopRanges())
    count *= std::max<int64_t>(range, 1);
  return count;
}

/// How many elements of the tensors of a body are looked at.
class Touched {
public:
  explicit Touched(kern::KernelOp kernel) : inPlace_(kernel->hasAttr("ogc.in_place")) {}

  int64_t operator()(Value value) {
    if (auto known = counts_.find(value); known != counts_.end())
      return known->second;
    int64_t total = elements(value), sum = 0;
    for (OpOperand &use : value.getUses())
      sum = std::min(total, sum + ofUse(use, total));
    return counts_[value] = sum;
  }

  /// Of a result: what is written of it.
  int64_t written(Value result) const {
    auto scatter = result.getDefiningOp<tensor::ScatterOp>();
    return scatter && inPlace_ ? elements(scatter.getSource()) : elements(result);
  }

private:
  int64_t ofUse(OpOperand &use, int64_t total) {
    Operation *user = use.getOwner();
    if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp>(user))
      return (*this)(user->getResult(0));
    if (isa<tensor::ExtractOp>(user)) {
      auto loops = user->getParentOfType<linalg::LinalgOp>();
      return loops ? points(loops) : 1;
    }
    if (auto scatter = dyn_cast<tensor::ScatterOp>(user); scatter && scatter.getDest() == use.get() && inPlace_)
      return 0;
    // What is computed element by element is pulled only where it is needed.
    auto structured = dyn_cast<linalg::LinalgOp>(user);
    if (!structured || structured.getNumParallelLoops() != structured.getNumLoops() ||
        !structured.getMatchingIndexingMap(&use).isPermutation() || structured->getNumResults() != 1)
      return total;
    return (*this)(structured->getResult(0));
  }

  bool inPlace_;
  llvm::DenseMap<Value, int64_t> counts_;
};

/// Scalar operations of a structured operation.
double operationsOf(linalg::LinalgOp op) {
  int64_t each = 0;
  for (Operation &scalar : *op.getBlock())
    each += isa<arith::ArithDialect, math::MathDialect>(scalar.getDialect()) && !isa<arith::ConstantOp>(scalar);
  return static_cast<double>(points(op)) * static_cast<double>(each);
}

} // namespace

KernelWork countWork(kern::KernelOp kernel) {
  KernelWork work;
  Block &body = kernel.getBody().front();
  for (Operation &op : body) {
    if (auto structured = dyn_cast<linalg::LinalgOp>(op))
      work.otherOperations += operationsOf(structured);
    if (!kern::isAnchor(&op) || isa<kern::ProgramOp>(op))
      continue;
    double operations = 2 * static_cast<double>(elements(op.getResult(0))) * productsPerElement(&op);
    if (isa<kern::DepthwiseConvOp>(op)) {
      work.otherOperations += operations;
      continue;
    }
    auto mode = op.getAttrOfType<kern::MathModeAttr>("math");
    work.productOperations += operations;
    work.productType = getElementTypeOrSelf(op.getOperand(0));
    work.tf32 = work.productType.isF32() && mode && mode.getValue() == kern::MathMode::TF32;
  }
  Touched touched(kernel);
  for (BlockArgument argument : body.getArguments())
    work.argumentBytes.push_back(bytesOf(argument, touched(argument)));
  for (Value result : body.getTerminator()->getOperands())
    work.argumentBytes.push_back(bytesOf(result, touched.written(result)));
  return work;
}

} // namespace ogc
