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

static constexpr int64_t mostStreamed = 2; // rows of products that stream their weight, in every element type

bool canNormalizeRows(MatmulOp op) {
  auto type = cast<RankedTensorType>(op.getLhs().getType());
  return op.getPacked() && type.getDimSize(1) <= mostStreamed && type.getDimSize(2) > 0;
}

/// Products of so few rows may become one chain of vectors, which knows no statistics.
static constexpr int64_t mostChained = 16;

/// With more rows the larger tiles of products lose more than the norm's kernel takes: bert_base, 1024 rows, 666 to 690 us on an
/// H200, where 128 and 197 rows gain.
static constexpr int64_t mostScaled = 256;

bool canScaleRows(MatmulOp op) {
  constexpr int64_t vector = 8; // columns that epilogues take at once; one by one the factor costs more than the norm's kernel
  auto type = cast<RankedTensorType>(op.getLhs().getType());
  return op.getPacked() && type.getElementTypeBitWidth() == 16 && type.getDimSize(0) * type.getDimSize(1) > mostChained &&
         type.getDimSize(0) * type.getDimSize(1) <= mostScaled && type.getDimSize(1) > mostStreamed &&
         type.getDimSize(2) % RowStatisticsOp::width == 0 && op.getType().getDimSize(2) % vector == 0;
}

bool canStoreStatistics(MatmulOp op) {
  auto panels = cast<RankedTensorType>(op.getRhs().getType()), result = op.getType();
  return op.getPacked() && panels.getElementTypeBitWidth() == 16 && panels.getDimSize(2) == RowStatisticsOp::width &&
         result.getDimSize(0) * result.getDimSize(1) > mostChained && result.getDimSize(1) > mostStreamed &&
         result.getDimSize(2) % RowStatisticsOp::width == 0;
}

} // namespace ogc::kern
