//===- AbsorbNorms.cpp - products that normalize the rows they read -------===//
#include "compiler/analysis/InterleavedParts.h"
#include "compiler/passes/fuse/AbsorbableNorms.h"
#include "compiler/passes/fuse/F32Generic.h"
#include "compiler/passes/fuse/Grouping.h"
#include "compiler/passes/fuse/NormWeights.h"
#include "compiler/passes/fuse/Passes.h"
#include "compiler/passes/fuse/Reshape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace ogc {

#define GEN_PASS_DEF_ABSORBNORMS
#include "compiler/passes/fuse/Passes.h.inc"

namespace {

using namespace mlir;
using fuse::createF32Elementwise;
using fuse::typeOf;

/// Lets one product divide its rows, and the residuals normalize the rows that they read.
class Absorber {
public:
  /// Of rows that are stored, by the first norm of them.
  using Statistics = llvm::DenseMap<Value, kern::RowStatisticsOp>;

  Absorber(const fuse::AbsorbableNorm &absorbed, Statistics &statistics)
      : matmul(absorbed.matmul), norm(absorbed.norm), stored(absorbed.stored), residuals(absorbed.residuals),
        statistics(statistics), builder(matmul), loc(matmul.getLoc()) {}

  void run() {
    Value weight = matmul.getRhs();
    for (OpOperand *residual : residuals)
      normalizeFor(*residual);
    // The threads of a tile, which has many rows, hold the offsets while they multiply: in the type of the weight.
    Type offsetType = stored ? typeOf(weight).getElementType() : builder.getF32Type();
    Value offsets = fuse::createNormOffsets(builder, loc, weight, norm, offsetType);
    scaleResult(stored ? factorOfRows(matmul.getType().getShape().drop_back()) : Value(), offsets);
    matmul.getRhsMutable().assign(fuse::createNormWeight(builder, loc, weight, norm));
    matmul.getLhsMutable().assign(fuse::createReshape(builder, loc, norm.rows, typeOf(matmul.getLhs()).getShape()));
    if (!stored)
      kern::setRowNorm(matmul, norm.norm);
    matmul->setLoc(builder.getFusedLoc({norm.ops.front()->getLoc(), loc}));
  }

private:
  /// The statistics that are stored with the rows.
  kern::RowStatisticsOp takenStatistics() {
    kern::RowStatisticsOp &taken = statistics[stored];
    if (!taken) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfterValue(stored);
      SmallVector<int64_t> shape(typeOf(stored).getShape());
      shape.back() /= kern::RowStatisticsOp::width;
      auto parts = RankedTensorType::get(shape, builder.getF32Type());
      taken = kern::RowStatisticsOp::create(builder, norm.ops.front()->getLoc(), parts, parts, stored);
    }
    return taken;
  }

  RankedTensorType rowType() { return RankedTensorType::get(typeOf(stored).getShape().drop_back(), builder.getF32Type()); }

  /// One over the spread of each row, as a tensor of `shape`.
  Value factorOfRows(ArrayRef<int64_t> shape) {
    kern::RowStatisticsOp taken = takenStatistics();
    Value factor = kern::MergeStatisticsOp::create(builder, taken.getLoc(), rowType(), taken.getMeans(), taken.getSquares(),
                                                   norm.norm.epsilon, norm.isCentered() ? UnitAttr() : builder.getUnitAttr());
    return fuse::createReshape(builder, loc, factor, shape);
  }

  /// Lets `use` read rows that are normalized where it reads them.
  void normalizeFor(OpOperand &use) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(use.getOwner());
    RankedTensorType type = typeOf(use.get());
    unsigned rank = type.getRank();
    ArrayRef<int64_t> outer = type.getShape().drop_back();
    AffineMap all = builder.getMultiDimIdentityMap(rank), row = all.dropResult(rank - 1), column = all.getSubMap({rank - 1});
    SmallVector<Value> inputs{norm.rows, factorOfRows(outer)};
    SmallVector<AffineMap> maps{all, row};
    auto add = [&](Value value, AffineMap map) {
      inputs.push_back(value), maps.push_back(map);
      return inputs.size() - 1;
    };
    size_t mean = 0, gamma = 0, beta = 0;
    if (norm.isCentered()) {
      Value means = kern::MergeMeansOp::create(builder, takenStatistics().getLoc(), rowType(), takenStatistics().getMeans());
      mean = add(fuse::createReshape(builder, loc, means, outer), row);
    }
    if (norm.gamma)
      gamma = add(fuse::createReshape(builder, loc, norm.gamma, type.getShape().take_back()), column);
    if (norm.beta)
      beta = add(fuse::createReshape(builder, loc, norm.beta, type.getShape().take_back()), column);
    use.set(createF32Elementwise(builder, loc, inputs, maps, type, [&](OpBuilder &b, ValueRange x) -> Value {
      Value y = mean ? arith::SubFOp::create(b, loc, x[0], x[mean]).getResult() : x[0];
      y = arith::MulFOp::create(b, loc, y, x[1]);
      if (gamma)
        y = arith::MulFOp::create(b, loc, y, x[gamma]);
      return beta ? arith::AddFOp::create(b, loc, y, x[beta]).getResult() : y;
    }));
  }

  /// Multiplies the rows of the result by `factors` and adds `offsets`, one for each column of the panels, to all of them; or to
  /// the parts that it is read in. Either may be null.
  void scaleResult(Value factors, Value offsets) {
    if (!factors && !offsets)
      return;
    int64_t width = offsets ? typeOf(offsets).getNumElements() : 0, columns = matmul.getType().getShape().back();
    Value row = offsets ? fuse::createReshape(builder, loc, offsets, {width}) : Value();
    auto sliceOfRow = [&](int64_t offset, int64_t size, int64_t stride) -> Value {
      if (!row || (offset == 0 && size == width && stride == 1))
        return row;
      auto attr = [&](int64_t value) -> OpFoldResult { return builder.getIndexAttr(value); };
      return tensor::ExtractSliceOp::create(builder, loc, row, ArrayRef{attr(offset)}, ArrayRef{attr(size)},
                                            ArrayRef{attr(stride)});
    };
    OpBuilder::InsertionGuard guard(builder);
    InterleavedParts parts = interleavedParts(matmul.getResult());
    if (parts.count == 1)
      return scalePart(matmul.getResult(), factors, sliceOfRow(0, columns, 1));
    for (const InterleavedParts::Part &part : parts.parts) {
      builder.setInsertionPoint(matmul);
      scalePart(part.value, factors, sliceOfRow(part.number, columns / parts.count, parts.count));
    }
  }

  void scalePart(Value value, Value factors, Value row) {
    builder.setInsertionPointAfterValue(value);
    unsigned rank = typeOf(value).getRank();
    AffineMap all = builder.getMultiDimIdentityMap(rank);
    SmallVector<Value> inputs{value};
    SmallVector<AffineMap> maps{all};
    if (factors)
      inputs.push_back(factors), maps.push_back(all.dropResult(rank - 1));
    if (row)
      inputs.push_back(row), maps.push_back(all.getSubMap({rank - 1}));
    Value result = createF32Elementwise(builder, loc, inputs, maps, typeOf(value).clone(builder.getF32Type()),
                                        [&](OpBuilder &b, ValueRange x) -> Value {
                                          Value scaled = factors ? arith::MulFOp::create(b, loc, x[0], x[1]).getResult() : x[0];
                                          return row ? arith::AddFOp::create(b, loc, scaled, x.back()).getResult() : scaled;
                                        });
    value.replaceAllUsesExcept(result, result.getDefiningOp());
  }

  kern::MatmulOp matmul;
  const fuse::MatchedNorm &norm;
  Value stored;
  ArrayRef<OpOperand *> residuals;
  Statistics &statistics;
  OpBuilder builder;
  Location loc;
};

struct AbsorbNorms : impl::AbsorbNormsBase<AbsorbNorms> {
  void runOnOperation() override {
    std::vector<fuse::AbsorbableNorm> norms = fuse::absorbableNorms(getOperation());
    Absorber::Statistics statistics;
    for (const fuse::AbsorbableNorm &norm : norms)
      Absorber(norm, statistics).run();
    for (const fuse::AbsorbableNorm &norm : norms)
      for (Operation *op : norm.norm.ops)
        eraseUnused(op);
  }

  /// Erases what nothing reads any more: reshapes between norm and product, then the norm.
  static void eraseUnused(Operation *op) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (fuse::isReshapeOp(user))
        eraseUnused(user);
    if (op->use_empty())
      op->erase();
  }
};

} // namespace
} // namespace ogc
