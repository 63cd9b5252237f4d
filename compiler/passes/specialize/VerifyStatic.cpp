//===- VerifyStatic.cpp - fail when a value is not a static tensor --------===//
#include "compiler/dialect/onnx/OnnxOps.h"
#include "compiler/passes/specialize/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ogc::specialize {

#define GEN_PASS_DEF_VERIFYSTATIC
#include "compiler/passes/specialize/Passes.h.inc"

namespace {

/// Far beyond any device, and far below what 64 bits count: sizes of tensors, and small multiples of them, cannot overflow.
constexpr int64_t mostBytes = int64_t(1) << 40;

bool isTooLarge(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return false;
  int64_t bytes = 8; // an element of the widest type
  // Without elements, too, the other extents count: they are multiplied one after the other, in any order.
  for (int64_t extent : tensor.getShape())
    if (llvm::MulOverflow(bytes, std::max<int64_t>(extent, 1), bytes) || bytes > mostBytes)
      return true;
  return false;
}

bool isStatic(Value value) {
  auto type = dyn_cast<TensorType>(value.getType());
  return !type || type.hasStaticShape();
}

struct VerifyStaticPass : impl::VerifyStaticBase<VerifyStaticPass> {
  void runOnOperation() override {
    Operation *firstDynamic = nullptr;
    bool hasErrors = false;
    getOperation().walk([&](Operation *op) {
      for (OpResult result : op->getResults())
        if (isTooLarge(result.getType())) {
          onnx::emitNodeError(op) << "output " << result.getResultNumber() << " has type " << result.getType()
                                  << ", which is larger than any device";
          hasErrors = true;
        }
      if (llvm::all_of(op->getResults(), isStatic))
        return;
      firstDynamic = firstDynamic ? firstDynamic : op;
      if (llvm::all_of(op->getOperands(), isStatic))
        hasErrors |= report(op);
    });
    if (!hasErrors && firstDynamic)
      hasErrors = report(firstDynamic);
    for (auto [i, argument] : llvm::enumerate(getOperation().getArguments())) {
      if (isTooLarge(argument.getType())) {
        getOperation().emitError() << "argument " << i << " has type " << argument.getType()
                                   << ", which is larger than any device";
        hasErrors = true;
      }
      if (!isStatic(argument)) {
        getOperation().emitError() << "argument " << i << " has type " << argument.getType() << ", expected a static shape";
        hasErrors = true;
      }
    }
    checkResultSymbols();
    if (hasErrors)
      signalPassFailure();
  }

  /// A result's dimension that the model names like one of an input should have its size. Exporters get this wrong, and no result
  /// depends on it: a warning.
  void checkResultSymbols() {
    func::FuncOp function = getOperation();
    auto sizes = function->getAttrOfType<DictionaryAttr>("ogc.symbols");
    for (unsigned i = 0; sizes && i < function.getNumResults(); ++i) {
      auto type = dyn_cast<RankedTensorType>(function.getResultTypes()[i]);
      auto symbols = function.getResultAttrOfType<ArrayAttr>(i, "onnx.symbols");
      for (size_t dim = 0; type && symbols && dim < std::min<size_t>(type.getRank(), symbols.size()); ++dim) {
        auto symbol = dyn_cast<StringAttr>(symbols[dim]);
        auto size = symbol ? dyn_cast_or_null<IntegerAttr>(sizes.get(symbol.getValue())) : IntegerAttr();
        if (size && type.getDimSize(dim) != size.getInt())
          function.emitWarning() << "output " << i << " has size " << type.getDimSize(dim) << " in dimension " << dim
                                 << ", which the model names '" << symbol.getValue() << "', but that is " << size.getInt();
      }
    }
  }

  bool report(Operation *op) {
    for (OpResult result : op->getResults())
      if (!isStatic(result))
        onnx::emitNodeError(op) << "output " << result.getResultNumber() << " has type " << result.getType()
                                << ", expected a static shape: its shape depends on the data";
    nameDecidingInputs(op);
    return true;
  }

  /// Inputs from which `op` gets short lists (axes, sizes, scales) are what its shape may depend on: their values can be given.
  void nameDecidingInputs(Operation *op) {
    constexpr int64_t longest = 16; // two numbers for each of more dimensions than models have
    llvm::SetVector<Value> lists;
    auto addOperands = [&](Operation *of) {
      for (Value operand : of->getOperands())
        if (auto type = dyn_cast<RankedTensorType>(operand.getType());
            type && type.hasStaticShape() && type.getRank() <= 1 && type.getNumElements() <= longest)
          lists.insert(operand);
    };
    addOperands(op);
    for (size_t i = 0; i < lists.size(); ++i) // grows on the way
      if (Operation *from = lists[i].getDefiningOp())
        addOperands(from);
    for (Value value : lists)
      if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == &getOperation().getBody().front())
        if (auto name = getOperation().getArgAttrOfType<StringAttr>(argument.getArgNumber(), "onnx.name"))
          getOperation().emitRemark() << "the shape may be known when compiling with the value of input '" << name.getValue()
                                      << "': --value '" << name.getValue() << "=…'";
  }
};

} // namespace
} // namespace ogc::specialize
