//===- AbsorbNorms.cpp - products that normalize the rows they read -------===//
#include "compiler/analysis/InterleavedParts.h"
#include "compiler/passes/fuse/ConstantOps.h"
#include "compiler/passes/fuse/Grouping.h"
#include "compiler/passes/fuse/MatchRowNorm.h"
#include "compiler/passes/fuse/Passes.h"
#include "compiler/passes/fuse/Reshape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace ogc {

#define GEN_PASS_DEF_ABSORBNORMS
#include "compiler/passes/fuse/Passes.h.inc"

namespace {

using namespace mlir;
using fuse::ConstantOps;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// A product whose rows are normalized, and what says that two of them have the same norm.
struct Candidate {
  kern::MatmulOp matmul;
  fuse::MatchedNorm norm;
  /// Rows whose kernel stores their statistics; null where the product sums what it reads.
  Value stored;
  /// What else reads the normalized rows, and normalizes them again for itself: residuals of products.
  std::vector<OpOperand *> residuals;
  std::tuple<kern::RowNorm::Kind, llvm::SetVector<Attribute>, llvm::SetVector<Attribute>> key;
};

/// `value` from before reshapes that leave the rows as they are; nothing but the next of them reads any.
Value withoutRowReshapes(Value value) {
  while (value.hasOneUse()) {
    Operation *def = value.getDefiningOp();
    if (!def || !fuse::isReshapeOp(def) || typeOf(def->getOperand(0)).getRank() == 0 ||
        typeOf(def->getOperand(0)).getShape().back() != typeOf(value).getShape().back())
      break;
    value = def->getOperand(0);
  }
  return value;
}

/// False for rows that one kernel would compute and normalize: an input, or what an anchor gives and element-wise operations go
/// on with.
bool areStoredAnyway(Value rows, unsigned depth = 8) {
  Operation *def = rows.getDefiningOp();
  if (!def || kern::isAnchor(def))
    return true;
  if (depth == 0)
    return false;
  if (fuse::isReshapeOp(def) || isa<tensor::ExtractSliceOp>(def))
    return areStoredAnyway(def->getOperand(0), depth - 1);
  auto generic = dyn_cast<linalg::GenericOp>(def);
  return generic && fuse::isElementwise(generic) && llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
           return operand->get().getDefiningOp() && fuse::mapOf(*operand).isIdentity() &&
                  areStoredAnyway(operand->get(), depth - 1);
         });
}

bool hasLastDimOf(Value value, Value other) {
  return typeOf(value).getRank() > 0 && typeOf(value).getShape().back() == typeOf(other).getShape().back();
}

/// True where the region of a product will compute `rows`, element by element, and can store statistics beside them. What lies
/// between is read once: a value that others read, too, is stored, and another kernel goes on with it.
bool comeWithStatistics(Value rows, unsigned depth = 8) {
  Operation *def = rows.getDefiningOp();
  if (!def || depth == 0)
    return false;
  if (auto matmul = dyn_cast<kern::MatmulOp>(def))
    return kern::canStoreStatistics(matmul);
  if (fuse::isReshapeOp(def))
    return def->getOperand(0).hasOneUse() && hasLastDimOf(def->getOperand(0), rows) &&
           comeWithStatistics(def->getOperand(0), depth - 1);
  auto generic = dyn_cast<linalg::GenericOp>(def);
  return generic && fuse::isElementwise(generic) && llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
           return operand->get().hasOneUse() && operand->get().getDefiningOp() && fuse::mapOf(*operand).isIdentity() &&
                  comeWithStatistics(operand->get(), depth - 1);
         });
}

/// `rows` as they are stored, from before reshapes; null where no statistics come with them.
Value storedWithStatistics(Value rows) {
  while (fuse::isReshapeOp(rows.getDefiningOp()) && hasLastDimOf(rows.getDefiningOp()->getOperand(0), rows))
    rows = rows.getDefiningOp()->getOperand(0);
  return isa_and_nonnull<linalg::GenericOp>(rows.getDefiningOp()) && comeWithStatistics(rows) ? rows : Value();
}

/// True for a use by an element-wise operation that goes on with what a product gives, in that product's region.
bool isResidual(OpOperand &use) {
  auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
  return generic && fuse::isElementwise(generic) && !generic.isDpsInit(&use) && fuse::mapOf(use).isIdentity() &&
         llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *other) {
           return other != &use && other->get() != use.get() && fuse::mapOf(*other).isIdentity() &&
                  comeWithStatistics(other->get());
         });
}

/// The uses of `normalized` but the one that `matmul` reads it by; nothing where one of them is no residual.
std::optional<std::vector<OpOperand *>> residualsOf(Value normalized, kern::MatmulOp matmul) {
  Value read = matmul.getLhs();
  Operation *reader = matmul;
  while (read != normalized) {
    reader = read.getDefiningOp();
    read = reader->getOperand(0);
  }
  std::vector<OpOperand *> residuals;
  for (OpOperand &use : normalized.getUses())
    if (use.getOwner() != reader)
      residuals.push_back(&use);
  if (!llvm::all_of(residuals, [](OpOperand *use) { return isResidual(*use); }))
    return std::nullopt;
  return residuals;
}

std::optional<Candidate> candidateOf(kern::MatmulOp matmul, const ConstantOps &constants) {
  bool sums = kern::canNormalizeRows(matmul);
  if (!(sums || kern::canScaleRows(matmul)) || kern::rowNormOf(matmul) || !constants.contains(matmul.getRhs()))
    return std::nullopt;
  Value normalized = withoutRowReshapes(matmul.getLhs());
  std::optional<std::vector<OpOperand *>> residuals = residualsOf(normalized, matmul);
  std::optional<fuse::MatchedNorm> norm =
      residuals && (!sums || residuals->empty()) ? fuse::matchRowNorm(normalized) : std::nullopt;
  auto isVariable = [&](Value value) { return value && !constants.contains(value); };
  if (!norm || isVariable(norm->gamma) || isVariable(norm->beta) || constants.contains(norm->rows))
    return std::nullopt;
  Value stored = sums ? Value() : storedWithStatistics(norm->rows);
  if (sums ? !areStoredAnyway(norm->rows) : !stored)
    return std::nullopt;
  // The variance is computed as E[x^2] - E[x]^2.
  if (norm->norm.kind == kern::RowNorm::StandardDeviation && typeOf(matmul.getLhs()).getElementTypeBitWidth() != 16)
    return std::nullopt;
  auto rootsOf = [](Value value) { return value ? ConstantOps::rootsOf(value) : llvm::SetVector<Attribute>(); };
  return Candidate{matmul, *norm, stored, *residuals, {norm->norm.kind, rootsOf(norm->gamma), rootsOf(norm->beta)}};
}

/// Makes the product of one candidate, and what it needs of the constants.
class Absorber {
public:
  using Statistics = llvm::DenseMap<Value, kern::RowStatisticsOp>;

  Absorber(Candidate &candidate, Statistics &statistics)
      : matmul(candidate.matmul), norm(candidate.norm), stored(candidate.stored), residuals(candidate.residuals),
        statistics(statistics), builder(matmul), loc(matmul.getLoc()), panels(typeOf(matmul.getRhs())) {}

  void run() {
    Value weight = matmul.getRhs();
    for (OpOperand *residual : residuals)
      normalizeFor(*residual);
    Value sums = norm.beta ? sumOverK(weight, norm.beta) : Value();
    scaleResult(stored ? factorOfRows(matmul.getType().getShape().drop_back()) : Value(), sums && stored ? rounded(sums) : sums);
    matmul.getRhsMutable().assign(scaledWeight(weight));
    matmul.getLhsMutable().assign(fuse::createReshape(builder, loc, norm.rows, typeOf(matmul.getLhs()).getShape()));
    if (!stored)
      kern::setRowNorm(matmul, norm.norm);
    matmul->setLoc(builder.getFusedLoc({norm.ops.front()->getLoc(), loc}));
  }

private:
  using Body = function_ref<Value(OpBuilder &, ValueRange)>;

  /// A generic over panels, whose loops are (panel, column, k) with the k loop a reduction or (panel, k, column); arguments of
  /// the body are in f32.
  Value generic(ArrayRef<Value> inputs, ArrayRef<AffineMap> maps, Value init, AffineMap resultMap, bool reduces, Body body) {
    SmallVector<AffineMap> all(maps);
    all.push_back(resultMap);
    SmallVector<utils::IteratorType> iterators(resultMap.getNumDims(), utils::IteratorType::parallel);
    if (reduces)
      iterators.back() = utils::IteratorType::reduction;
    return linalg::GenericOp::create(builder, loc, init.getType(), inputs, init, all, iterators,
                                     [&](OpBuilder &b, Location, ValueRange arguments) {
                                       SmallVector<Value> wide;
                                       for (Value argument : arguments.drop_back(reduces ? 0 : 1))
                                         wide.push_back(
                                             argument.getType().isF32()
                                                 ? argument
                                                 : arith::ExtFOp::create(b, loc, b.getF32Type(), argument).getResult());
                                       Value result = body(b, wide);
                                       Type type = typeOf(init).getElementType();
                                       if (!type.isF32())
                                         result = arith::TruncFOp::create(b, loc, type, result);
                                       linalg::YieldOp::create(b, loc, result);
                                     })
        ->getResult(0);
  }

  AffineMap map(unsigned loops, ArrayRef<unsigned> dims) const {
    return AffineMap::getMultiDimMapWithTargets(loops, dims, builder.getContext());
  }
  Value empty(ArrayRef<int64_t> shape, Type element) { return tensor::EmptyOp::create(builder, loc, shape, element); }
  Value vectorOfK(Value value) { return fuse::createReshape(builder, loc, value, {panels.getDimSize(1)}); }

  /// The norm takes off the mean of the rows, so the columns of the weight lose theirs.
  bool isCentered() const { return norm.norm.kind == kern::RowNorm::StandardDeviation; }

  /// For each column of each panel the fold over k of what `term` makes of the weight and of `more` (one value for each k, or for
  /// each column), in f32.
  Value foldOverK(Value weight, Value more, float start, Body term) {
    Value first = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(start));
    Value init = empty({panels.getDimSize(0), panels.getDimSize(2)}, builder.getF32Type());
    init = linalg::FillOp::create(builder, loc, first, init).getResult(0);
    SmallVector<Value> inputs{weight};
    SmallVector<AffineMap> maps{map(3, {0, 2, 1})};
    if (more) {
      inputs.push_back(more);
      maps.push_back(typeOf(more).getRank() == 1 ? map(3, {2}) : map(3, {0, 1}));
    }
    return generic(inputs, maps, init, map(3, {0, 1}), /*reduces=*/true, term);
  }

  /// For each column of each panel the sum over k of weight * vector (which may be null).
  Value sumOverK(Value weight, Value vector) {
    return foldOverK(weight, vector ? vectorOfK(vector) : vector, 0, [&](OpBuilder &b, ValueRange x) -> Value {
      Value term = vector ? arith::MulFOp::create(b, loc, x[0], x[1]).getResult() : x[0];
      return arith::AddFOp::create(b, loc, x.back(), term);
    });
  }

  /// What rounding has left of the sum of each column is taken off its element of least magnitude, which can hold it almost
  /// exactly: rows whose mean is far larger than their deviation would multiply it.
  Value withoutColumnSums(Value weight) {
    auto magnitude = [&](OpBuilder &b, Value x) -> Value { return math::AbsFOp::create(b, loc, x); };
    auto isLeast = [&](OpBuilder &b, Value x, Value least) -> Value {
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, magnitude(b, x), least);
    };
    Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
    Value one = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(1));
    Value sums = sumOverK(weight, {});
    Value least = foldOverK(weight, {}, std::numeric_limits<float>::max(), [&](OpBuilder &b, ValueRange x) -> Value {
      return arith::MinimumFOp::create(b, loc, x[1], magnitude(b, x[0]));
    });
    Value count = foldOverK(weight, least, 0, [&](OpBuilder &b, ValueRange x) -> Value {
      Value more = arith::SelectOp::create(b, loc, isLeast(b, x[0], x[1]), one, zero);
      return arith::AddFOp::create(b, loc, x[2], more);
    });
    AffineMap all = map(3, {0, 1, 2}), column = map(3, {0, 2});
    return generic(
        {weight, sums, least, count}, {all, column, column, column}, empty(panels.getShape(), panels.getElementType()), all,
        /*reduces=*/false, [&](OpBuilder &b, ValueRange x) -> Value {
          Value share = arith::DivFOp::create(b, loc, x[1], x[3]);
          return arith::SelectOp::create(b, loc, isLeast(b, x[0], x[2]), arith::SubFOp::create(b, loc, x[0], share), x[0]);
        });
  }

  /// weight * gamma, less the mean of each column where the norm takes off the mean of the rows.
  Value scaledWeight(Value weight) {
    if (!norm.gamma && !isCentered())
      return weight;
    SmallVector<Value> inputs{weight};
    SmallVector<AffineMap> maps{map(3, {0, 1, 2})};
    if (norm.gamma) {
      inputs.push_back(vectorOfK(norm.gamma));
      maps.push_back(map(3, {1}));
    }
    if (isCentered()) {
      inputs.push_back(sumOverK(weight, norm.gamma));
      maps.push_back(map(3, {0, 2}));
    }
    Value share = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(1.f / float(panels.getDimSize(1))));
    Value scaled = generic(inputs, maps, empty(panels.getShape(), panels.getElementType()), map(3, {0, 1, 2}), /*reduces=*/false,
                           [&](OpBuilder &b, ValueRange x) -> Value {
                             Value result = norm.gamma ? arith::MulFOp::create(b, loc, x[0], x[1]).getResult() : x[0];
                             if (!isCentered())
                               return result;
                             Value mean = arith::MulFOp::create(b, loc, x.back(), share);
                             return arith::SubFOp::create(b, loc, result, mean);
                           });
    return isCentered() ? withoutColumnSums(scaled) : scaled;
  }

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
                                                   norm.norm.epsilon, isCentered() ? UnitAttr() : builder.getUnitAttr());
    return fuse::createReshape(builder, loc, factor, shape);
  }

  /// Lets `use` read rows that are normalized where it reads them.
  void normalizeFor(OpOperand &use) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(use.getOwner());
    RankedTensorType type = typeOf(use.get());
    unsigned rank = type.getRank();
    ArrayRef<int64_t> outer = type.getShape().drop_back();
    AffineMap all = builder.getMultiDimIdentityMap(rank), row = all.dropResult(rank - 1);
    SmallVector<Value> inputs{norm.rows, factorOfRows(outer)};
    SmallVector<AffineMap> maps{all, row};
    auto add = [&](Value value, AffineMap map) {
      inputs.push_back(value), maps.push_back(map);
      return inputs.size() - 1;
    };
    size_t mean = 0, gamma = 0, beta = 0;
    if (isCentered()) {
      Value means = kern::MergeMeansOp::create(builder, takenStatistics().getLoc(), rowType(), takenStatistics().getMeans());
      mean = add(fuse::createReshape(builder, loc, means, outer), row);
    }
    if (norm.gamma)
      gamma = add(vectorOfK(norm.gamma), map(rank, {rank - 1}));
    if (norm.beta)
      beta = add(vectorOfK(norm.beta), map(rank, {rank - 1}));
    use.set(generic(inputs, maps, empty(type.getShape(), type.getElementType()), all, /*reduces=*/false,
                    [&](OpBuilder &b, ValueRange x) -> Value {
                      Value y = mean ? arith::SubFOp::create(b, loc, x[0], x[mean]).getResult() : x[0];
                      y = arith::MulFOp::create(b, loc, y, x[1]);
                      if (gamma)
                        y = arith::MulFOp::create(b, loc, y, x[gamma]);
                      return beta ? arith::AddFOp::create(b, loc, y, x[beta]).getResult() : y;
                    }));
  }

  /// `sums` as the weight is stored: the threads of a tile hold them while they multiply.
  Value rounded(Value sums) {
    AffineMap all = map(2, {0, 1});
    return generic({sums}, {all}, empty(typeOf(sums).getShape(), panels.getElementType()), all, /*reduces=*/false,
                   [](OpBuilder &, ValueRange x) { return x[0]; });
  }

  /// Multiplies the rows of the result by `factors` and adds `sums`, one for each column of the panels, to all of them; or to the
  /// parts that it is read in. Either may be null.
  void scaleResult(Value factors, Value sums) {
    if (!factors && !sums)
      return;
    int64_t width = panels.getDimSize(0) * panels.getDimSize(2), columns = matmul.getType().getShape().back();
    Value row = sums ? fuse::createReshape(builder, loc, sums, {width}) : Value();
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
      inputs.push_back(row), maps.push_back(map(rank, {rank - 1}));
    Value result = generic(inputs, maps, empty(typeOf(value).getShape(), builder.getF32Type()), all, /*reduces=*/false,
                           [&](OpBuilder &b, ValueRange x) -> Value {
                             Value scaled = factors ? arith::MulFOp::create(b, loc, x[0], x[1]).getResult() : x[0];
                             return row ? arith::AddFOp::create(b, loc, scaled, x.back()).getResult() : scaled;
                           });
    value.replaceAllUsesExcept(result, result.getDefiningOp());
  }

  kern::MatmulOp matmul;
  fuse::MatchedNorm &norm;
  Value stored;
  ArrayRef<OpOperand *> residuals;
  Statistics &statistics;
  OpBuilder builder;
  Location loc;
  RankedTensorType panels;
};

struct AbsorbNorms : impl::AbsorbNormsBase<AbsorbNorms> {
  void runOnOperation() override {
    SmallVector<Candidate> candidates;
    // The product of each constant that has no norm, or another one than those before it.
    llvm::DenseSet<Attribute> shared;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration() && function.getBody().hasOneBlock())
        collect(function.getBody().front(), candidates, shared);
    while (leaveOutShared(candidates, shared)) {
    }
    Absorber::Statistics statistics;
    for (Candidate &candidate : candidates)
      Absorber(candidate, statistics).run();
    for (Candidate &candidate : candidates)
      for (Operation *op : candidate.norm.ops)
        eraseUnused(op);
  }

  static void collect(Block &block, SmallVector<Candidate> &candidates, llvm::DenseSet<Attribute> &shared) {
    ConstantOps constants(block);
    for (Operation &op : block) {
      auto matmul = dyn_cast<kern::MatmulOp>(op);
      auto conv = dyn_cast<kern::ConvOp>(op);
      if (!matmul && !conv)
        continue;
      if (std::optional<Candidate> candidate = matmul ? candidateOf(matmul, constants) : std::nullopt)
        candidates.push_back(std::move(*candidate));
      else if (Value weight = matmul ? matmul.getRhs() : conv.getFilter(); constants.contains(weight))
        shared.insert_range(ConstantOps::rootsOf(weight));
    }
  }

  /// Takes out candidates that would store a weight a second time; true when there were any.
  static bool leaveOutShared(SmallVector<Candidate> &candidates, llvm::DenseSet<Attribute> &shared) {
    llvm::DenseMap<Attribute, Candidate *> first;
    for (Candidate &candidate : candidates)
      for (Attribute root : ConstantOps::rootsOf(candidate.matmul.getRhs()))
        if (Candidate *other = first.try_emplace(root, &candidate).first->second; other->key != candidate.key)
          shared.insert(root);
    size_t count = candidates.size();
    llvm::erase_if(candidates, [&](Candidate &candidate) {
      llvm::SetVector<Attribute> roots = ConstantOps::rootsOf(candidate.matmul.getRhs());
      bool isShared = llvm::any_of(roots, [&](Attribute root) { return shared.contains(root); });
      if (isShared)
        shared.insert_range(roots);
      return isShared;
    });
    return candidates.size() != count;
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
