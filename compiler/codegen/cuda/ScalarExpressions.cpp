//===- ScalarExpressions.cpp - arith and math operations as expressions ---===//
//
// Every operation is one C++ expression. f16 and bf16 operands are extended to f32, the result is rounded back: for the
// operations of arith this is exact rounding, as f32 has more than twice their precision. Integer arithmetic wraps, so it is done
// on unsigned types.
//
#include "compiler/codegen/cuda/CudaPrinter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ogc::codegen {

namespace {

/// One operation being printed: its operands as text and the helpers that wrap them.
struct Printing {
  Operation *op;
  ArrayRef<std::string> operands;
  const CudaTypes &types;

  Type resultType() const { return op->getResult(0).getType(); }
  Type operandType(unsigned i) const { return op->getOperand(i).getType(); }
  static bool isNarrowFloat(Type type) { return type.isF16() || type.isBF16(); }

  /// A float operand in the type that computes: float for the 16-bit types.
  std::string real(unsigned i) const { return isNarrowFloat(operandType(i)) ? "ogc::toFloat(" + operands[i] + ")" : operands[i]; }
  /// A float (or double) expression as a value of `type`.
  static std::string narrow(Type type, const std::string &text) {
    if (type.isF16())
      return "ogc::toF16(" + text + ")";
    return type.isBF16() ? "ogc::toBF16(" + text + ")" : text;
  }
  std::string asUnsigned(unsigned i) const {
    Type type = operandType(i);
    return type.isInteger(1) ? operands[i] : "(" + types.unsignedName(type) + ")" + operands[i];
  }
  /// An integer operand as a signed number; i1 holds 0 and -1.
  std::string asSigned(unsigned i) const { return operandType(i).isInteger(1) ? "-(int)" + operands[i] : operands[i]; }
  std::string cast(const std::string &text) const { return "(" + types.name(resultType()) + ")(" + text + ")"; }

  std::string binaryFloat(StringRef symbol) const { return narrow(resultType(), real(0) + " " + symbol.str() + " " + real(1)); }
  /// Rounded by itself: `*` might become part of a fused multiply-add, and what is then rounded to an integer or an index would
  /// differ from the cpu target's, which never fuses.
  std::string product() const {
    return narrow(resultType(), (resultType().isF64() ? "__dmul_rn(" : "__fmul_rn(") + real(0) + ", " + real(1) + ")");
  }
  std::string wrapping(StringRef symbol) const {
    if (resultType().isIndex())
      return operands[0] + " " + symbol.str() + " " + operands[1];
    if (resultType().isInteger(1)) // modulo two: sum and difference are xor, the product is and
      return operands[0] + (symbol == "*" ? " & " : " ^ ") + operands[1];
    return cast(asUnsigned(0) + " " + symbol.str() + " " + asUnsigned(1));
  }
  std::string bitwise(StringRef symbol) const { return cast(operands[0] + " " + symbol.str() + " " + operands[1]); }
  std::string divide(StringRef symbol, bool isUnsigned) const {
    return isUnsigned ? cast(asUnsigned(0) + " " + symbol.str() + " " + asUnsigned(1))
                      : cast(asSigned(0) + " " + symbol.str() + " " + asSigned(1));
  }
  std::string pick(StringRef relation, bool isUnsigned) const {
    std::string a = isUnsigned ? asUnsigned(0) : asSigned(0), b = isUnsigned ? asUnsigned(1) : asSigned(1);
    return a + " " + relation.str() + " " + b + " ? " + operands[0] + " : " + operands[1];
  }
  /// A call on float operands: `name` for double, with an f appended for float.
  std::string call(StringRef name) const {
    std::string text = name.str() + (operandType(0).isF64() ? "(" : "f(");
    for (unsigned i = 0; i < operands.size(); ++i)
      text += (i ? ", " : "") + real(i);
    return narrow(resultType(), text + ")");
  }
  /// A call of a helper of `ogc/scalar.cuh`, overloaded on the type.
  std::string helper(StringRef name) const {
    std::string text = "ogc::" + name.str() + "(";
    for (unsigned i = 0; i < operands.size(); ++i)
      text += (i ? ", " : "") + (isa<FloatType>(operandType(i)) ? real(i) : operands[i]);
    text += ")";
    return isa<FloatType>(resultType()) ? narrow(resultType(), text) : text;
  }
};

std::string compareFloat(const Printing &p, arith::CmpFPredicate predicate) {
  std::string a = p.real(0), b = p.real(1);
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return "false";
  case P::AlwaysTrue:
    return "true";
  case P::OEQ:
    return a + " == " + b;
  case P::OGT:
    return a + " > " + b;
  case P::OGE:
    return a + " >= " + b;
  case P::OLT:
    return a + " < " + b;
  case P::OLE:
    return a + " <= " + b;
  case P::ONE:
    return a + " < " + b + " || " + a + " > " + b;
  case P::ORD:
    return a + " == " + a + " && " + b + " == " + b;
  case P::UEQ:
    return "!(" + a + " < " + b + " || " + a + " > " + b + ")";
  case P::UGT:
    return "!(" + a + " <= " + b + ")";
  case P::UGE:
    return "!(" + a + " < " + b + ")";
  case P::ULT:
    return "!(" + a + " >= " + b + ")";
  case P::ULE:
    return "!(" + a + " > " + b + ")";
  case P::UNE:
    return a + " != " + b;
  case P::UNO:
    return a + " != " + a + " || " + b + " != " + b;
  }
  return "";
}

std::string compareInt(const Printing &p, arith::CmpIPredicate predicate) {
  auto relation = [&](StringRef symbol, bool isUnsigned) {
    return isUnsigned ? p.asUnsigned(0) + " " + symbol.str() + " " + p.asUnsigned(1)
                      : p.asSigned(0) + " " + symbol.str() + " " + p.asSigned(1);
  };
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return relation("==", false);
  case P::ne:
    return relation("!=", false);
  case P::slt:
    return relation("<", false);
  case P::sle:
    return relation("<=", false);
  case P::sgt:
    return relation(">", false);
  case P::sge:
    return relation(">=", false);
  case P::ult:
    return relation("<", true);
  case P::ule:
    return relation("<=", true);
  case P::ugt:
    return relation(">", true);
  case P::uge:
    return relation(">=", true);
  }
  return "";
}

std::string convertInteger(const Printing &p, bool isSigned) {
  if (p.resultType().isInteger(1))
    return "(" + p.operands[0] + " & 1) != 0";
  if (p.operandType(0).isInteger(1))
    return p.cast(isSigned ? "-(int)" + p.operands[0] : p.operands[0]);
  return p.cast(isSigned ? p.operands[0] : p.asUnsigned(0));
}

std::string integerToFloat(const Printing &p, bool isSigned) {
  std::string value = isSigned ? p.asSigned(0) : p.asUnsigned(0);
  Type type = p.resultType();
  // Through double for bf16, whose range needs integers that f32 would round a first time; f16 ends before f32 stops being exact.
  StringRef through = type.isF64() || type.isBF16() ? "(double)(" : "(float)(";
  return Printing::narrow(type, through.str() + value + ")");
}

std::string floatToInteger(const Printing &p, bool isSigned) {
  Type type = p.resultType();
  // Narrow integers through 32 bits, so that an in-range value keeps its bits.
  StringRef through =
      p.types.width(type) == 64 ? (isSigned ? "(long long)" : "(unsigned long long)") : (isSigned ? "(int)" : "(unsigned int)");
  std::string wide = through.str() + p.real(0);
  return type.isInteger(1) ? "(" + wide + " & 1) != 0" : p.cast(wide);
}

std::string convertFloat(const Printing &p) {
  Type from = p.operandType(0), to = p.resultType();
  if (from == to)
    return p.operands[0];
  if (Printing::isNarrowFloat(to))
    return Printing::narrow(to, p.real(0));
  if (to.isF32() && Printing::isNarrowFloat(from))
    return p.real(0);
  return "(" + p.types.name(to) + ")" + p.real(0);
}

std::string arithExpression(const Printing &p) {
  using namespace arith;
  return TypeSwitch<Operation *, std::string>(p.op)
      .Case<AddFOp>([&](auto) { return p.binaryFloat("+"); })
      .Case<SubFOp>([&](auto) { return p.binaryFloat("-"); })
      .Case<MulFOp>([&](auto) { return p.product(); })
      .Case<DivFOp>([&](auto) { return p.binaryFloat("/"); })
      .Case<RemFOp>([&](auto) { return p.call("fmod"); })
      .Case<NegFOp>([&](auto) { return Printing::narrow(p.resultType(), "-" + p.real(0)); })
      .Case<MaximumFOp>([&](auto) { return p.helper("maximum"); })
      .Case<MinimumFOp>([&](auto) { return p.helper("minimum"); })
      .Case<MaxNumFOp>([&](auto) { return p.call("fmax"); })
      .Case<MinNumFOp>([&](auto) { return p.call("fmin"); })
      .Case<CmpFOp>([&](auto compare) { return compareFloat(p, compare.getPredicate()); })
      .Case<AddIOp>([&](auto) { return p.wrapping("+"); })
      .Case<SubIOp>([&](auto) { return p.wrapping("-"); })
      .Case<MulIOp>([&](auto) { return p.wrapping("*"); })
      .Case<DivSIOp>([&](auto) { return p.divide("/", false); })
      .Case<DivUIOp>([&](auto) { return p.divide("/", true); })
      .Case<RemSIOp>([&](auto) { return p.divide("%", false); })
      .Case<RemUIOp>([&](auto) { return p.divide("%", true); })
      .Case<FloorDivSIOp>([&](auto) { return p.cast("ogc::floorDiv(" + p.asSigned(0) + ", " + p.asSigned(1) + ")"); })
      .Case<CeilDivSIOp>([&](auto) { return p.cast("ogc::ceilDiv(" + p.asSigned(0) + ", " + p.asSigned(1) + ")"); })
      .Case<CeilDivUIOp>([&](auto) { return p.cast("ogc::ceilDiv(" + p.asUnsigned(0) + ", " + p.asUnsigned(1) + ")"); })
      .Case<AndIOp>([&](auto) { return p.bitwise("&"); })
      .Case<OrIOp>([&](auto) { return p.bitwise("|"); })
      .Case<XOrIOp>([&](auto) { return p.bitwise("^"); })
      .Case<ShLIOp>([&](auto) { return p.cast(p.asUnsigned(0) + " << " + p.operands[1]); })
      .Case<ShRSIOp>([&](auto) { return p.cast(p.asSigned(0) + " >> " + p.operands[1]); })
      .Case<ShRUIOp>([&](auto) { return p.cast(p.asUnsigned(0) + " >> " + p.operands[1]); })
      .Case<MinSIOp>([&](auto) { return p.pick("<", false); })
      .Case<MaxSIOp>([&](auto) { return p.pick(">", false); })
      .Case<MinUIOp>([&](auto) { return p.pick("<", true); })
      .Case<MaxUIOp>([&](auto) { return p.pick(">", true); })
      .Case<CmpIOp>([&](auto compare) { return compareInt(p, compare.getPredicate()); })
      .Case<ExtSIOp, IndexCastOp, TruncIOp>([&](auto) { return convertInteger(p, true); })
      .Case<ExtUIOp, IndexCastUIOp>([&](auto) { return convertInteger(p, false); })
      .Case<SIToFPOp>([&](auto) { return integerToFloat(p, true); })
      .Case<UIToFPOp>([&](auto) { return integerToFloat(p, false); })
      .Case<FPToSIOp>([&](auto) { return floatToInteger(p, true); })
      .Case<FPToUIOp>([&](auto) { return floatToInteger(p, false); })
      .Case<ExtFOp, TruncFOp>([&](auto) { return convertFloat(p); })
      .Case<BitcastOp>([&](auto) { return "ogc::bitcast<" + p.types.name(p.resultType()) + ">(" + p.operands[0] + ")"; })
      .Case<SelectOp>([&](auto) { return p.operands[0] + " ? " + p.operands[1] + " : " + p.operands[2]; })
      .Default([](Operation *) { return std::string(); });
}

/// The C function of each math operation on floats that has one: the accurate library forms, never the fast ones.
const llvm::StringMap<StringRef> &mathCalls() {
  static const llvm::StringMap<StringRef> calls = {
      {"math.absf", "fabs"},      {"math.acos", "acos"},        {"math.acosh", "acosh"}, {"math.asin", "asin"},
      {"math.asinh", "asinh"},    {"math.atan", "atan"},        {"math.atan2", "atan2"}, {"math.atanh", "atanh"},
      {"math.cbrt", "cbrt"},      {"math.ceil", "ceil"},        {"math.cos", "cos"},     {"math.cosh", "cosh"},
      {"math.erf", "erf"},        {"math.erfc", "erfc"},        {"math.exp", "exp"},     {"math.exp2", "exp2"},
      {"math.expm1", "expm1"},    {"math.floor", "floor"},      {"math.fma", "fma"},     {"math.log", "log"},
      {"math.log10", "log10"},    {"math.log1p", "log1p"},      {"math.log2", "log2"},   {"math.powf", "pow"},
      {"math.round", "round"},    {"math.rsqrt", "rsqrt"},      {"math.sin", "sin"},     {"math.sinh", "sinh"},
      {"math.roundeven", "rint"}, {"math.sqrt", "sqrt"},        {"math.tan", "tan"},     {"math.tanh", "tanh"},
      {"math.trunc", "trunc"},    {"math.copysign", "copysign"}};
  return calls;
}

/// Operations that `ogc/scalar.cuh` overloads on the operand type.
const llvm::StringMap<StringRef> &mathHelpers() {
  static const llvm::StringMap<StringRef> helpers = {
      {"math.isnan", "isNaN"},   {"math.isinf", "isInf"},    {"math.isfinite", "isFinite"}, {"math.isnormal", "isNormal"},
      {"math.fpowi", "powi"},    {"math.ctpop", "popCount"}, {"math.ctlz", "leadingZeros"}, {"math.cttz", "trailingZeros"},
      {"math.absi", "absolute"}, {"math.ipowi", "ipow"},     {"math.clampf", "clampTo"}};
  return helpers;
}

} // namespace

std::string scalarExpression(Operation *op, ArrayRef<std::string> operands, const CudaTypes &types) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0)
    return "";
  auto scalar = [&](Type type) { return !isa<VectorType>(type) && !types.name(type).empty(); };
  if (!llvm::all_of(op->getOperandTypes(), scalar) || !scalar(op->getResult(0).getType()))
    return "";
  Printing p{op, operands, types};
  StringRef name = op->getName().getStringRef();
  if (auto it = mathCalls().find(name); it != mathCalls().end())
    return p.call(it->second);
  if (auto it = mathHelpers().find(name); it != mathHelpers().end())
    return p.helper(it->second);
  return arithExpression(p);
}

} // namespace ogc::codegen
