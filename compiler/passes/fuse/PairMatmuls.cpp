//===- PairMatmuls.cpp - two products that meet in one operation ----------===//
#include "compiler/dialect/kern/RowNorm.h"
#include "compiler/passes/fuse/ConstantOps.h"
#include "compiler/passes/fuse/Grouping.h"
#include "compiler/passes/fuse/Panels.h"
#include "compiler/passes/fuse/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

namespace ogc {

#define GEN_PASS_DEF_PAIRMATMULS
#include "compiler/passes/fuse/Passes.h.inc"

namespace {

using namespace mlir;
using fuse::typeOf;

/// The element-wise operations whose element i is computed from element i of `value`, directly or not.
llvm::DenseSet<Operation *> followersOf(Value value) {
  llvm::DenseSet<Operation *> followers;
  SmallVector<Value> work{value};
  while (!work.empty())
    for (OpOperand &use : work.pop_back_val().getUses()) {
      auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
      bool follows =
          fuse::isReshapeOp(use.getOwner()) || (generic && fuse::isElementwise(generic) && fuse::mapOf(use).isIdentity());
      if (follows && followers.insert(use.getOwner()).second)
        work.append(use.getOwner()->result_begin(), use.getOwner()->result_end());
    }
  return followers;
}

class Pairer {
public:
  explicit Pairer(func::FuncOp function) : block(function.getBody().front()), builder(function.getContext()), constants(block) {}

  void run() {
    // Products that could be one: equal left operand, shape of the weight, columns and rounding.
    using Key = std::tuple<Value, Type, Type, Attribute>;
    llvm::MapVector<Key, SmallVector<kern::MatmulOp>> candidates;
    for (auto matmul : block.getOps<kern::MatmulOp>())
      if (matmul.getPacked() && !kern::rowNormOf(matmul) && constants.contains(matmul.getRhs()) &&
          !constants.contains(matmul.getLhs()))
        candidates[{matmul.getLhs(), matmul.getRhs().getType(), matmul.getType(), matmul.getMathAttr()}].push_back(matmul);
    for (auto &[key, matmuls] : candidates)
      pairUp(matmuls);
  }

private:
  /// Each product goes with the first later one that it meets.
  void pairUp(ArrayRef<kern::MatmulOp> matmuls) {
    if (matmuls.size() < 2)
      return;
    auto followers = llvm::map_to_vector(matmuls, [](kern::MatmulOp matmul) { return followersOf(matmul.getResult()); });
    SmallVector<bool> isTaken(matmuls.size(), false);
    for (size_t i = 0; i < matmuls.size(); ++i)
      for (size_t j = i + 1; j < matmuls.size() && !isTaken[i]; ++j) {
        auto isShared = [&](Operation *op) { return isa<linalg::GenericOp>(op) && followers[i].contains(op); };
        if (isTaken[j] || llvm::none_of(followers[j], isShared))
          continue;
        isTaken[i] = isTaken[j] = true;
        pair(matmuls[i], matmuls[j]);
      }
  }

  void pair(kern::MatmulOp first, kern::MatmulOp second) {
    builder.setInsertionPoint(first);
    Location loc = builder.getFusedLoc({first.getLoc(), second.getLoc()});
    SmallVector<int64_t> shape(first.getType().getShape());
    int64_t columns = shape.back();
    shape.back() *= 2;
    Value weight = interleave(loc, first.getRhs(), second.getRhs(), shape.back());
    Value both = kern::MatmulOp::create(builder, loc, RankedTensorType::get(shape, first.getType().getElementType()),
                                        first.getLhs(), weight, false, true, first.getMath());
    for (auto [number, matmul] : llvm::enumerate(std::array{first, second})) {
      SmallVector<OpFoldResult> offsets(3, builder.getIndexAttr(0)), strides(3, builder.getIndexAttr(1)),
          sizes{builder.getIndexAttr(shape[0]), builder.getIndexAttr(shape[1]), builder.getIndexAttr(columns)};
      offsets.back() = builder.getIndexAttr(number);
      strides.back() = builder.getIndexAttr(2);
      matmul.getResult().replaceAllUsesWith(
          tensor::ExtractSliceOp::create(builder, matmul.getLoc(), both, offsets, sizes, strides));
    }
    first.erase();
    second.erase();
  }

  /// Panels whose column 2 i is column i of `even`, column 2 i + 1 that of `odd`, for `columns` columns in all.
  Value interleave(Location loc, Value even, Value odd, int64_t columns) {
    int64_t panels = typeOf(even).getDimSize(0), k = typeOf(even).getDimSize(1), width = typeOf(even).getDimSize(2);
    Type element = typeOf(even).getElementType();
    auto type = [&](ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, element); };
    SmallVector<Value> parts;
    for (Value part : {even, odd})
      parts.push_back(tensor::ExpandShapeOp::create(builder, loc, type({panels, k, width, 1}),
                                                    fuse::ConstantOps::hoist(builder, part),
                                                    ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}}));
    Value mixed = tensor::ConcatOp::create(builder, loc, 3, parts);
    mixed = tensor::CollapseShapeOp::create(builder, loc, type({panels, k, 2 * width}), mixed,
                                            ArrayRef<ReassociationIndices>{{0}, {1}, {2, 3}});
    return fuse::splitPanels(builder, loc, mixed, width, columns);
  }

  Block &block;
  OpBuilder builder;
  fuse::ConstantOps constants;
};

struct PairMatmuls : impl::PairMatmulsBase<PairMatmuls> {
  void runOnOperation() override {
    if (!getOperation().isDeclaration() && getOperation().getBody().hasOneBlock())
      Pairer(getOperation()).run();
  }
};

} // namespace
} // namespace ogc
