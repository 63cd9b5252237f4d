//===- LowerOnnx.cpp - the driver of the lowering -------------------------===//
#include "compiler/passes/lower/Node.h"
#include "compiler/passes/lower/OperandRules.h"
#include "compiler/passes/lower/Passes.h"
#include "compiler/passes/lower/SmallTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/StringSet.h"

namespace ogc {
#define GEN_PASS_DEF_LOWERONNX
#include "compiler/passes/lower/Passes.h.inc"
} // namespace ogc

using namespace mlir;

namespace ogc::lower {
namespace {

/// True for the element types that bodies can compute on or convert.
bool isSupportedElement(Type type) {
  if (isSmallType(type))
    return true;
  if (auto integer = dyn_cast<IntegerType>(type))
    return llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
  return type.isF16() || type.isBF16() || type.isF32() || type.isF64();
}

/// The reason why values of this type cannot be lowered, or nothing.
std::optional<std::string> refuseType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  std::string text;
  llvm::raw_string_ostream os(text);
  if (!tensor || !tensor.hasStaticShape())
    os << type << " is not a static tensor";
  else if (!isSupportedElement(tensor.getElementType()))
    os << "element type " << tensor.getElementType() << " is not supported";
  else
    return std::nullopt;
  return text;
}

/// True for operators that move elements without looking at them, or know the small types. Any other would take the byte for a
/// number.
bool takesSmallTypes(StringRef opType) {
  static const llvm::StringSet<> types = {"BitCast",
                                          "Cast",
                                          "CastLike",
                                          "Concat",
                                          "ConstantOfShape",
                                          "DepthToSpace",
                                          "DequantizeLinear",
                                          "Dropout",
                                          "Expand",
                                          "Flatten",
                                          "Gather",
                                          "GatherElements",
                                          "GatherND",
                                          "Identity",
                                          "IsInf",
                                          "IsNaN",
                                          "Pad",
                                          "QLinearMatMul",
                                          "QuantizeLinear",
                                          "Reshape",
                                          "Shape",
                                          "Size",
                                          "Slice",
                                          "SpaceToDepth",
                                          "Split",
                                          "Squeeze",
                                          "TensorScatter",
                                          "Tile",
                                          "Transpose",
                                          "Unsqueeze",
                                          "Where",
                                          "com.microsoft.GatherBlockQuantized"};
  return types.contains(opType);
}

/// The first small element type among operands and results of an operator that cannot cope with one; null when there is none.
Type unexpectedSmallType(Operation *op) {
  if (takesSmallTypes(onnx::getOpType(op)))
    return {};
  for (Type type : llvm::concat<Type>(SmallVector<Type>(op->getOperandTypes()), SmallVector<Type>(op->getResultTypes())))
    if (auto tensor = dyn_cast<TensorType>(type); tensor && isSmallType(tensor.getElementType()))
      return tensor.getElementType();
  return {};
}

/// Lowers one function.
class FunctionLowering {
public:
  FunctionLowering(func::FuncOp fn, const LoweringOptions &options) : fn(fn), options(options) {}

  LogicalResult run() {
    if (!fn.getBody().hasOneBlock())
      return fn.emitError("has more than one block");
    lowerArguments();
    for (Operation &op : llvm::make_early_inc_range(fn.getBody().front().without_terminator()))
      lowerOperation(&op);
    if (failures)
      return failure();
    lowerReturn();
    for (Operation *op : llvm::reverse(old))
      op->erase();
    return success();
  }

private:
  /// Arguments of unsigned types become signless; the operators of the onnx dialect go on reading the old type through a cast
  /// that goes away with them.
  void lowerArguments() {
    OpBuilder builder = OpBuilder::atBlockBegin(&fn.getBody().front());
    for (BlockArgument arg : fn.getArguments()) {
      fn.setArgAttr(arg.getArgNumber(), "onnx.type", TypeAttr::get(arg.getType()));
      if (auto reason = refuseType(arg.getType())) {
        ++failures;
        fn.emitError() << "input " << arg.getArgNumber() << ": " << *reason;
        continue;
      }
      auto type = cast<RankedTensorType>(arg.getType());
      RankedTensorType target = RankedTensorType::get(type.getShape(), signless(type).getElementType());
      if (target == type) {
        values.lowered[arg] = arg;
        continue;
      }
      arg.setType(target);
      auto cast = UnrealizedConversionCastOp::create(builder, arg.getLoc(), type, ValueRange{arg});
      arg.replaceAllUsesExcept(cast.getResult(0), cast);
      values.lowered[cast.getResult(0)] = arg;
      old.push_back(cast);
    }
  }

  void lowerReturn() {
    Operation *terminator = fn.getBody().front().getTerminator();
    SmallVector<Type> results;
    for (OpOperand &operand : terminator->getOpOperands()) {
      fn.setResultAttr(operand.getOperandNumber(), "onnx.type", TypeAttr::get(operand.get().getType()));
      operand.set(values.lowered.lookup(operand.get()));
      results.push_back(operand.get().getType());
    }
    SmallVector<Type> inputs(fn.getBody().front().getArgumentTypes());
    fn.setFunctionType(FunctionType::get(fn.getContext(), inputs, results));
  }

  void lowerOperation(Operation *op) {
    if (!isa_and_nonnull<onnx::OnnxDialect>(op->getDialect()))
      return;
    old.push_back(op);
    if (auto constant = dyn_cast<onnx::ConstantOp>(op))
      return lowerConstant(constant);
    if (!onnx::isOperator(op)) {
      for (Value v : op->getResults())
        values.constants.insert(v);
      return;
    }
    std::string reason;
    if (succeeded(lowerOperator(op, reason)))
      return;
    ++failures;
    if (!reason.empty())
      onnx::emitNodeError(op) << reason;
    standIn(op);
  }

  /// So that operators after a failed one are checked, too.
  void standIn(Operation *op) {
    OpBuilder builder(op);
    for (Value v : op->getResults()) {
      if (refuseType(v.getType()))
        continue;
      auto cast = UnrealizedConversionCastOp::create(builder, op->getLoc(), signless(llvm::cast<RankedTensorType>(v.getType())),
                                                     ValueRange{});
      values.lowered[v] = cast.getResult(0);
    }
  }

  void lowerConstant(onnx::ConstantOp op) {
    values.constants.insert(op.getResult());
    std::optional<std::string> reason = refuseType(op.getType());
    ElementsAttr value = reason ? ElementsAttr() : storageElements(op.getValue());
    if (!value || reason) {
      // Constants of other types (strings) may be read by attributes' lowerings only; whoever needs the tensor fails.
      return;
    }
    OpBuilder builder(op);
    values.lowered[op.getResult()] = arith::ConstantOp::create(builder, op.getLoc(), cast<TypedAttr>(value));
  }

  LogicalResult lowerOperator(Operation *op, std::string &reason) {
    LowerFn lowering = lowerings().find(onnx::getOpType(op));
    if (!lowering) {
      reason = "has no lowering";
      return failure();
    }
    if (Type small = unexpectedSmallType(op)) {
      llvm::raw_string_ostream(reason) << "element type " << small << " is not supported by this operator";
      return failure();
    }
    bool allConstant = !onnx::getOpType(op).starts_with("Random") && !onnx::getOpType(op).starts_with("Bernoulli");
    for (auto [i, v] : llvm::enumerate(op->getOperands())) {
      if (onnx::isAbsent(v))
        continue;
      allConstant &= values.constants.contains(v);
      if (values.lowered.contains(v))
        continue;
      if (auto why = refuseType(v.getType()))
        reason = llvm::formatv("operand {0}: {1}", i, *why);
      return failure();
    }
    for (auto [i, v] : llvm::enumerate(op->getResults())) {
      if (auto why = refuseType(v.getType())) {
        if (v.use_empty())
          continue;
        reason = llvm::formatv("result {0}: {1}", i, *why);
        return failure();
      }
    }
    if (std::optional<std::string> why = refuseOperands(op)) {
      reason = *why;
      return failure();
    }
    onnx::OnnxOp view(op);
    Node node(view, values, options);
    if (failed(lowering(node))) {
      reason = node.reason.empty() ? "cannot be lowered" : node.reason;
      return failure();
    }
    for (auto [i, v] : llvm::enumerate(op->getResults())) {
      if (i >= node.results.size() || !node.results[i]) {
        if (v.use_empty())
          continue;
        reason = llvm::formatv("result {0} is not supported", i);
        return failure();
      }
      values.lowered[v] = node.results[i];
      if (allConstant)
        values.constants.insert(v);
    }
    return view.checkConsumed();
  }

  func::FuncOp fn;
  LoweringOptions options;
  Values values;
  SmallVector<Operation *> old; ///< operations of the onnx dialect, erased at the end
  int failures = 0;
};

class LowerOnnx : public impl::LowerOnnxBase<LowerOnnx> {
public:
  using LowerOnnxBase::LowerOnnxBase;

private:
  void runOnOperation() override {
    auto mathAttr = getOperation()->getAttrOfType<StringAttr>("ogc.math");
    LoweringOptions options;
    options.math = mathAttr && mathAttr.getValue() == "tf32" ? kern::MathMode::TF32 : kern::MathMode::IEEE;
    options.packWeights = packWeights;
    // Builders report operands of impossible shapes as errors and go on: none of them may be lost.
    bool ok = true;
    ScopedDiagnosticHandler errors(&getContext(), [&](Diagnostic &diagnostic) {
      ok &= diagnostic.getSeverity() != DiagnosticSeverity::Error;
      return failure(); // the next handler prints it
    });
    for (auto fn : getOperation().getOps<func::FuncOp>())
      if (!fn.isExternal() && failed(FunctionLowering(fn, options).run()))
        ok = false;
    if (!ok)
      return signalPassFailure();
    generalize();
    eraseWithoutPoints();
  }

  /// Named structured operations become generic, but for those that later phases look for.
  void generalize() {
    SmallVector<linalg::LinalgOp> named;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (!isa<linalg::GenericOp, linalg::FillOp, linalg::TransposeOp>(op.getOperation()))
        named.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : named) {
      rewriter.setInsertionPoint(op);
      if (failed(linalg::generalizeNamedOp(rewriter, op))) {
        op->emitOpError("cannot be made generic");
        return signalPassFailure();
      }
    }
  }

  /// An operation over no points leaves its initial values: the sum of nothing is the zero that it starts from. No later phase
  /// needs to think of loops without an iteration.
  void eraseWithoutPoints() {
    SmallVector<linalg::GenericOp> ops;
    getOperation().walk([&](linalg::GenericOp op) {
      if (llvm::is_contained(op.getStaticLoopRanges(), 0))
        ops.push_back(op);
    });
    for (linalg::GenericOp op : ops) {
      op->replaceAllUsesWith(op.getDpsInits());
      op->erase();
    }
  }
};

} // namespace
} // namespace ogc::lower
