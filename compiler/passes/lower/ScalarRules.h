//===- ScalarRules.h - the meaning of operators on single elements --------===//
//
// The one place for what ONNX leaves to an implementation: casts, integer division, Mod, Pow, rounding, NaN in comparisons.
// Signed integers are signless; functions that differ for unsigned numbers take a flag. 16-bit floats never get here (bodies
// extend to f32).
//
//===----------------------------------------------------------------------===//
#ifndef OGC_PASSES_LOWER_SCALARRULES_H
#define OGC_PASSES_LOWER_SCALARRULES_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ogc::lower {

enum class Compare { Equal, Less, LessOrEqual, Greater, GreaterOrEqual };

/// The type in which bodies compute on elements of `type`: f32 for 16-bit floats, otherwise the type itself.
mlir::Type computeType(mlir::Type type);

/// Emits scalar arith and math operations.
class Scalar {
public:
  Scalar(mlir::OpBuilder &builder, mlir::Location loc) : b(loc, builder) {}
  mlir::ImplicitLocOpBuilder b;

  /// A constant of an integer, index or float type.
  mlir::Value cst(mlir::Type type, double value);
  mlir::Value icst(mlir::Type type, int64_t value);

  // Arithmetic by type: integers wrap around; on i1 addition is or, multiplication is and.
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  /// Floats: IEEE. Integers truncate towards zero; x / 0 is 0 and MIN / -1 is MIN, so no input traps.
  mlir::Value div(mlir::Value x, mlir::Value y, bool isUnsigned);
  /// Mod of ONNX. fmod: the sign of the dividend (C); otherwise that of the divisor (Python). An integer x mod 0 is 0.
  mlir::Value mod(mlir::Value x, mlir::Value y, bool isUnsigned, bool fmod);
  /// Result in the type of x. Integer powers are exact modulo 2^n, a negative exponent truncates (1 / x^n). An integer with a
  /// float exponent goes through f64 and the rule of casts.
  mlir::Value pow(mlir::Value x, mlir::Value y, bool xUnsigned, bool yUnsigned);
  mlir::Value neg(mlir::Value x);
  mlir::Value abs(mlir::Value x, bool isUnsigned);
  /// -1, 0 or 1; NaN and signed zeros stay.
  mlir::Value sign(mlir::Value x, bool isUnsigned);
  /// NaN if either is NaN.
  mlir::Value max(mlir::Value x, mlir::Value y, bool isUnsigned);
  mlir::Value min(mlir::Value x, mlir::Value y, bool isUnsigned);

  /// Comparisons with NaN are false.
  mlir::Value cmp(Compare c, mlir::Value x, mlir::Value y, bool isUnsigned);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  mlir::Value logicalNot(mlir::Value x);
  mlir::Value isNan(mlir::Value x);

  /// Cast of ONNX. Float to integer truncates towards zero and saturates, NaN gives 0; to i1 everything but zero is true (NaN
  /// too); integers to narrower integers wrap around; float to narrower float rounds to nearest even and overflows to infinity.
  mlir::Value cast(mlir::Value x, bool fromUnsigned, mlir::Type to, bool toUnsigned);
  /// 16-bit floats to f32 and back; other values unchanged.
  mlir::Value widen(mlir::Value x);
  mlir::Value narrow(mlir::Value x, mlir::Type to);

  // Float functions.
  mlir::Value exp(mlir::Value x);
  mlir::Value sqrt(mlir::Value x);
  mlir::Value rsqrt(mlir::Value x);
  mlir::Value sigmoid(mlir::Value x);
  mlir::Value softplus(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value gelu(mlir::Value x, bool tanhForm);
  mlir::Value roundHalfEven(mlir::Value x);

  /// The smallest or largest value of a type: infinities for floats. The start of a Max or Min reduction.
  mlir::Value lowest(mlir::Type type, bool isUnsigned);
  mlir::Value highest(mlir::Type type, bool isUnsigned);

  /// A negative index counts from the end; then clamped into [0, extent), so no index reads outside the tensor. Result: index
  /// type.
  mlir::Value wrapIndex(mlir::Value index, int64_t extent, bool isUnsigned);
  mlir::Value toIndex(mlir::Value x, bool isUnsigned);

private:
  mlir::Value floatToInt(mlir::Value x, mlir::IntegerType to, bool toUnsigned);
  mlir::Value powInt(mlir::Value x, mlir::Value y, bool xUnsigned, bool yUnsigned);
  mlir::Value powIntConstant(mlir::Value x, uint64_t exponent);
  mlir::Value powFloat(mlir::Value x, mlir::Value y);
};

} // namespace ogc::lower

#endif
