//===- RowNorm.cpp - products whose rows are divided by their spread ------===//
#include "compiler/dialect/kern/RowNorm.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace ogc::kern {

static constexpr StringRef normName = "ogc.row_norm", epsilonName = "ogc.epsilon";
static constexpr StringRef kindNames[] = {"", "root_mean_square", "standard_deviation"};

std::optional<RowNorm> rowNormOf(MatmulOp op) {
  auto name = op->getAttrOfType<StringAttr>(normName);
  if (!name)
    return std::nullopt;
  return RowNorm{name.getValue() == kindNames[RowNorm::RootMeanSquare] ? RowNorm::RootMeanSquare : RowNorm::StandardDeviation,
                 op->getAttrOfType<FloatAttr>(epsilonName)};
}

void setRowNorm(MatmulOp op, const RowNorm &norm) {
  op->setAttr(normName, StringAttr::get(op.getContext(), kindNames[norm.kind]));
  op->setAttr(epsilonName, norm.epsilon);
}

LogicalResult verifyRowNorm(MatmulOp op) {
  Attribute norm = op->getAttr(normName), epsilon = op->getAttr(epsilonName);
  if (!norm && !epsilon)
    return success();
  auto name = dyn_cast_or_null<StringAttr>(norm);
  if (!name || !llvm::is_contained(ArrayRef(kindNames).drop_front(), name.getValue()))
    return op.emitOpError() << normName << " is " << norm << ", expected \"" << kindNames[1] << "\" or \"" << kindNames[2] << '"';
  auto number = dyn_cast_or_null<FloatAttr>(epsilon);
  if (!number || !number.getType().isF32())
    return op.emitOpError() << epsilonName << " is " << epsilon << ", expected a number of type f32";
  return op.getPacked() ? success() : op.emitOpError("has a norm, expected a packed rhs");
}

bool canNormalizeRows(MatmulOp op) {
  constexpr int64_t mostStreamed = 2; // rows of products that stream their weight, in every element type
  auto type = cast<RankedTensorType>(op.getLhs().getType());
  return op.getPacked() && type.getDimSize(1) <= mostStreamed && type.getDimSize(2) > 0;
}

} // namespace ogc::kern
