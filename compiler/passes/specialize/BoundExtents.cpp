//===- BoundExtents.cpp - extents known at run time get a bound -----------===//
//
// What an operator selects (NonZero, Compress, …) lies at the start of a buffer of the largest possible extent; how many there
// are is a value of its own, computed by operators that this pass adds. Operators that treat the elements along such an extent
// one by one carry it on; all others are refused. Results of the graph return the extent as a hidden result.
//
//===----------------------------------------------------------------------===//
#include "compiler/dialect/onnx/Inference.h"
#include "compiler/passes/specialize/CarriedExtents.h"
#include "compiler/passes/specialize/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace ogc::specialize {

#define GEN_PASS_DEF_BOUNDEXTENTS
#include "compiler/passes/specialize/Passes.h.inc"

namespace {

RankedTensorType typeOf(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

class Bounder {
public:
  explicit Bounder(func::FuncOp function) : function(function), builder(function.getContext()) {}

  LogicalResult run() {
    SmallVector<Operation *> ops;
    for (Operation &op : function.front().without_terminator())
      ops.push_back(&op);
    bool ok = true;
    for (Operation *op : ops)
      if (onnx::isOperator(op))
        ok &= succeeded(visit(op));
    if (!ok)
      return failure();
    finishResults();
    return success();
  }

private:
  //===--------------------------------------------------------------------===//
  // Small builders
  //===--------------------------------------------------------------------===//

  Value make(Operation *at, StringRef type, ValueRange operands, ArrayRef<NamedAttribute> attributes = {}) {
    bool isComplete = llvm::all_of(operands, [](Value operand) { return static_cast<bool>(operand); });
    Operation *op = isComplete ? onnx::createInferred(builder, at->getLoc(), type, operands, attributes, 1) : nullptr;
    isBroken |= !op;
    return op ? op->getResult(0) : Value();
  }
  NamedAttribute attr(StringRef name, int64_t value) { return builder.getNamedAttr(name, builder.getI64IntegerAttr(value)); }
  Value scalar(Operation *at, int64_t value) {
    auto type = RankedTensorType::get({}, builder.getI64Type());
    return onnx::createConstant(builder, at->getLoc(), DenseElementsAttr::get(type, value));
  }
  Value convert(Operation *at, Value value, bool toBool) {
    constexpr int64_t int64Type = 7, boolType = 9; // TensorProto.DataType
    return make(at, "Cast", value, attr("to", toBool ? boolType : int64Type));
  }
  /// The number of true elements.
  Value countTrue(Operation *at, Value flags) { return make(at, "ReduceSum", convert(at, flags, false), attr("keepdims", 0)); }

  //===--------------------------------------------------------------------===//
  // Where extents come from
  //===--------------------------------------------------------------------===//

  void bind(Value value, ArrayRef<int64_t> shape, int64_t dim, Value count) {
    if (!count) // an error was reported
      return;
    value.setType(RankedTensorType::get(shape, cast<TensorType>(value.getType()).getElementType()));
    bounds[value] = {dim, count};
  }

  /// True when the operator's own extents depend on the data: it is bound then, or left for ogc-verify-static to name.
  bool visitSource(Operation *op) {
    bool isOpen = llvm::any_of(op->getResults(), [](Value v) {
      auto type = typeOf(v);
      return !type || !type.hasStaticShape();
    });
    auto input = op->getNumOperands() ? typeOf(op->getOperand(0)) : RankedTensorType();
    if (!isOpen || !input || !input.hasStaticShape())
      return false;
    builder.setInsertionPointAfter(op);
    StringRef type = onnx::getOpType(op);
    if (type == "NonZero")
      bindNonZero(op, input);
    else if (type == "Compress")
      bindCompress(op, input);
    else if (type == "Unique")
      bindUnique(op, input);
    else if (type == "NonMaxSuppression")
      bindSuppression(op);
    else if (type == "TopK")
      bindTopK(op, input);
    else
      return false;
    return true;
  }

  void bindNonZero(Operation *op, RankedTensorType input) {
    Value count = countTrue(op, convert(op, op->getOperand(0), true));
    bind(op->getResult(0), {input.getRank(), input.getNumElements()}, 1, count);
  }

  void bindCompress(Operation *op, RankedTensorType input) {
    std::optional<int64_t> axis = onnx::OnnxOp(op).findI64("axis");
    SmallVector<int64_t> shape{input.getNumElements()};
    int64_t dim = 0;
    if (axis) {
      shape.assign(input.getShape().begin(), input.getShape().end());
      dim = onnx::wrapAxis(*axis, input.getRank());
    }
    auto condition = typeOf(op->getOperand(1));
    if (!condition || !condition.hasStaticShape() || condition.getRank() != 1 || dim < 0 ||
        dim >= static_cast<int64_t>(shape.size()))
      return;
    shape[dim] = std::min(shape[dim], condition.getDimSize(0));
    auto ints = [&](int64_t value) { return onnx::createI64s(builder, op->getLoc(), value); };
    Value used = make(op, "Slice", {op->getOperand(1), ints(0), ints(shape[dim]), ints(0)});
    if (used)
      bind(op->getResult(0), shape, dim, countTrue(op, used));
  }

  /// The number of unique items is one more than the largest number of an item.
  void bindUnique(Operation *op, RankedTensorType input) {
    std::optional<int64_t> axis = onnx::OnnxOp(op).findI64("axis");
    SmallVector<int64_t> shape{input.getNumElements()};
    int64_t dim = 0;
    if (axis) {
      shape.assign(input.getShape().begin(), input.getShape().end());
      dim = onnx::wrapAxis(*axis, input.getRank());
    }
    if (dim < 0 || dim >= static_cast<int64_t>(shape.size()))
      return;
    Type i64 = builder.getI64Type();
    auto vector = RankedTensorType::get({shape[dim]}, i64);
    SmallVector<Type> types{RankedTensorType::get(shape, input.getElementType()), vector, vector, vector};
    Operation *full = onnx::createOp(builder, op->getLoc(), "Unique", types, op->getOperands(), op->getAttrs());
    Value largest = make(op, "ReduceMax", full->getResult(2), attr("keepdims", 0));
    if (!largest)
      return;
    Value count = make(op, "Add", {largest, scalar(op, 1)});
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      op->getResult(i).replaceAllUsesWith(full->getResult(i));
    op->erase();
    for (unsigned i : {0u, 1u, 3u})
      bounds[full->getResult(i)] = {i == 0 ? dim : 0, count};
  }

  /// Rows that select nothing hold -1.
  void bindSuppression(Operation *op) {
    auto scores = typeOf(op->getOperand(1));
    if (!scores || !scores.hasStaticShape() || scores.getRank() != 3)
      return;
    int64_t kept = 0;
    if (op->getNumOperands() > 2 && !onnx::isAbsent(op->getOperand(2))) {
      std::optional<SmallVector<int64_t>> limit = onnx::getConstantInts(op->getOperand(2));
      kept = limit && limit->size() == 1 ? std::clamp<int64_t>(limit->front(), 0, scores.getDimSize(2)) : scores.getDimSize(2);
    }
    Value rows = op->getResult(0);
    rows.setType(RankedTensorType::get({scores.getDimSize(0) * scores.getDimSize(1) * kept, 3}, builder.getI64Type()));
    Value batch = make(op, "Gather", {rows, scalar(op, 0)}, {attr("axis", 1)});
    Value exists = batch ? make(op, "GreaterOrEqual", {batch, scalar(op, 0)}) : Value();
    if (exists)
      bounds[rows] = {0, countTrue(op, exists)};
  }

  /// With k known at run time all elements are sorted.
  void bindTopK(Operation *op, RankedTensorType input) {
    int64_t axis = onnx::OnnxOp(op).getI64("axis", -1);
    axis = onnx::wrapAxis(axis, input.getRank());
    if (axis < 0 || axis >= input.getRank() || op->getNumOperands() < 2)
      return;
    auto k = typeOf(op->getOperand(1));
    if (!k || !k.hasStaticShape() || k.getNumElements() != 1)
      return;
    builder.setInsertionPoint(op);
    Value count = make(op, "Reshape", {op->getOperand(1), onnx::createI64s(builder, op->getLoc(), {})});
    Value bound = scalar(op, input.getDimSize(axis));
    if (count)
      count = make(op, "Min", {count, bound});
    if (!count)
      return;
    op->setOperand(1, onnx::createI64s(builder, op->getLoc(), input.getDimSize(axis)));
    bind(op->getResult(0), input.getShape(), axis, count);
    if (op->getNumResults() > 1)
      bind(op->getResult(1), input.getShape(), axis, count);
  }

  //===--------------------------------------------------------------------===//
  // Who carries them on
  //===--------------------------------------------------------------------===//

  LogicalResult visit(Operation *op) {
    SmallVector<unsigned> bounded;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (bounds.contains(operand))
        bounded.push_back(i);
    if (bounded.empty()) {
      visitSource(op);
      return success(!isBroken);
    }
    auto type = typeOf(op->getOperand(bounded.front()));
    Bound first = bounds.lookup(op->getOperand(bounded.front()));
    if (op->getNumRegions())
      return refuse(op, bounded.front());
    for (Value result : op->getResults()) // what was inferred from the open extents may be less exact
      result.setType(UnrankedTensorType::get(cast<TensorType>(result.getType()).getElementType()));
    if (failed(onnx::inferTypes(op)))
      return failure();
    std::optional<int64_t> dim = carriedDim(op, bounded, bounds);
    auto resultType = dim ? typeOf(op->getResult(0)) : RankedTensorType();
    if (!dim || *dim >= resultType.getRank() || resultType.getDimSize(*dim) != type.getDimSize(first.dim))
      return refuse(op, bounded.front());
    bounds[op->getResult(0)] = {*dim, first.count};
    return success();
  }

  LogicalResult refuse(Operation *op, unsigned operand) {
    Bound bound = bounds.lookup(op->getOperand(operand));
    return onnx::emitNodeError(op) << "operand " << operand << " has an extent in dimension " << bound.dim
                                   << " that is known only at run time, which this operator cannot carry";
  }

  //===--------------------------------------------------------------------===//
  // Results of the graph
  //===--------------------------------------------------------------------===//

  /// The elements that exist side by side at the start of the buffer: element i of the result is i-th of what exists.
  Value pack(Operation *at, Value value, Bound bound) {
    auto type = typeOf(value);
    int64_t outer = 1, inner = 1, extent = type.getDimSize(bound.dim);
    for (int64_t d = 0; d < type.getRank(); ++d)
      (d < bound.dim ? outer : inner) *= d == bound.dim ? 1 : type.getDimSize(d);
    if (outer == 1 || type.getNumElements() == 0)
      return value;
    int64_t total = type.getNumElements();
    Value position = make(at, "Range", {scalar(at, 0), scalar(at, total), scalar(at, 1)});
    Value slab = make(at, "Mul", {bound.count, scalar(at, inner)}); // elements of one outer position
    Value row = make(at, "Div", {position, slab}), rest = make(at, "Mod", {position, slab}, attr("fmod", 0));
    Value source = make(at, "Add", {make(at, "Mul", {row, scalar(at, extent * inner)}), rest});
    Value flat = make(at, "Reshape", {value, onnx::createI64s(builder, at->getLoc(), total)});
    Value packed = make(at, "Gather", {flat, source}, attr("axis", 0));
    return make(at, "Reshape", {packed, onnx::createI64s(builder, at->getLoc(), type.getShape())});
  }

  void finishResults() {
    Operation *terminator = function.front().getTerminator();
    builder.setInsertionPoint(terminator);
    SmallVector<Value> results(terminator->getOperands());
    unsigned numResults = results.size();
    SmallVector<DictionaryAttr> attributes;
    for (unsigned i = 0; i < numResults; ++i)
      attributes.push_back(DictionaryAttr::get(function.getContext(), function.getResultAttrs(i)));
    llvm::MapVector<Value, int64_t> hidden;
    for (unsigned i = 0; i < numResults; ++i) {
      auto it = bounds.find(results[i]);
      if (it == bounds.end())
        continue;
      Bound bound = it->second;
      results[i] = pack(terminator, results[i], bound);
      int64_t place = hidden.try_emplace(bound.count, static_cast<int64_t>(numResults + hidden.size())).first->second;
      NamedAttrList list(attributes[i]);
      list.set("ogc.extent", builder.getDenseI64ArrayAttr({bound.dim, place}));
      attributes[i] = list.getDictionary(function.getContext());
    }
    for (auto [count, place] : hidden) {
      results.push_back(count);
      attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr("ogc.hidden", builder.getUnitAttr())));
    }
    terminator->setOperands(results);
    function.setFunctionType(builder.getFunctionType(function.getArgumentTypes(), ValueRange(results).getTypes()));
    function.setAllResultAttrs(attributes);
  }

  func::FuncOp function;
  OpBuilder builder;
  Bounds bounds;
  bool isBroken = false;
};

struct BoundExtentsPass : impl::BoundExtentsBase<BoundExtentsPass> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function.isExternal() && failed(Bounder(function).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace ogc::specialize
