//===- AbsorbableNorms.cpp - norms that the products behind them can do ---===//
#include "compiler/passes/fuse/AbsorbableNorms.h"

#include "compiler/passes/fuse/ConstantOps.h"
#include "compiler/passes/fuse/Grouping.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::fuse {

static bool hasLastDimOf(Value value, Value other) {
  return typeOf(value).getRank() > 0 && typeOf(value).getShape().back() == typeOf(other).getShape().back();
}

/// `value` from before reshapes that leave the rows as they are; nothing but the next of them reads any.
static Value withoutRowReshapes(Value value) {
  while (value.hasOneUse()) {
    Operation *def = value.getDefiningOp();
    if (!def || !isReshapeOp(def) || !hasLastDimOf(def->getOperand(0), value))
      break;
    value = def->getOperand(0);
  }
  return value;
}

/// False for rows that one kernel would compute and normalize: an input, or what an anchor gives and element-wise operations go
/// on with.
static bool areStoredAnyway(Value rows, unsigned depth = 8) {
  Operation *def = rows.getDefiningOp();
  if (!def || kern::isAnchor(def))
    return true;
  if (depth == 0)
    return false;
  if (isReshapeOp(def) || isa<tensor::ExtractSliceOp>(def))
    return areStoredAnyway(def->getOperand(0), depth - 1);
  auto generic = dyn_cast<linalg::GenericOp>(def);
  return generic && isElementwise(generic) && llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
           return operand->get().getDefiningOp() && mapOf(*operand).isIdentity() && areStoredAnyway(operand->get(), depth - 1);
         });
}

/// True where the region of a product will compute `rows`, element by element, and can store statistics beside them. What lies
/// between is read once: a value that others read, too, is stored, and another kernel goes on with it.
static bool comeWithStatistics(Value rows, unsigned depth = 8) {
  Operation *def = rows.getDefiningOp();
  if (!def || depth == 0)
    return false;
  if (auto matmul = dyn_cast<kern::MatmulOp>(def))
    return kern::canStoreStatistics(matmul);
  if (isReshapeOp(def))
    return def->getOperand(0).hasOneUse() && hasLastDimOf(def->getOperand(0), rows) &&
           comeWithStatistics(def->getOperand(0), depth - 1);
  auto generic = dyn_cast<linalg::GenericOp>(def);
  return generic && isElementwise(generic) && llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *operand) {
           return operand->get().hasOneUse() && operand->get().getDefiningOp() && mapOf(*operand).isIdentity() &&
                  comeWithStatistics(operand->get(), depth - 1);
         });
}

/// `rows` as they are stored, from before reshapes; null where no statistics come with them.
static Value storedWithStatistics(Value rows) {
  while (isReshapeOp(rows.getDefiningOp()) && hasLastDimOf(rows.getDefiningOp()->getOperand(0), rows))
    rows = rows.getDefiningOp()->getOperand(0);
  return isa_and_nonnull<linalg::GenericOp>(rows.getDefiningOp()) && comeWithStatistics(rows) ? rows : Value();
}

/// True for a use by an element-wise operation that goes on with what a product gives, in that product's region.
static bool isResidual(OpOperand &use) {
  auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
  return generic && isElementwise(generic) && !generic.isDpsInit(&use) && mapOf(use).isIdentity() &&
         llvm::any_of(generic.getDpsInputOperands(), [&](OpOperand *other) {
           return other != &use && other->get() != use.get() && mapOf(*other).isIdentity() && comeWithStatistics(other->get());
         });
}

/// The uses of `normalized` but the one that `matmul` reads it by; nothing where one of them is no residual.
static std::optional<std::vector<OpOperand *>> residualsOf(Value normalized, kern::MatmulOp matmul) {
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

/// The norm of the rows that `matmul` reads, where their spread can be had: few rows are summed as they are read, of many the
/// kernel that computes them stores statistics.
static std::optional<AbsorbableNorm> absorbableNormOf(kern::MatmulOp matmul, const ConstantOps &constants) {
  bool sums = kern::canNormalizeRows(matmul);
  if (!(sums || kern::canScaleRows(matmul)) || kern::rowNormOf(matmul) || !constants.contains(matmul.getRhs()))
    return std::nullopt;
  Value normalized = withoutRowReshapes(matmul.getLhs());
  std::optional<std::vector<OpOperand *>> residuals = residualsOf(normalized, matmul);
  if (!residuals || (sums && !residuals->empty()))
    return std::nullopt;
  std::optional<MatchedNorm> norm = matchRowNorm(normalized);
  auto isVariable = [&](Value value) { return value && !constants.contains(value); };
  if (!norm || isVariable(norm->gamma) || isVariable(norm->beta) || constants.contains(norm->rows))
    return std::nullopt;
  Value stored = sums ? Value() : storedWithStatistics(norm->rows);
  if (sums ? !areStoredAnyway(norm->rows) : !stored)
    return std::nullopt;
  // The variance is computed as E[x^2] - E[x]^2.
  if (norm->isCentered() && typeOf(matmul.getLhs()).getElementTypeBitWidth() != 16)
    return std::nullopt;
  return AbsorbableNorm{matmul, std::move(*norm), stored, std::move(*residuals)};
}

/// What two norms have in common where one weight serves the products behind both.
static auto keyOf(const MatchedNorm &norm) {
  auto rootsOf = [](Value value) { return value ? ConstantOps::rootsOf(value) : llvm::SetVector<Attribute>(); };
  return std::tuple{norm.norm.kind, rootsOf(norm.gamma), rootsOf(norm.beta)};
}

/// Appends the norms of a block to `norms`, and to `shared` the constants that products without one read.
static void collect(Block &block, std::vector<AbsorbableNorm> &norms, llvm::DenseSet<Attribute> &shared) {
  ConstantOps constants(block);
  for (Operation &op : block) {
    auto matmul = dyn_cast<kern::MatmulOp>(op);
    auto conv = dyn_cast<kern::ConvOp>(op);
    if (!matmul && !conv)
      continue;
    if (std::optional<AbsorbableNorm> norm = matmul ? absorbableNormOf(matmul, constants) : std::nullopt)
      norms.push_back(std::move(*norm));
    else if (Value weight = matmul ? matmul.getRhs() : conv.getFilter(); constants.contains(weight))
      shared.insert_range(ConstantOps::rootsOf(weight));
  }
}

/// Takes out norms whose products would store a weight a second time; true when there were any. The products of these go on to
/// read their constants as they are.
static bool leaveOutShared(std::vector<AbsorbableNorm> &norms, llvm::DenseSet<Attribute> &shared) {
  llvm::DenseMap<Attribute, AbsorbableNorm *> first;
  for (AbsorbableNorm &norm : norms)
    for (Attribute root : ConstantOps::rootsOf(norm.matmul.getRhs()))
      if (AbsorbableNorm *other = first.try_emplace(root, &norm).first->second; keyOf(other->norm) != keyOf(norm.norm))
        shared.insert(root);
  size_t count = norms.size();
  llvm::erase_if(norms, [&](AbsorbableNorm &norm) {
    llvm::SetVector<Attribute> roots = ConstantOps::rootsOf(norm.matmul.getRhs());
    bool isShared = llvm::any_of(roots, [&](Attribute root) { return shared.contains(root); });
    if (isShared)
      shared.insert_range(roots);
    return isShared;
  });
  return norms.size() != count;
}

std::vector<AbsorbableNorm> absorbableNorms(ModuleOp module) {
  std::vector<AbsorbableNorm> norms;
  // The constants of products that have no norm, or another one than those before them.
  llvm::DenseSet<Attribute> shared;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isDeclaration() && function.getBody().hasOneBlock())
      collect(function.getBody().front(), norms, shared);
  while (leaveOutShared(norms, shared)) {
  }
  return norms;
}

} // namespace ogc::fuse
