//===- Match.cpp - small matchers over the onnx dialect -------------------===//
#include "compiler/passes/normalize/Match.h"

#include "compiler/dialect/onnx/NodeBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <cmath>

using namespace mlir;

namespace ogc::normalize {

Operation *producer(Value value, StringRef type) {
  Operation *op = value ? value.getDefiningOp() : nullptr;
  return onnx::isOp(op, type) ? op : nullptr;
}

Operation *onlyProducer(Value value, StringRef type) { return value && value.hasOneUse() ? producer(value, type) : nullptr; }

std::optional<double> scalarOf(Value value) {
  ElementsAttr constant = onnx::getConstant(value);
  if (!constant || constant.getNumElements() != 1)
    return std::nullopt;
  std::optional<SmallVector<double>> floats = onnx::getFloats(constant);
  return floats ? std::optional(floats->front()) : std::nullopt;
}

bool isNear(double a, double b, Type element) {
  // A few units in the last place of the element type.
  double tolerance = element.isBF16() ? 2e-2 : element.isF16() ? 2e-3 : 2e-6;
  return std::fabs(a - b) <= tolerance * std::fabs(b);
}

bool isScalarNear(Value value, double expected) {
  std::optional<double> scalar = scalarOf(value);
  return scalar && isNear(*scalar, expected, cast<TensorType>(value.getType()).getElementType());
}

std::pair<Value, Value> splitOperands(Operation *op, function_ref<bool(Value)> test) {
  if (op->getNumOperands() != 2)
    return {};
  if (test(op->getOperand(1)))
    return {op->getOperand(0), op->getOperand(1)};
  if (test(op->getOperand(0)))
    return {op->getOperand(1), op->getOperand(0)};
  return {};
}

namespace {

/// More operators than this are no known pattern: keeps long chains of products linear.
constexpr unsigned maxFactors = 32;

void collectFactors(Value value, Product &product, unsigned &visited, bool isRoot) {
  if (++visited > maxFactors) {
    product.factors.push_back(value);
    return;
  }
  if (std::optional<double> scalar = scalarOf(value)) {
    product.scale *= *scalar;
    return;
  }
  Operation *op = value.getDefiningOp();
  bool isInner = isRoot || value.hasOneUse();
  if (isInner && onnx::isOp(op, "Mul")) {
    collectFactors(op->getOperand(0), product, visited, false);
    collectFactors(op->getOperand(1), product, visited, false);
    return;
  }
  if (isInner && onnx::isOp(op, "Div"))
    if (std::optional<double> divisor = scalarOf(op->getOperand(1)); divisor && *divisor != 0) {
      product.scale /= *divisor;
      collectFactors(op->getOperand(0), product, visited, false);
      return;
    }
  product.factors.push_back(value);
}

} // namespace

Product factorize(Operation *root) {
  Product product;
  unsigned visited = 0;
  collectFactors(root->getResult(0), product, visited, true);
  return product;
}

RankedTensorType staticType(Value value) {
  auto type = value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
  return type && type.hasStaticShape() ? type : RankedTensorType();
}

bool reducesLastAxis(Operation *op) {
  onnx::OnnxOp view(op);
  RankedTensorType type = view.inputType(0);
  std::optional<SmallVector<int64_t>> axes = view.hasInput(1) ? onnx::getConstantInts(view.input(1)) : std::nullopt;
  return type && axes && axes->size() == 1 && (axes->front() == -1 || axes->front() == type.getRank() - 1) &&
         view.getI64("keepdims", 1) == 1;
}

Value build(OpBuilder &builder, Location loc, StringRef opType, ValueRange operands, ArrayRef<NamedAttribute> attributes) {
  // Of a chain of builds only the first failure is reported.
  if (llvm::is_contained(operands, Value()))
    return {};
  onnx::Node node{opType.str(), "", onnx::newestOpset(), loc, SmallVector<Value>(operands), NamedAttrList(attributes), 1, {}, {}};
  std::string reason;
  FailureOr<SmallVector<Value>> values = onnx::buildNode(builder, std::move(node), reason);
  if (succeeded(values))
    return values->front();
  mlir::emitError(loc) << opType << ": " << reason;
  return {};
}

Value reshape(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  RankedTensorType type = staticType(value);
  if (type && type.getShape() == shape)
    return value;
  return build(builder, loc, "Reshape", {value, onnx::createI64s(builder, loc, shape)},
               builder.getNamedAttr("allowzero", builder.getI64IntegerAttr(1)));
}

Value transpose(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> perm) {
  return build(builder, loc, "Transpose", value, builder.getNamedAttr("perm", builder.getDenseI64ArrayAttr(perm)));
}

LogicalResult applyTo(Operation *function, RewritePatternSet patterns) {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return applyPatternsGreedily(function, std::move(patterns), config);
}

} // namespace ogc::normalize
