//===- NativeLayout.cpp - layout changes of constants ---------------------===//
#include "compiler/codegen/cpu/NativeLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ogc::codegen {

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

static SmallVector<int64_t> rowMajor(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

namespace {

/// A tensor as a strided box in some memory.
struct View {
  const char *data;
  Type element;
  SmallVector<int64_t> shape, strides;
  std::shared_ptr<TensorBytes> owner;
};

class LayoutEvaluator {
public:
  LayoutEvaluator(Block &body, ArrayRef<ConstantView> inputs) {
    for (auto [argument, input] : llvm::zip_equal(body.getArguments(), inputs)) {
      auto type = tensorType(argument);
      SmallVector<int64_t> strides = rowMajor(type.getShape());
      if (input.isSplat)
        llvm::fill(strides, 0);
      views.try_emplace(argument,
                        View{input.data, type.getElementType(), llvm::to_vector(type.getShape()), strides, input.owner});
    }
  }

  FailureOr<TensorBytes> materialize(Value value) {
    auto type = tensorType(value);
    TensorBytes result(type.getNumElements() * elementBytes(type.getElementType()));
    if (failed(writeTo(value, result.data(), type.getElementType(), rowMajor(type.getShape()))))
      return failure();
    return result;
  }

private:
  /// Writes `value` to strided memory.
  LogicalResult writeTo(Value value, char *to, Type element, ArrayRef<int64_t> strides) {
    if (auto pad = value.getDefiningOp<tensor::PadOp>())
      return writePadded(pad, to, element, strides);
    if (auto concat = value.getDefiningOp<tensor::ConcatOp>()) {
      for (Value input : concat.getInputs()) {
        if (failed(writeTo(input, to, element, strides)))
          return failure();
        to += tensorType(input).getDimSize(concat.getDim()) * strides[concat.getDim()] * elementBytes(element);
      }
      return success();
    }
    FailureOr<View> view = viewOf(value);
    if (failed(view))
      return failure();
    return success(copyStrided(to, element, strides, view->data, view->element, view->strides, view->shape));
  }

  LogicalResult writePadded(tensor::PadOp pad, char *to, Type element, ArrayRef<int64_t> strides) {
    Attribute value;
    Value constant = pad.getConstantPaddingValue();
    if (!constant || !matchPattern(constant, m_Constant(&value)) || ShapedType::isDynamicShape(pad.getStaticLow()) ||
        ShapedType::isDynamicShape(pad.getStaticHigh()))
      return failure();
    // Splat attributes hold one element in memory form.
    auto splat = DenseElementsAttr::get(RankedTensorType::get({1}, constant.getType()), value);
    FailureOr<ConstantView> fill = ConstantView::of(splat);
    SmallVector<int64_t> zeros(strides.size(), 0);
    ArrayRef<int64_t> shape = pad.getResultType().getShape();
    if (failed(fill) || !copyStrided(to, element, strides, fill->data, constant.getType(), zeros, shape))
      return failure();
    for (auto [low, stride] : llvm::zip_equal(pad.getStaticLow(), strides))
      to += low * stride * elementBytes(element);
    return writeTo(pad.getSource(), to, element, strides);
  }

  FailureOr<View> viewOf(Value value) {
    if (auto known = views.find(value); known != views.end())
      return known->second;
    Operation *op = value.getDefiningOp();
    if (!op || !isa<RankedTensorType>(value.getType()) || !tensorType(value).hasStaticShape())
      return failure();
    FailureOr<View> view =
        TypeSwitch<Operation *, FailureOr<View>>(op)
            .Case([&](tensor::CollapseShapeOp collapse) { return reshaped(collapse.getSrc(), tensorType(value)); })
            .Case([&](tensor::ExpandShapeOp expand) { return reshaped(expand.getSrc(), tensorType(value)); })
            .Case([&](tensor::ExtractSliceOp slice) { return sliced(slice); })
            .Case([&](tensor::CastOp cast) { return viewOf(cast.getSource()); })
            .Case([&](linalg::LinalgOp structured) { return moved(structured, cast<OpResult>(value).getResultNumber()); })
            .Case<tensor::PadOp, tensor::ConcatOp>([&](Operation *) { return copied(value); })
            .Default([](Operation *) -> FailureOr<View> { return failure(); });
    if (succeeded(view))
      views.try_emplace(value, *view);
    return view;
  }

  /// A contiguous copy of a value.
  FailureOr<View> copied(Value value) {
    FailureOr<TensorBytes> bytes = materialize(value);
    if (failed(bytes))
      return failure();
    auto owner = std::make_shared<TensorBytes>(std::move(*bytes));
    auto type = tensorType(value);
    return View{owner->data(), type.getElementType(), llvm::to_vector(type.getShape()), rowMajor(type.getShape()), owner};
  }

  FailureOr<View> reshaped(Value source, RankedTensorType type) {
    FailureOr<View> view = viewOf(source);
    if (failed(view))
      return failure();
    if (type.getNumElements() == 0)
      return failure();
    // Walk both shapes; a run of source dimensions that is one walk through memory can be cut anywhere.
    SmallVector<int64_t> strides(type.getRank(), 0);
    size_t from = 0, rank = view->shape.size();
    for (int64_t to = 0; to < type.getRank();) {
      while (from < rank && view->shape[from] == 1)
        ++from;
      if (type.getDimSize(to) == 1) {
        ++to;
        continue;
      }
      size_t last = from;
      int64_t end = to, have = view->shape[from], want = type.getDimSize(to);
      while (have != want) {
        if (have < want) {
          have *= view->shape[++last];
          // Joined dimensions must follow each other in memory.
          size_t before = last - 1;
          while (view->shape[before] == 1 && before > from)
            --before;
          if (view->shape[last] != 1 && view->strides[before] != view->strides[last] * view->shape[last])
            return copiedAndReshaped(source, type);
        } else {
          want *= type.getDimSize(++end);
        }
      }
      int64_t stride = view->strides[last];
      for (size_t i = last; view->shape[i] == 1 && i > from;)
        stride = view->strides[--i];
      for (int64_t dim = end; dim >= to; --dim) {
        strides[dim] = stride;
        stride *= type.getDimSize(dim);
      }
      to = end + 1;
      from = last + 1;
    }
    return View{view->data, view->element, llvm::to_vector(type.getShape()), strides, view->owner};
  }

  FailureOr<View> copiedAndReshaped(Value source, RankedTensorType type) {
    FailureOr<View> view = copied(source);
    if (failed(view))
      return failure();
    return View{view->data, view->element, llvm::to_vector(type.getShape()), rowMajor(type.getShape()), view->owner};
  }

  FailureOr<View> sliced(tensor::ExtractSliceOp slice) {
    FailureOr<View> view = viewOf(slice.getSource());
    if (failed(view) || ShapedType::isDynamicShape(slice.getStaticOffsets()) ||
        ShapedType::isDynamicShape(slice.getStaticStrides()))
      return failure();
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    View result{view->data, view->element, llvm::to_vector(slice.getType().getShape()), {}, view->owner};
    for (size_t dim = 0; dim < view->shape.size(); ++dim) {
      result.data += slice.getStaticOffsets()[dim] * view->strides[dim] * elementBytes(view->element);
      if (!dropped.test(dim))
        result.strides.push_back(view->strides[dim] * slice.getStaticStrides()[dim]);
    }
    return result;
  }

  /// A structured operation that yields one of its inputs, possibly converted to another float type.
  FailureOr<View> moved(linalg::LinalgOp op, unsigned number) {
    if (op.getNumReductionLoops() != 0 || isa<linalg::FillOp>(op.getOperation()))
      return failure();
    Value yielded = op.getBlock()->getTerminator()->getOperand(number);
    Type element = yielded.getType();
    if (auto convert = yielded.getDefiningOp(); isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(convert)) {
      yielded = convert->getOperand(0);
      if (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp>(yielded.getDefiningOp()))
        return failure();
    }
    auto argument = dyn_cast<BlockArgument>(yielded);
    if (!argument || argument.getOwner() != op.getBlock())
      return failure();
    OpOperand *operand = op.getMatchingOpOperand(argument);
    if (!operand || op.isDpsInit(operand) || !isa<RankedTensorType>(operand->get().getType()))
      return failure();
    AffineMap in = op.getMatchingIndexingMap(operand), out = op.getMatchingIndexingMap(op.getDpsInitOperand(number));
    FailureOr<View> source = viewOf(operand->get());
    if (failed(source) || !in.isProjectedPermutation(/*allowZeroInResults=*/true) || !out.isPermutation())
      return failure();
    auto type = tensorType(op->getResult(number));
    View view{source->data, source->element, llvm::to_vector(type.getShape()), SmallVector<int64_t>(type.getRank(), 0),
              source->owner};
    for (auto [dim, expr] : llvm::enumerate(in.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr))
        view.strides[*out.getResultPosition(loop)] = source->strides[dim];
    if (view.element == element)
      return view;
    // Convert now, so that a narrower type rounds once.
    auto owner = std::make_shared<TensorBytes>(type.getNumElements() * elementBytes(element));
    SmallVector<int64_t> strides = rowMajor(type.getShape());
    if (!copyStrided(owner->data(), element, strides, view.data, view.element, view.strides, view.shape))
      return failure();
    return View{owner->data(), element, view.shape, strides, owner};
  }

  DenseMap<Value, View> views;
};

} // namespace

FailureOr<std::vector<TensorBytes>> evaluateLayout(Block &body, ArrayRef<ConstantView> inputs) {
  LayoutEvaluator evaluator(body, inputs);
  std::vector<TensorBytes> results;
  for (Value value : body.getTerminator()->getOperands()) {
    FailureOr<TensorBytes> bytes = evaluator.materialize(value);
    if (failed(bytes))
      return failure();
    results.push_back(std::move(*bytes));
  }
  return results;
}

} // namespace ogc::codegen
