//===- LibmCalls.cpp ------------------------------------------------------===//
#include "compiler/codegen/cpu/LibmCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace ogc::codegen {

/// Operations by name; what has an instruction (sqrt, fabs, floor, ...) or an expansion into such is left out.
static const llvm::StringMap<StringRef> &functionsByOperation() {
  static const llvm::StringMap<StringRef> functions = {
      {"math.acos", "acos"},   {"math.acosh", "acosh"}, {"math.asin", "asin"},   {"math.asinh", "asinh"}, {"math.atan", "atan"},
      {"math.atan2", "atan2"}, {"math.atanh", "atanh"}, {"math.cbrt", "cbrt"},   {"math.cos", "cos"},     {"math.cosh", "cosh"},
      {"math.erf", "erf"},     {"math.erfc", "erfc"},   {"math.exp", "exp"},     {"math.exp2", "exp2"},   {"math.expm1", "expm1"},
      {"math.log", "log"},     {"math.log10", "log10"}, {"math.log1p", "log1p"}, {"math.log2", "log2"},   {"math.powf", "pow"},
      {"math.sin", "sin"},     {"math.sinh", "sinh"},   {"math.tan", "tan"},     {"math.tanh", "tanh"},   {"arith.remf", "fmod"}};
  return functions;
}

ArrayRef<StringRef> libmFunctions() {
  static const SmallVector<StringRef> names = [] {
    SmallVector<StringRef> found;
    for (const auto &entry : functionsByOperation())
      found.push_back(entry.second);
    llvm::sort(found);
    return found;
  }();
  return names;
}

/// The declaration of a function of `count` doubles, made once.
static func::FuncOp declare(ModuleOp module, StringRef name, unsigned count) {
  if (auto found = module.lookupSymbol<func::FuncOp>(name))
    return found;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  SmallVector<Type> types(count, builder.getF64Type());
  auto function = func::FuncOp::create(builder, module.getLoc(), name, builder.getFunctionType(types, builder.getF64Type()));
  function.setPrivate();
  function->setAttr("llvm.readnone", builder.getUnitAttr());
  return function;
}

static Value callLanes(OpBuilder &builder, Location loc, func::FuncOp function, ValueRange operands, Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return func::CallOp::create(builder, loc, function, operands).getResult(0);
  Value result = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  SmallVector<int64_t> position(vector.getRank(), 0);
  for (int64_t lane = 0; lane < vector.getNumElements(); ++lane) {
    for (int64_t d = vector.getRank() - 1, rest = lane; d >= 0; rest /= vector.getDimSize(d--))
      position[d] = rest % vector.getDimSize(d);
    SmallVector<Value> elements;
    for (Value operand : operands)
      elements.push_back(vector::ExtractOp::create(builder, loc, operand, position));
    Value element = func::CallOp::create(builder, loc, function, elements).getResult(0);
    result = vector::InsertOp::create(builder, loc, element, result, position);
  }
  return result;
}

void callLibmForDoubles(ModuleOp module) {
  SmallVector<Operation *> found;
  module.walk([&](Operation *op) {
    if (op->getNumResults() == 1 && getElementTypeOrSelf(op->getResult(0).getType()).isF64() &&
        functionsByOperation().contains(op->getName().getStringRef()))
      found.push_back(op);
  });
  for (Operation *op : found) {
    OpBuilder builder(op);
    StringRef name = functionsByOperation().lookup(op->getName().getStringRef());
    func::FuncOp function = declare(module, name, op->getNumOperands());
    op->replaceAllUsesWith(ValueRange{callLanes(builder, op->getLoc(), function, op->getOperands(), op->getResult(0).getType())});
    op->erase();
  }
}

} // namespace ogc::codegen
