//===- GemmForm.cpp - kernels that are one library product ----------------===//
//
// The yielded tensor is followed upwards as a scalar expression of one element of the product: element-wise operations, reshapes
// and conversions between float types keep the position of an element, so what is left are sums, activations and the places where
// inputs are read.
//
#include "compiler/passes/plan/GemmForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace ogc::plan {

namespace {

/// One scalar of the epilogue; at most one of the members is set, none where the matcher knows nothing.
struct Term {
  bool isProduct = false;
  Value operation;                ///< the result of a scalar operation
  std::optional<double> constant; ///< a scalar, splat or filled constant
  BlockArgument input;            ///< an argument of the kernel, read by `operand`
  OpOperand *operand = nullptr;

  bool operator==(const Term &other) const {
    return (isProduct && other.isProduct) || (operation && operation == other.operation);
  }
  template <typename OpTy> OpTy as() const { return operation ? operation.getDefiningOp<OpTy>() : OpTy(); }
};

Value stripReshapes(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool isElementwise(linalg::GenericOp generic) {
  return generic.getNumParallelLoops() == generic.getNumLoops() &&
         llvm::all_of(generic.getDpsInitsMutable(),
                      [&](OpOperand &init) { return generic.getMatchingIndexingMap(&init).isIdentity(); });
}

Term constantTerm(Attribute value) {
  Term term;
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(value))
    value = splat.getSplatValue<Attribute>();
  if (auto number = dyn_cast_or_null<FloatAttr>(value))
    term.constant = number.getValueAsDouble();
  return term;
}

Term termOf(Value scalar);

/// An element of a tensor of the body, at the position of the product's element.
Term tensorTerm(Value tensor) {
  tensor = stripReshapes(tensor);
  Term term;
  if (tensor.getDefiningOp<kern::MatmulOp>())
    term.isProduct = true;
  else if (auto generic = tensor.getDefiningOp<linalg::GenericOp>(); generic && isElementwise(generic))
    return termOf(generic.getBlock()->getTerminator()->getOperand(cast<OpResult>(tensor).getResultNumber()));
  return term;
}

/// What an element-wise operation reads through one of its inputs.
Term operandTerm(linalg::GenericOp generic, BlockArgument argument) {
  OpOperand *operand = generic.getMatchingOpOperand(argument);
  Term term;
  if (!operand || !generic.isDpsInput(operand))
    return term;
  Value tensor = stripReshapes(operand->get());
  Attribute value;
  if (matchPattern(tensor, m_Constant(&value)))
    return constantTerm(value);
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>(); fill && matchPattern(fill.getInputs()[0], m_Constant(&value)))
    return constantTerm(value);
  if (auto input = dyn_cast<BlockArgument>(tensor)) {
    term.input = input;
    term.operand = operand;
    return term;
  }
  return generic.getMatchingIndexingMap(operand).isIdentity() ? tensorTerm(tensor) : term;
}

Term termOf(Value scalar) {
  // The library rounds once at the end, never less exactly than the conversions in between.
  while (Operation *op = scalar.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    scalar = op->getOperand(0);
  }
  Attribute value;
  if (matchPattern(scalar, m_Constant(&value)))
    return constantTerm(value);
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    auto generic = dyn_cast<linalg::GenericOp>(argument.getOwner()->getParentOp());
    return generic ? operandTerm(generic, argument) : Term();
  }
  Term term;
  term.operation = scalar;
  return term;
}

/// Calls `fn` with the operands of `term` in both orders, when it is an OpTy, until one call returns true.
template <typename OpTy> bool eitherOrder(const Term &term, llvm::function_ref<bool(const Term &, const Term &)> fn) {
  auto op = term.as<OpTy>();
  if (!op)
    return false;
  Term a = termOf(op->getOperand(0)), b = termOf(op->getOperand(1));
  return fn(a, b) || fn(b, a);
}

bool isNumber(const Term &term, double number) {
  return term.constant && std::abs(*term.constant - number) <= 1e-6 * std::abs(number);
}

/// True for `OpTy(number, rest)`; sets `rest`.
template <typename OpTy> bool withNumber(const Term &term, double number, Term &rest) {
  return eitherOrder<OpTy>(term, [&](const Term &a, const Term &b) {
    if (!isNumber(a, number))
      return false;
    rest = b;
    return true;
  });
}

bool isCube(const Term &term, const Term &x) {
  return eitherOrder<arith::MulFOp>(term, [&](const Term &square, const Term &factor) {
    return factor == x && eitherOrder<arith::MulFOp>(square, [&](const Term &a, const Term &b) { return a == x && b == x; });
  });
}

/// True for 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); sets `x`.
bool isGeluTanh(const Term &term, Term &x) {
  return eitherOrder<arith::MulFOp>(term, [&](const Term &half, const Term &gate) {
    Term curve, sum;
    if (!withNumber<arith::MulFOp>(half, 0.5, x) || !withNumber<arith::AddFOp>(gate, 1.0, curve))
      return false;
    auto tanh = curve.as<math::TanhOp>();
    if (!tanh || !withNumber<arith::MulFOp>(termOf(tanh.getOperand()), 0.7978845608028654, sum))
      return false;
    return eitherOrder<arith::AddFOp>(sum, [&](const Term &linear, const Term &scaled) {
      Term cube;
      return linear == x && withNumber<arith::MulFOp>(scaled, 0.044715, cube) && isCube(cube, x);
    });
  });
}

/// The addends of a sum, no more than one too many: product, bias and residual are all that a library adds.
void collectAddends(const Term &term, SmallVectorImpl<Term> &addends) {
  if (addends.size() > 3)
    return;
  auto add = term.as<arith::AddFOp>();
  if (!add)
    return addends.push_back(term);
  for (Value operand : add->getOperands())
    collectAddends(termOf(operand), addends);
}

/// The number of elements of an input that is read whole, along the last dimensions of its reader in their order; else zero.
int64_t trailingElements(const Term &term) {
  auto reader = cast<linalg::GenericOp>(term.operand->getOwner());
  SmallVector<int64_t> loops = reader.getStaticLoopRanges();
  SmallVector<unsigned> used, all;
  for (auto [i, extent] : llvm::enumerate(loops))
    if (extent != 1)
      all.push_back(static_cast<unsigned>(i));
  int64_t elements = 1;
  auto type = cast<RankedTensorType>(term.operand->get().getType());
  if (!type.hasStaticShape() || llvm::any_of(loops, ShapedType::isDynamic))
    return 0;
  for (auto [expr, extent] : llvm::zip(reader.getMatchingIndexingMap(term.operand).getResults(), type.getShape())) {
    if (extent == 1)
      continue;
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || loops[dim.getPosition()] != extent)
      return 0;
    used.push_back(dim.getPosition());
    elements *= extent;
  }
  return used.size() <= all.size() && ArrayRef(all).take_back(used.size()) == ArrayRef(used) ? elements : 0;
}

/// Pairs that cuBLASLt has.
bool isLibraryType(Type element, Type result) {
  return (element.isF32() && result.isF32()) || ((element.isF16() || element.isBF16()) && (result == element || result.isF32()));
}

/// Matches one kernel.
class Matcher {
public:
  std::optional<GemmForm> match(kern::KernelOp kernel) {
    Block &body = kernel.getBody().front();
    auto yield = body.empty() ? kern::YieldOp() : dyn_cast<kern::YieldOp>(body.back());
    auto matmul = dyn_cast_or_null<kern::MatmulOp>(kern::findAnchor(body));
    if (kernel.getSchedule() != kern::Schedule::Matmul || !matmul || matmul.getPacked() || !yield || yield.getNumOperands() != 1)
      return std::nullopt;
    form.resultType = cast<RankedTensorType>(yield.getOperand(0).getType()).getElementType();
    if (!matchProduct(matmul) || !matchEpilogue(tensorTerm(yield.getOperand(0))))
      return std::nullopt;
    // An argument of two roles or of none would need another list of arguments for the fallback than for the library.
    for (BlockArgument argument : {lhs, rhs, bias, residual})
      if (argument)
        form.order.push_back(argument.getArgNumber());
    llvm::SmallSet<unsigned, 4> distinct(form.order.begin(), form.order.end());
    if (distinct.size() != form.order.size() || form.order.size() != body.getNumArguments())
      return std::nullopt;
    form.hasBias = bias != nullptr;
    form.hasResidual = residual != nullptr;
    return form;
  }

private:
  bool matchProduct(kern::MatmulOp matmul) {
    lhs = dyn_cast<BlockArgument>(stripReshapes(matmul.getLhs()));
    rhs = dyn_cast<BlockArgument>(stripReshapes(matmul.getRhs()));
    auto left = cast<RankedTensorType>(matmul.getLhs().getType()), right = cast<RankedTensorType>(matmul.getRhs().getType());
    form.elementType = left.getElementType();
    if (!lhs || !rhs || !isLibraryType(form.elementType, form.resultType))
      return false;
    form.transposeB = matmul.getTransposeRhs();
    form.tf32 = matmul.getMath() == kern::MathMode::TF32 && form.elementType.isF32();
    form.batch = left.getDimSize(0);
    form.m = left.getDimSize(1);
    form.k = left.getDimSize(2);
    form.n = right.getDimSize(form.transposeB ? 1 : 2);
    constexpr int64_t limit = int64_t(1) << 31; // the library counts in 32 bits
    auto isCount = [](int64_t x) { return x > 0 && x < limit; };
    if (!llvm::all_of(ArrayRef<int64_t>{form.batch, form.m, form.n, form.k}, isCount))
      return false;
    if (right.getDimSize(0) == 1) {
      // One right operand for all: the batch is more rows.
      form.m *= form.batch;
      form.batch = 1;
    }
    return isCount(form.m);
  }

  bool matchEpilogue(Term root) {
    Term inner = root;
    if (withNumber<arith::MaximumFOp>(root, 0.0, inner) || withNumber<arith::MaxNumFOp>(root, 0.0, inner))
      form.activation = "relu";
    else if (isGeluTanh(root, inner))
      form.activation = "gelu_tanh";
    else
      inner = root;
    SmallVector<Term> addends;
    collectAddends(inner, addends);
    // The library would add a residual in front of the activation, and the runtime refuses the pair.
    return llvm::count_if(addends, [](const Term &term) { return term.isProduct; }) == 1 &&
           llvm::all_of(addends, [&](const Term &term) { return term.isProduct || matchAddend(term); }) &&
           !(residual && !form.activation.empty());
  }

  bool matchAddend(const Term &term) {
    if (!term.input || cast<RankedTensorType>(term.input.getType()).getElementType() != form.resultType)
      return false;
    int64_t elements = trailingElements(term);
    BlockArgument &role = elements == form.n && !bias ? bias : residual;
    if (role || (&role == &residual && elements != form.batch * form.m * form.n))
      return false;
    role = term.input;
    return true;
  }

  GemmForm form;
  BlockArgument lhs, rhs, bias, residual;
};

} // namespace

std::optional<GemmForm> matchGemm(kern::KernelOp kernel) { return Matcher().match(kernel); }

} // namespace ogc::plan
