//===- FormGelu.cpp - decomposed GELU → one operator ----------------------===//
#include "compiler/passes/normalize/Match.h"
#include "compiler/passes/normalize/Passes.h"
#include <cmath>

using namespace mlir;

namespace ogc::normalize {

#define GEN_PASS_DEF_FORMGELU
#include "compiler/passes/normalize/Passes.h.inc"

namespace {

/// f of 1 + f.
Operation *matchOnePlus(Value value, StringRef function) {
  Operation *add = onlyProducer(value, "Add");
  if (!add)
    return nullptr;
  auto [term, one] = splitOperands(add, [](Value v) { return isScalarNear(v, 1.0); });
  return one ? onlyProducer(term, function) : nullptr;
}

bool isNearFor(Value like, double a, double b) { return isNear(a, b, cast<TensorType>(like.getType()).getElementType()); }

/// c * x with one factor x.
bool isScaled(Value value, Value x, double scale) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  Product product = factorize(op);
  return product.factors.size() == 1 && product.factors[0] == x && isNearFor(x, product.scale, scale);
}

/// c * x^power, as Pow or as products.
bool isMonomial(Value value, Value x, double scale, unsigned power) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  Product product = factorize(op);
  unsigned found = 0;
  for (Value factor : product.factors) {
    Operation *pow = producer(factor, "Pow");
    std::optional<double> exponent = pow ? scalarOf(pow->getOperand(1)) : std::nullopt;
    if (factor == x)
      ++found;
    else if (pow && pow->getOperand(0) == x && exponent && (*exponent == 2 || *exponent == 3))
      found += static_cast<unsigned>(*exponent);
    else if (Operation *square = producer(factor, "Mul"); square && square->getOperand(0) == x && square->getOperand(1) == x)
      found += 2;
    else
      return false;
  }
  return found == power && isNearFor(x, product.scale, scale);
}

/// sqrt(2 / pi) * (x + 0.044715 * x^3), also with x pulled out.
bool isTanhArgument(Value value, Value x) {
  constexpr double cubic = 0.044715;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  Product product = factorize(op);
  if (!isNearFor(x, product.scale, std::sqrt(2.0 / M_PI)) || product.factors.empty() || product.factors.size() > 2)
    return false;
  bool isPulledOut = product.factors.size() == 2;
  if (isPulledOut && !llvm::is_contained(product.factors, x))
    return false;
  Value sum = isPulledOut && product.factors[0] == x ? product.factors[1] : product.factors[0];
  Operation *add = onlyProducer(sum, "Add");
  if (!add)
    return false;
  auto [rest, first] = splitOperands(add, [&](Value v) { return isPulledOut ? isScalarNear(v, 1.0) : v == x; });
  return first && isMonomial(rest, x, cubic, isPulledOut ? 2 : 3);
}

/// 0.5 * x * (1 + erf(x / sqrt(2))), or with tanh, multiplied in any order.
struct FormGeluFromProduct : RewritePattern {
  FormGeluFromProduct(StringRef root, MLIRContext *context) : RewritePattern(root, 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    Product product = factorize(op);
    if (product.factors.size() != 2)
      return failure();
    for (unsigned i : {0u, 1u}) {
      Value x = product.factors[i], gate = product.factors[1 - i];
      if (x.getType() != op->getResult(0).getType() || !isNearFor(x, product.scale, 0.5))
        continue;
      StringRef approximate;
      if (Operation *erf = matchOnePlus(gate, "Erf"); erf && isScaled(erf->getOperand(0), x, std::sqrt(0.5)))
        approximate = "none";
      else if (Operation *tanh = matchOnePlus(gate, "Tanh"); tanh && isTanhArgument(tanh->getOperand(0), x))
        approximate = "tanh";
      else
        continue;
      NamedAttribute attribute = rewriter.getNamedAttr("approximate", rewriter.getStringAttr(approximate));
      Value formed = build(rewriter, op->getLoc(), "Gelu", x, attribute);
      if (!formed)
        return failure();
      rewriter.replaceOp(op, formed);
      return success();
    }
    return failure();
  }
};

struct FormGeluPass : impl::FormGeluBase<FormGeluPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FormGeluFromProduct>("onnx.Mul", &getContext());
    patterns.add<FormGeluFromProduct>("onnx.Div", &getContext());
    if (failed(applyTo(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace ogc::normalize
