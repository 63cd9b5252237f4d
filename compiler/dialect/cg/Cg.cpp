//===- Cg.cpp - the CUDA graph dialect: registration and verifiers --------===//
#include "compiler/dialect/cg/Cg.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "compiler/dialect/cg/CgDialect.cpp.inc"
#include "compiler/dialect/cg/CgEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/cg/CgAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/cg/CgTypes.cpp.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/cg/CgOps.cpp.inc"

using namespace mlir;

namespace ogc::cg {

void CgDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/cg/CgAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/dialect/cg/CgTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/cg/CgOps.cpp.inc"
      >();
}

SliceAttr SliceAttr::withOffset(int64_t offsetBytes) const {
  return get(getContext(), getSection(), offsetBytes, getSizeBytes(), getAccess());
}

bool isNode(Operation *op) { return isa<KernelOp, GemmOp, MemcpyOp, MemsetOp>(op); }

llvm::SmallVector<SliceAttr> nodeSlices(Operation *node) {
  return llvm::TypeSwitch<Operation *, llvm::SmallVector<SliceAttr>>(node)
      .Case<KernelOp, GemmOp>([](auto op) { return llvm::to_vector(op.getArgs().template getAsRange<SliceAttr>()); })
      .Case([](MemcpyOp op) { return llvm::SmallVector<SliceAttr>{op.getSource(), op.getTarget()}; })
      .Case([](MemsetOp op) { return llvm::SmallVector<SliceAttr>{op.getTarget()}; })
      .Default([](Operation *) { return llvm::SmallVector<SliceAttr>{}; });
}

bool overlap(SliceAttr a, SliceAttr b) {
  return a.getSection() == b.getSection() && a.getOffsetBytes() < b.getOffsetBytes() + b.getSizeBytes() &&
         b.getOffsetBytes() < a.getOffsetBytes() + a.getSizeBytes();
}

OperandRange nodeDependencies(Operation *node) { return node->getOperands(); }

namespace {

/// Arguments must be slices, and the edge kinds, where given, one for each dependency.
LogicalResult verifyNode(Operation *op, ArrayAttr args, std::optional<ArrayRef<int32_t>> edgeKinds) {
  for (Attribute arg : args)
    if (!isa<SliceAttr>(arg))
      return op->emitOpError() << "argument " << arg << " is not a slice";
  if (edgeKinds && edgeKinds->size() != op->getNumOperands())
    return op->emitOpError() << "has " << edgeKinds->size() << " edge kinds, expected " << op->getNumOperands();
  return success();
}

} // namespace

LogicalResult KernelOp::verify() { return verifyNode(*this, getArgs(), getEdgeKinds()); }

LogicalResult GemmOp::verify() {
  size_t expected = 3 + getHasBias() + getHasResidual() + getHasWorkspace();
  if (getArgs().size() != expected)
    return emitOpError() << "has " << getArgs().size() << " arguments, expected " << expected;
  return verifyNode(*this, getArgs(), getEdgeKinds());
}

LogicalResult MemcpyOp::verify() {
  if (getSource().getSizeBytes() != getTarget().getSizeBytes())
    return emitOpError() << "copies " << getSource().getSizeBytes() << " bytes to " << getTarget().getSizeBytes() << " bytes";
  return success();
}

} // namespace ogc::cg
