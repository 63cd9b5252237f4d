//===- ConvertPrecision.cpp - f32 models in 16-bit floats or tf32 ---------===//
#include "compiler/dialect/onnx/OnnxOps.h"
#include "compiler/passes/lower/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include <cmath>

namespace ogc {
#define GEN_PASS_DEF_CONVERTPRECISION
#include "compiler/passes/lower/Passes.h.inc"
} // namespace ogc

using namespace mlir;

namespace ogc::lower {
namespace {

// Numbers of TensorProto.DataType.
constexpr int64_t onnxFloat = 1, onnxFloat16 = 10, onnxBFloat16 = 16;

/// Constants up to this size are converted here, larger ones through a Cast that is evaluated at compile time.
constexpr int64_t smallConstant = 4096;

bool isF32Tensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isF32();
}

/// Operators that lose their meaning in 16 bits: they count, accumulate, or have no 16-bit form.
bool computesInF32(StringRef opType) {
  return llvm::is_contained(
      {"Range", "CumSum", "CumProd", "NonMaxSuppression", "DynamicQuantizeLinear", "MelWeightMatrix", "DFT", "STFT"}, opType);
}

bool isTrigonometric(StringRef opType) { return llvm::is_contained({"Sin", "Cos", "Tan"}, opType); }

/// Operators through which angles are followed back to where they begin: their results are exact, or a few roundings away from
/// their operands. A product of matrices counts when it is an outer one (positions times frequencies).
bool carriesAngle(Operation *op) {
  onnx::OnnxOp view(op);
  if (view.opType() == "MatMul") {
    RankedTensorType rhs = view.inputType(1);
    return rhs && rhs.getRank() >= 2 && rhs.getDimSize(rhs.getRank() - 2) == 1;
  }
  return llvm::is_contained({"Add",        "Sub",    "Mul",     "Div",     "Neg",       "Cast",      "CastLike",
                             "Reciprocal", "Concat", "Expand",  "Flatten", "Gather",    "Identity",  "Reshape",
                             "Slice",      "Split",  "Squeeze", "Tile",    "Transpose", "Unsqueeze", "Where"},
                            view.opType());
}

/// Operands that a schema fixes to f32.
bool isF32Operand(StringRef opType, unsigned i) {
  if (opType == "Resize")
    return i == 2;
  if (opType == "Upsample")
    return i == 1;
  if (opType == "QuantizeLinear" || opType == "DequantizeLinear")
    return i == 1; // a scale in 16 bits would be another quantization
  if (opType == "QLinearMatMul")
    return i == 1 || i == 4 || i == 6;
  return opType == "QLinearConv" && (i == 1 || i == 4 || i == 6);
}

/// Results that stay f32: the statistics of LayerNormalization have the type of stash_type.
bool isF32Result(StringRef opType, unsigned i) { return opType == "LayerNormalization" && i > 0; }

class Converter {
public:
  Converter(func::FuncOp fn, FloatType half) : fn(fn), half(half) {}

  void run() {
    // Pre-order, so that operands are converted before their users; converting adds operations that need no visit.
    SmallVector<Operation *> ops;
    fn.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    findAngles(ops);
    convertInputs();
    for (Operation *op : ops)
      convert(op);
    convertOutputs();
  }

private:
  /// Marks trigonometric functions and what is computed for them alone. An angle is the product of a position and a frequency: in
  /// 16 bits its error is that of a whole turn from a few thousand on.
  void findAngles(ArrayRef<Operation *> ops) {
    for (Operation *op : llvm::reverse(ops)) {
      if (!onnx::isOperator(op))
        continue;
      auto isForAngles = [&](Operation *user) { return angles.contains(user); };
      bool isUsed = !op->use_empty();
      if (isTrigonometric(onnx::getOpType(op)) || (isUsed && carriesAngle(op) && llvm::all_of(op->getUsers(), isForAngles)))
        angles.insert(op);
    }
  }

  int64_t dataType(Type element) const {
    if (element.isF32())
      return onnxFloat;
    return element.isF16() ? onnxFloat16 : onnxBFloat16;
  }
  RankedTensorType retype(Type type, Type element) const {
    return RankedTensorType::get(cast<RankedTensorType>(type).getShape(), element);
  }

  Value makeCast(OpBuilder &builder, Location loc, Value v, Type element) {
    NamedAttribute to = builder.getNamedAttr("to", builder.getI64IntegerAttr(dataType(element)));
    return onnx::createOp(builder, loc, "Cast", retype(v.getType(), element), v, to)->getResult(0);
  }

  /// A 16-bit copy of an f32 value for all its users.
  void narrow(OpBuilder &builder, Value v) {
    Value narrowed = makeCast(builder, v.getLoc(), v, half);
    v.replaceAllUsesExcept(narrowed, narrowed.getDefiningOp());
    wide[narrowed] = v;
  }

  void convertInputs() {
    OpBuilder builder = OpBuilder::atBlockBegin(&fn.getBody().front());
    for (BlockArgument arg : fn.getArguments()) {
      if (!isF32Tensor(arg.getType()))
        continue;
      // A state never leaves the context, unless it is asked for: it is stored like every other value.
      if (fn.getArgAttr(arg.getArgNumber(), "ogc.state"))
        arg.setType(retype(arg.getType(), half));
      else if (!arg.use_empty())
        narrow(builder, arg);
    }
  }

  void convertOutputs() {
    Operation *terminator = fn.getBody().front().getTerminator();
    OpBuilder builder(terminator);
    for (auto [operand, type] : llvm::zip(terminator->getOpOperands(), fn.getResultTypes())) {
      if (!isF32Tensor(type))
        continue;
      if (fn.getResultAttr(operand.getOperandNumber(), "ogc.state")) {
        if (isF32Tensor(operand.get().getType()))
          operand.set(makeCast(builder, operand.get().getLoc(), operand.get(), half));
      } else if (operand.get().getType() != type) {
        operand.set(widened(builder, operand.get()));
      }
    }
    fn.setFunctionType(builder.getFunctionType(fn.getBody().front().getArgumentTypes(), terminator->getOperandTypes()));
  }

  /// The f32 value that a 16-bit value was made from, or a Cast.
  Value widened(OpBuilder &builder, Value v) {
    if (Value original = wide.lookup(v))
      return original;
    return makeCast(builder, v.getLoc(), v, builder.getF32Type());
  }

  bool isHalf(Value v) const {
    auto tensor = dyn_cast<RankedTensorType>(v.getType());
    return tensor && tensor.getElementType() == half;
  }

  void convert(Operation *op) {
    if (auto constant = dyn_cast<onnx::ConstantOp>(op))
      return convertConstant(constant);
    if (!onnx::isOperator(op))
      return;
    StringRef opType = onnx::getOpType(op);
    OpBuilder builder(op);
    bool inF32 = computesInF32(opType) || angles.contains(op);
    for (OpOperand &operand : op->getOpOperands())
      if ((inF32 || isF32Operand(opType, operand.getOperandNumber())) && isHalf(operand.get()))
        operand.set(widened(builder, operand.get()));
    builder.setInsertionPointAfter(op);
    for (OpResult result : op->getResults()) {
      if (!isF32Tensor(result.getType()))
        continue;
      if (inF32 || isF32Result(opType, result.getResultNumber())) {
        if (!result.use_empty())
          narrow(builder, result);
      } else {
        result.setType(retype(result.getType(), half));
      }
    }
    if (!inF32)
      convertAttributes(op);
    for (Region &region : op->getRegions())
      for (BlockArgument arg : region.getArguments())
        if (isF32Tensor(arg.getType()))
          arg.setType(retype(arg.getType(), half));
  }

  /// Attributes that name or hold the f32 type of a result.
  void convertAttributes(Operation *op) {
    if (op->getNumResults() == 0 || !isHalf(op->getResult(0)))
      return;
    OpBuilder builder(op);
    for (StringRef name : {"to", "dtype", "output_dtype"})
      if (auto attr = op->getAttrOfType<IntegerAttr>(name); attr && attr.getInt() == onnxFloat)
        op->setAttr(name, builder.getI64IntegerAttr(dataType(half)));
    if (auto value = op->getAttrOfType<DenseFPElementsAttr>("value"); value && value.getElementType().isF32())
      op->setAttr("value", rounded(value));
  }

  //===--------------------------------------------------------------------===//
  // Constants
  //===--------------------------------------------------------------------===//

  double limit() const { return APFloat::getLargest(half.getFloatSemantics()).convertToDouble(); }

  DenseElementsAttr rounded(DenseFPElementsAttr value) const {
    return value.mapValues(half, [&](const APFloat &element) {
      APFloat result = element;
      bool losesInfo = false;
      result.convert(half.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
      if (result.isInfinity() && !element.isInfinity())
        result = APFloat::getLargest(half.getFloatSemantics(), element.isNegative());
      return result.bitcastToAPInt();
    });
  }

  void convertConstant(onnx::ConstantOp op) {
    if (!isF32Tensor(op.getType()) || op->use_empty())
      return;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    auto dense = dyn_cast<DenseFPElementsAttr>(op.getValue());
    if (dense && (dense.isSplat() || dense.getNumElements() <= smallConstant)) {
      Value converted = onnx::createConstant(builder, op.getLoc(), rounded(dense), op.getName().value_or(""));
      op.getResult().replaceAllUsesWith(converted);
      wide[converted] = op.getResult();
      return;
    }
    Value value = op.getResult(), clamped = clampLarge(builder, op);
    Value narrowed = makeCast(builder, op.getLoc(), clamped, half);
    Operation *cast = narrowed.getDefiningOp();
    value.replaceUsesWithIf(narrowed,
                            [&](OpOperand &use) { return use.getOwner() != cast && !helpers.contains(use.getOwner()); });
    wide[narrowed] = value;
  }

  /// The constant with finite elements beyond the 16-bit range clamped; the constant itself when there are none.
  Value clampLarge(OpBuilder &builder, onnx::ConstantOp op) {
    bool hasLarge = false, hasInfinity = false;
    const double largest = limit(); // computed by APFloat: not once an element
    for (float element : rawElements(op.getValue())) {
      hasInfinity |= std::isinf(element);
      hasLarge |= std::isfinite(element) && std::abs(static_cast<double>(element)) > largest;
    }
    Value value = op.getResult();
    if (!hasLarge)
      return value;
    Location loc = op.getLoc();
    FloatType f32 = builder.getF32Type();
    auto add = [&](StringRef opType, Type type, ValueRange operands) {
      Operation *created = onnx::createOp(builder, loc, opType, type, operands);
      helpers.insert(created);
      return created->getResult(0);
    };
    Value low = onnx::createScalar(builder, loc, f32, -limit()), high = onnx::createScalar(builder, loc, f32, limit());
    Value clipped = add("Clip", value.getType(), {value, low, high});
    if (!hasInfinity)
      return clipped;
    Value infinite = add("IsInf", retype(value.getType(), builder.getI1Type()), value);
    return add("Where", value.getType(), {infinite, value, clipped});
  }

  /// The f32 elements of a constant in memory; empty when they cannot be read.
  static ArrayRef<float> rawElements(ElementsAttr value) {
    ArrayRef<char> bytes;
    if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
      if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
        bytes = blob->getData();
    } else if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
      bytes = dense.getRawData();
    }
    return {reinterpret_cast<const float *>(bytes.data()), bytes.size() / sizeof(float)};
  }

  func::FuncOp fn;
  FloatType half;
  DenseMap<Value, Value> wide;   ///< 16-bit value -> the f32 value it was made from
  DenseSet<Operation *> helpers; ///< operations that read the f32 constant itself
  DenseSet<Operation *> angles;  ///< operations that stay in f32 because a sine or cosine is taken of their results
};

class ConvertPrecision : public impl::ConvertPrecisionBase<ConvertPrecision> {
public:
  using impl::ConvertPrecisionBase<ConvertPrecision>::ConvertPrecisionBase;

private:
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    if (precision == "fp32")
      return;
    if (precision == "tf32") {
      getOperation()->setAttr("ogc.math", StringAttr::get(context, "tf32"));
      return;
    }
    if (precision != "fp16" && precision != "bf16") {
      getOperation()->emitError() << "precision is '" << precision << "', expected fp32, tf32, fp16 or bf16";
      return signalPassFailure();
    }
    FloatType half = precision == "fp16" ? FloatType(Float16Type::get(context)) : FloatType(BFloat16Type::get(context));
    for (auto fn : getOperation().getOps<func::FuncOp>())
      if (!fn.isExternal() && fn.getBody().hasOneBlock())
        Converter(fn, half).run();
  }
};

} // namespace
} // namespace ogc::lower
