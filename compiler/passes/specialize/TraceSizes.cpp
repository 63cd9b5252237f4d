//===- TraceSizes.cpp - arithmetic on sizes that makes steps --------------===//
#include "compiler/passes/specialize/FoldTensor.h"
#include "compiler/passes/specialize/Folder.h"
#include "compiler/passes/specialize/Passes.h"
#include "compiler/passes/specialize/ShapeSpec.h"

#include <cmath>

using namespace mlir;

namespace ogc::specialize {

#define GEN_PASS_DEF_TRACESIZES
#include "compiler/passes/specialize/Passes.h.inc"

namespace {

/// An operator that was folded: a copy of it, and the values of its operands and results.
struct Folded {
  Operation *op;
  SmallVector<std::optional<Tensor>> inputs;
  Tensors results;
};

using Trace = std::vector<Folded>;

LogicalResult record(func::FuncOp function, Trace &trace) {
  return foldShapes(function, [&](Operation *op, ArrayRef<ElementsAttr>) {
    onnx::OnnxOp reader(op);
    Folded entry{op->clone(), {}, {}};
    for (int i = 0; i < reader.numInputs(); ++i)
      entry.inputs.push_back(reader.hasInput(i) ? loadTensor(reader.input(i)) : std::nullopt);
    entry.results = evaluateOperator(reader, entry.inputs).value_or(Tensors());
    trace.push_back(std::move(entry));
  });
}

bool isEqual(const Tensor &a, const Tensor &b) {
  return a.shape == b.shape && a.element == b.element && a.ints == b.ints && a.floats == b.floats;
}

/// Operators that only move elements of their first operand, so that what is linear stays so.
bool movesElements(StringRef type) {
  return llvm::is_contained<StringRef>({"Gather", "GatherElements", "GatherND", "Slice", "Split", "Squeeze", "Unsqueeze",
                                        "Reshape", "Flatten", "Identity", "Transpose", "Expand", "Tile"},
                                       type);
}

/// Compares the traces of two sizes.
class StepFinder {
public:
  StepFinder(int64_t small, int64_t large, int64_t largest) : small(small), large(large), largest(largest) {}

  bool isStep(const Folded &a, const Folded &b) const {
    bool onlyData = true, isShapeVarying = false, isVarying = false;
    for (unsigned i = 0; i < a.inputs.size(); ++i) {
      const auto &x = a.inputs[i], &y = b.inputs[i];
      if (!x || !y || isEqual(*x, *y))
        continue;
      isVarying = true;
      onlyData &= i == 0;
      isShapeVarying |= x->shape != y->shape;
      if (x->shape == y->shape && x->element.isInteger(1))
        return true;
    }
    if (!isVarying || (onlyData && movesElements(onnx::OnnxOp(a.op).opType())))
      return false;
    bool isSame = llvm::all_of(llvm::zip_equal(a.results, b.results),
                               [](auto pair) { return std::get<0>(pair).shape == std::get<1>(pair).shape; });
    // What has a length that follows the size is compared position by position in the proof itself.
    if (!isSame)
      return false;
    if (isShapeVarying)
      return llvm::all_of(llvm::zip_equal(a.results, b.results),
                          [](auto pair) { return isEqual(std::get<0>(pair), std::get<1>(pair)); });
    for (int64_t size = 1; size <= largest; ++size)
      if (!isOnLine(a, b, size))
        return true;
    return false;
  }

private:
  /// The value for another size, on the line through the two known ones.
  Tensor onLine(const Tensor &x, const Tensor &y, int64_t size) const {
    Tensor result = x;
    for (auto [value, other] : llvm::zip_equal(result.ints, y.ints))
      value += (other - value) / (large - small) * (size - small);
    for (auto [value, other] : llvm::zip_equal(result.floats, y.floats))
      if (value != other)
        value += (other - value) / static_cast<double>(large - small) * static_cast<double>(size - small);
    return result;
  }

  bool isOnLine(const Folded &a, const Folded &b, int64_t size) const {
    SmallVector<std::optional<Tensor>> inputs;
    for (auto [x, y] : llvm::zip_equal(a.inputs, b.inputs))
      inputs.push_back(x && y ? std::optional(onLine(*x, *y, size)) : std::nullopt);
    std::optional<Tensors> results = evaluateOperator(onnx::OnnxOp(a.op), inputs);
    if (!results || results->size() != a.results.size())
      return false;
    for (auto [found, x, y] : llvm::zip_equal(*results, a.results, b.results)) {
      Tensor expected = onLine(x, y, size);
      if (found.shape != expected.shape || found.ints != expected.ints || found.floats.size() != expected.floats.size())
        return false;
      for (auto [value, wanted] : llvm::zip_equal(found.floats, expected.floats))
        if (value != wanted && !(std::fabs(value - wanted) <= 1e-5 * std::fabs(wanted)))
          return false;
    }
    return true;
  }

  int64_t small, large, largest;
};

bool isSameOperator(const Folded &a, const Folded &b) {
  return a.op->getName() == b.op->getName() && a.op->getAttrDictionary() == b.op->getAttrDictionary() &&
         a.inputs.size() == b.inputs.size() && a.results.size() == b.results.size();
}

struct TraceSizesPass : impl::TraceSizesBase<TraceSizesPass> {
  using TraceSizesBase::TraceSizesBase;

  void runOnOperation() override {
    std::optional<SizePair> pair = sizePair(getOperation(), symbol);
    if (!pair) {
      getOperation().emitError() << "expected two functions of sizes a < b of symbol '" << symbol << "'";
      return signalPassFailure();
    }
    Trace first, second;
    if (failed(record(pair->first, first)) || failed(record(pair->second, second)))
      signalPassFailure();
    else
      compare(first, second, StepFinder(pair->small, pair->large, largest));
    for (Trace *trace : {&first, &second})
      for (Folded &entry : *trace)
        entry.op->destroy();
  }

  void compare(const Trace &first, const Trace &second, const StepFinder &finder) {
    for (auto [a, b] : llvm::zip(first, second))
      if (!isSameOperator(a, b) || finder.isStep(a, b))
        return blame(a.op);
    if (first.size() != second.size())
      blame((first.size() < second.size() ? second[first.size()] : first[second.size()]).op);
  }

  void blame(Operation *op) {
    Builder builder(&getContext());
    getOperation()->setAttr("ogc.size_step",
                            builder.getDictionaryAttr({
                                builder.getNamedAttr("operator", builder.getStringAttr(onnx::OnnxOp(op).opType())),
                                builder.getNamedAttr("node", builder.getStringAttr(onnx::OnnxOp(op).nodeName())),
                            }));
  }
};

} // namespace
} // namespace ogc::specialize
