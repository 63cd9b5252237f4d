//===- Kern.cpp - the kern dialect: registration and verifiers ------------===//
#include "compiler/dialect/kern/Kern.h"

#include "compiler/dialect/kern/RowNorm.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "compiler/dialect/kern/KernDialect.cpp.inc"
#include "compiler/dialect/kern/KernEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/kern/KernAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/kern/KernOps.cpp.inc"

using namespace mlir;

namespace ogc::kern {

void KernDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/kern/KernAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/kern/KernOps.cpp.inc"
      >();
}

static RankedTensorType tensorType(Value v) { return cast<RankedTensorType>(v.getType()); }

bool isAnchor(Operation *op) { return isa<MatmulOp, ConvOp, DepthwiseConvOp, AttentionOp, ProgramOp>(op); }

bool isMergeOfStatistics(Operation *op) { return isa_and_nonnull<MergeStatisticsOp, MergeMeansOp>(op); }

Operation *findAnchor(Block &body) {
  for (Operation &op : body)
    if (isAnchor(&op))
      return &op;
  return nullptr;
}

bool readsElements(int64_t rows, Type element) { return rows <= fewAttentionRows || element.getIntOrFloatBitWidth() > 16; }

static bool readsElements(AttentionOp op) {
  ArrayRef<int64_t> query = tensorType(op.getQuery()).getShape(), key = tensorType(op.getKey()).getShape();
  return readsElements(query[1] * query[2] / key[2], tensorType(op.getQuery()).getElementType());
}

bool isPulledOperand(OpOperand &operand) {
  auto attention = dyn_cast<AttentionOp>(operand.getOwner());
  unsigned number = operand.getOperandNumber();
  return attention && (number == 0 ? readsElements(attention) : number > (attention.getBias() ? 3u : 2u));
}

bool isStoredOperand(OpOperand &operand) {
  auto attention = dyn_cast<AttentionOp>(operand.getOwner());
  unsigned number = operand.getOperandNumber();
  return attention && (number == 1 || number == 2) && readsElements(attention);
}

bool dependsOn(Value value, Operation *op) {
  llvm::SmallPtrSet<Operation *, 16> seen;
  SmallVector<Operation *> work{value.getDefiningOp()};
  while (!work.empty()) {
    Operation *current = work.pop_back_val();
    if (!current || !seen.insert(current).second)
      continue;
    if (current == op)
      return true;
    current->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        work.push_back(operand.getDefiningOp());
    });
  }
  return false;
}

bool computesElementsOnce(Schedule schedule) { return schedule == Schedule::Pointwise; }

namespace {

/// Checks that a value is a static tensor of the given rank; `what` names the operand in the message.
LogicalResult checkStaticRank(Operation *op, StringRef what, Value v, int64_t rank) {
  RankedTensorType type = tensorType(v);
  if (type.getRank() != rank || !type.hasStaticShape())
    return op->emitOpError() << what << " is " << type << ", expected a static tensor of rank " << rank;
  return success();
}

LogicalResult checkShape(Operation *op, StringRef what, Value v, ArrayRef<int64_t> expected) {
  RankedTensorType type = tensorType(v);
  if (type.getShape() == expected)
    return success();
  InFlightDiagnostic diag = op->emitOpError() << what << " has shape [";
  llvm::interleaveComma(type.getShape(), diag);
  diag << "], expected [";
  llvm::interleaveComma(expected, diag);
  return diag << "]";
}

LogicalResult checkResultIsF32(Operation *op) {
  if (tensorType(op->getResult(0)).getElementType().isF32())
    return success();
  return op->emitOpError() << "result element type is " << tensorType(op->getResult(0)).getElementType() << ", expected f32";
}

/// The extent of a convolution output along one axis.
int64_t convExtent(int64_t in, int64_t padBegin, int64_t padEnd, int64_t kernel, int64_t stride, int64_t dilation) {
  return (in + padBegin + padEnd - dilation * (kernel - 1) - 1) / stride + 1;
}

LogicalResult checkPanels(Operation *op, Value packed, int64_t k, int64_t n) {
  ArrayRef<int64_t> shape = tensorType(packed).getShape();
  int64_t panel = shape[2];
  if (panel != 16 && panel != 32 && panel != 64)
    return op->emitOpError() << "panel width is " << panel << ", expected 16, 32 or 64";
  return checkShape(op, "packed weight", packed, {(n + panel - 1) / panel, k, panel});
}

LogicalResult checkArraySize(Operation *op, StringRef name, ArrayRef<int64_t> values, size_t expected) {
  if (values.size() == expected)
    return success();
  return op->emitOpError() << name << " has " << values.size() << " values, expected " << expected;
}

} // namespace

LogicalResult MatmulOp::verify() {
  if (failed(checkStaticRank(*this, "lhs", getLhs(), 3)) || failed(checkStaticRank(*this, "rhs", getRhs(), 3)) ||
      failed(checkStaticRank(*this, "result", getResult(), 3)) || failed(checkResultIsF32(*this)))
    return failure();
  ArrayRef<int64_t> lhs = tensorType(getLhs()).getShape(), result = tensorType(getResult()).getShape();
  if (tensorType(getLhs()).getElementType() != tensorType(getRhs()).getElementType())
    return emitOpError() << "lhs and rhs element types differ: " << tensorType(getLhs()).getElementType() << " and "
                         << tensorType(getRhs()).getElementType();
  if (failed(checkShape(*this, "result", getResult(), {lhs[0], lhs[1], result[2]})))
    return failure();
  if (failed(verifyRowNorm(*this)))
    return failure();
  if (getPacked()) {
    if (getTransposeRhs())
      return emitOpError("packed and transpose_rhs exclude each other");
    return checkPanels(*this, getRhs(), lhs[2], result[2]);
  }
  int64_t batch = tensorType(getRhs()).getDimSize(0);
  if (batch != 1 && batch != lhs[0])
    return emitOpError() << "rhs batch is " << batch << ", expected 1 or " << lhs[0];
  if (getTransposeRhs())
    return checkShape(*this, "rhs", getRhs(), {batch, result[2], lhs[2]});
  return checkShape(*this, "rhs", getRhs(), {batch, lhs[2], result[2]});
}

LogicalResult ConvOp::verify() {
  if (failed(checkStaticRank(*this, "input", getInput(), 4)) || failed(checkStaticRank(*this, "filter", getFilter(), 3)) ||
      failed(checkStaticRank(*this, "result", getResult(), 4)) || failed(checkResultIsF32(*this)) ||
      failed(checkArraySize(*this, "kernel", getKernel(), 2)) || failed(checkArraySize(*this, "strides", getStrides(), 2)) ||
      failed(checkArraySize(*this, "dilations", getDilations(), 2)) || failed(checkArraySize(*this, "pads", getPads(), 4)))
    return failure();
  ArrayRef<int64_t> in = tensorType(getInput()).getShape();
  int64_t filters = tensorType(getResult()).getDimSize(3);
  if (failed(checkPanels(*this, getFilter(), getKernel()[0] * getKernel()[1] * in[3], filters)))
    return failure();
  if (Value scale = getScale()) {
    if (failed(checkShape(*this, "scale", scale, {in[0], 1, 1, in[3]})))
      return failure();
    if (tensorType(scale).getElementType() != tensorType(getInput()).getElementType())
      return emitOpError() << "scale element type is " << tensorType(scale).getElementType() << ", expected "
                           << tensorType(getInput()).getElementType();
    if (llvm::any_of(getKernel(), [](int64_t extent) { return extent != 1; }) ||
        llvm::any_of(getPads(), [](int64_t pad) { return pad != 0; }))
      return emitOpError("has a scale, expected kernel 1x1 without padding");
  }
  return checkShape(*this, "result", getResult(),
                    {in[0], convExtent(in[1], getPads()[0], getPads()[2], getKernel()[0], getStrides()[0], getDilations()[0]),
                     convExtent(in[2], getPads()[1], getPads()[3], getKernel()[1], getStrides()[1], getDilations()[1]), filters});
}

LogicalResult DepthwiseConvOp::verify() {
  if (failed(checkStaticRank(*this, "input", getInput(), 4)) || failed(checkStaticRank(*this, "filter", getFilter(), 3)) ||
      failed(checkStaticRank(*this, "result", getResult(), 4)) || failed(checkResultIsF32(*this)) ||
      failed(checkArraySize(*this, "strides", getStrides(), 2)) ||
      failed(checkArraySize(*this, "dilations", getDilations(), 2)) || failed(checkArraySize(*this, "pads", getPads(), 4)))
    return failure();
  ArrayRef<int64_t> in = tensorType(getInput()).getShape(), filter = tensorType(getFilter()).getShape();
  if (filter[2] != in[3])
    return emitOpError() << "filter has " << filter[2] << " channels, expected " << in[3];
  return checkShape(*this, "result", getResult(),
                    {in[0], convExtent(in[1], getPads()[0], getPads()[2], filter[0], getStrides()[0], getDilations()[0]),
                     convExtent(in[2], getPads()[1], getPads()[3], filter[1], getStrides()[1], getDilations()[1]), in[3]});
}

LogicalResult AttentionOp::verify() {
  if (failed(checkStaticRank(*this, "query", getQuery(), 4)) || failed(checkStaticRank(*this, "key", getKey(), 4)) ||
      failed(checkStaticRank(*this, "value", getValue(), 4)) || failed(checkStaticRank(*this, "result", getResult(), 4)) ||
      failed(checkResultIsF32(*this)))
    return failure();
  ArrayRef<int64_t> q = tensorType(getQuery()).getShape(), k = tensorType(getKey()).getShape(),
                    v = tensorType(getValue()).getShape();
  if (q[2] % k[2] != 0)
    return emitOpError() << "query heads " << q[2] << " are not a multiple of key heads " << k[2];
  if (failed(checkShape(*this, "key", getKey(), {q[0], k[1], k[2], q[3]})) ||
      failed(checkShape(*this, "value", getValue(), {q[0], k[1], k[2], v[3]})) ||
      failed(checkShape(*this, "result", getResult(), {q[0], q[1], q[2], v[3]})))
    return failure();
  if (failed(verifyRows()))
    return failure();
  if (!getBias())
    return success();
  if (failed(checkStaticRank(*this, "bias", getBias(), 4)))
    return failure();
  ArrayRef<int64_t> bias = tensorType(getBias()).getShape();
  int64_t full[4] = {q[0], q[2], q[1], k[1]};
  for (int i = 0; i < 4; ++i)
    if (bias[i] != full[i] && (bias[i] != 1 || i == 3))
      return emitOpError() << "bias dimension " << i << " is " << bias[i] << ", expected " << full[i];
  return success();
}

LogicalResult AttentionOp::verifyRows() {
  if (!getNewKey() && !getNewValue() && !getPosition())
    return success();
  if (!getNewKey() || !getNewValue() || !getPosition())
    return emitOpError("has some of new_key, new_value and position, expected all or none");
  if (failed(checkStaticRank(*this, "new_key", getNewKey(), 4)) ||
      failed(checkStaticRank(*this, "new_value", getNewValue(), 4)) ||
      failed(checkStaticRank(*this, "position", getPosition(), 1)))
    return failure();
  ArrayRef<int64_t> key = tensorType(getKey()).getShape(), value = tensorType(getValue()).getShape();
  int64_t rows = tensorType(getNewKey()).getDimSize(1);
  if (rows < 1 || rows > key[1])
    return emitOpError() << "new_key has " << rows << " rows, expected 1 to " << key[1];
  if (!tensorType(getPosition()).getElementType().isSignlessInteger())
    return emitOpError() << "position has element type " << tensorType(getPosition()).getElementType() << ", expected an integer";
  if (failed(checkShape(*this, "new_key", getNewKey(), {key[0], rows, key[2], key[3]})) ||
      failed(checkShape(*this, "new_value", getNewValue(), {key[0], rows, key[2], value[3]})))
    return failure();
  return checkShape(*this, "position", getPosition(), {key[0]});
}

LogicalResult ProgramOp::verify() {
  Block &block = getBody().front();
  size_t expected = 1 + getInputs().size() + getOutputs().size();
  if (block.getNumArguments() != expected)
    return emitOpError() << "has " << block.getNumArguments() << " block arguments, expected " << expected;
  if (!block.getArgument(0).getType().isIndex())
    return emitOpError() << "the first block argument has type " << block.getArgument(0).getType() << ", expected index";
  SmallVector<Type> tensors(getInputs().getTypes());
  llvm::append_range(tensors, getOutputs().getTypes());
  for (auto [i, type] : llvm::enumerate(tensors)) {
    auto tensor = cast<RankedTensorType>(type);
    Type buffer = tensor.hasStaticShape() ? MemRefType::get({tensor.getNumElements()}, tensor.getElementType()) : Type();
    if (block.getArgument(1 + i).getType() != buffer)
      return emitOpError() << "block argument " << 1 + i << " has type " << block.getArgument(1 + i).getType()
                           << ", expected the flat buffer of " << tensor;
  }
  return getGroups() > 0 ? success() : emitOpError() << "has " << getGroups() << " groups, expected at least 1";
}

LogicalResult ParallelOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != 1 || !block.getArgument(0).getType().isIndex())
    return emitOpError("expected one block argument of type index");
  if (getOperation()->getParentOfType<ParallelOp>())
    return emitOpError("stands inside another parallel loop");
  return getOperation()->getParentOfType<ProgramOp>() ? success() : emitOpError("stands outside of a program");
}

LogicalResult RowStatisticsOp::verify() {
  RankedTensorType type = tensorType(getInput());
  int64_t columns = type.getRank() == 0 ? 0 : type.getShape().back();
  if (!type.hasStaticShape() || !isa<FloatType>(type.getElementType()) || columns == 0 || columns % width != 0)
    return emitOpError() << "input is " << type << ", expected a static tensor of floats whose rows have a multiple of " << width
                         << " elements";
  SmallVector<int64_t> expected(type.getShape());
  expected.back() /= width;
  return failed(checkShape(*this, "result", getMeans(), expected)) ? failure() : checkResultIsF32(*this);
}

/// Checks an operation that makes one number a row of `means`.
static LogicalResult verifyMerge(Operation *op, Value means) {
  RankedTensorType type = tensorType(means);
  if (type.getRank() == 0 || !type.hasStaticShape() || !type.getElementType().isF32())
    return op->emitOpError() << "means are " << type << ", expected a static tensor of f32 with rows";
  return failed(checkShape(op, "result", op->getResult(0), type.getShape().drop_back())) ? failure() : checkResultIsF32(op);
}

LogicalResult MergeStatisticsOp::verify() { return verifyMerge(*this, getMeans()); }
LogicalResult MergeMeansOp::verify() { return verifyMerge(*this, getMeans()); }

LogicalResult RegionOp::verify() {
  Block &body = getBody().front();
  if (TypeRange(body.getArgumentTypes()) != TypeRange(getInputs().getTypes()))
    return emitOpError("types of the block arguments differ from those of the inputs");
  if (TypeRange(body.getTerminator()->getOperandTypes()) != TypeRange(getOutputs().getTypes()))
    return emitOpError("types of the yielded values differ from those of the results");
  return success();
}

LogicalResult KernelOp::verify() {
  int anchors = llvm::count_if(getBody().front(), [](Operation &op) { return isAnchor(&op); });
  if (anchors > 1 && getSchedule() != Schedule::VectorChain)
    return emitOpError() << "has " << anchors << " anchors, expected at most 1";
  if ((*this)->hasAttr("ogc.in_place") && !computesElementsOnce(getSchedule()))
    return emitOpError() << "has its result in place of an input, but schedule " << stringifySchedule(getSchedule())
                         << " computes elements more than once";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "kernel " << getKernelAttr() << " does not exist";
  Block &body = kernel.getBody().front();
  if (TypeRange(body.getArgumentTypes()) != TypeRange(getInputs().getTypes()))
    return emitOpError() << "types of the inputs differ from those of the arguments of " << getKernelAttr();
  if (TypeRange(body.getTerminator()->getOperandTypes()) != TypeRange(getOutputs().getTypes()))
    return emitOpError() << "types of the results differ from those that " << getKernelAttr() << " yields";
  return success();
}

} // namespace ogc::kern
