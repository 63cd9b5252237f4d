//===- Node.cpp -----------------------------------------------------------===//
#include "compiler/passes/lower/Node.h"
#include "compiler/passes/lower/Lowering.h"
#include "compiler/passes/lower/SmallTypes.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace ogc::lower {

RankedTensorType signless(RankedTensorType type) {
  Type storage = storageType(type.getElementType());
  return storage == type.getElementType() ? type : RankedTensorType::get(type.getShape(), storage, type.getEncoding());
}

static bool isUnsigned(RankedTensorType type) { return type && type.getElementType().isUnsignedInteger(); }

Value Node::in(int i) const {
  Value v = op.input(i);
  return v ? values.lowered.lookup(v) : Value();
}

bool Node::isUnsignedIn(int i) const { return isUnsigned(op.inputType(i)); }
bool Node::isUnsignedOut(int i) const { return isUnsigned(op.outputType(i)); }

Type Node::declaredIn(int i) const {
  RankedTensorType type = op.inputType(i);
  return type ? type.getElementType() : Type();
}

Type Node::declaredOut(int i) const { return op.outputType(i).getElementType(); }

std::optional<Shape> Node::constInts(int i) const {
  if (!has(i))
    return std::nullopt;
  return onnx::getConstantInts(op.input(i));
}

RankedTensorType Node::outType(int i) const {
  RankedTensorType type = signless(op.outputType(i));
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

LogicalResult Node::result(Value v) {
  RankedTensorType expected = outType(static_cast<int>(results.size()));
  if (v.getType() != expected) {
    std::string text;
    llvm::raw_string_ostream(text) << "result " << results.size() << " is computed as " << v.getType() << ", but declared as "
                                   << expected;
    return fail(text);
  }
  results.push_back(v);
  return success();
}

LogicalResult Node::fail(const Twine &why) {
  reason = why.str();
  return failure();
}

const Table &lowerings() {
  static const Table table = [] {
    Table t;
    registerElementwise(t);
    registerDataMovement(t);
    registerIndexing(t);
    registerReductions(t);
    registerScan(t);
    registerSort(t);
    registerScatter(t);
    registerSelection(t);
    registerSuppression(t);
    registerEinsum(t);
    registerRecurrent(t);
    registerDeterminant(t);
    registerNormalization(t);
    registerMatMul(t);
    registerConvolution(t);
    registerPooling(t);
    registerAttention(t);
    registerResize(t);
    registerQuantization(t);
    registerGridSample(t);
    registerDeformConv(t);
    registerRegions(t);
    registerSignal(t);
    registerRandom(t);
    registerIntegerProducts(t);
    registerBlockQuantized(t);
    registerTensorScatter(t);
    registerRegionPrograms(t);
    registerLinearAttention(t);
    return t;
  }();
  return table;
}

} // namespace ogc::lower

bool ogc::hasLowering(llvm::StringRef opType) {
  return opType == "constant" || opType == "absent" || lower::lowerings().find(opType) != nullptr;
}
