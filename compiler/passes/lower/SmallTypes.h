//===- SmallTypes.h - element types of at most 8 bits ---------------------===//
//
// One storage rule: an element of a 2-, 4- or 8-bit type is one byte. Integers of 2 and 4 bits are the number itself (sign- or
// zero-extended), small floats are their bit pattern in the low bits. Operators that move elements move these bytes; those that
// compute convert through f32. Elements are packed only in the model file.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_PASSES_LOWER_SMALLTYPES_H
#define OGC_PASSES_LOWER_SMALLTYPES_H

#include "compiler/passes/lower/ScalarRules.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace ogc::lower {

/// True for floats of at most 8 bits.
bool isSmallFloat(mlir::Type type);
/// True for integers of 2 and 4 bits.
bool isSmallInteger(mlir::Type type);
inline bool isSmallType(mlir::Type type) { return isSmallFloat(type) || isSmallInteger(type); }

/// The signless type of the memory that holds elements of `type`: i8 for small types.
mlir::Type storageType(mlir::Type type);

/// A constant in its storage type; null when it cannot be represented.
mlir::ElementsAttr storageElements(mlir::ElementsAttr value);

/// How floats are rounded to the powers of two of float8e8m0.
enum class PowerRounding { Up, Down, Nearest };

/// What happens to a value that a small float type cannot hold, and how float8e8m0 rounds.
struct SmallFloatOptions {
  bool saturate = true;
  PowerRounding round = PowerRounding::Up;
};

/// The value of a stored element in f32.
mlir::Value decodeFloat(Scalar &s, mlir::Value byte, mlir::FloatType type);
/// An f32 as a stored element: rounded to nearest even; NaN stays NaN (negative zero in float4e2m1 and the 6-bit types, which
/// have none). What is beyond the largest value, infinities too, becomes that value when saturating or without infinities and
/// NaN; else infinity, or NaN where the type has no infinity.
mlir::Value encodeFloat(Scalar &s, mlir::Value x, mlir::FloatType type, SmallFloatOptions options);

/// Cast between element types as they are declared: `x` is stored in storageType(from), the result in storageType(to).
mlir::Value castElement(Scalar &s, mlir::Value x, mlir::Type from, mlir::Type to, SmallFloatOptions options = {});

/// The low bits of a byte as a number of 2 or 4 bits.
mlir::Value wrapToWidth(Scalar &s, mlir::Value byte, mlir::IntegerType to);

/// An f32 or integer saturated to an integer type of any width, in its storage type. `x` is already rounded.
mlir::Value saturateToInteger(Scalar &s, mlir::Value x, mlir::IntegerType to);

} // namespace ogc::lower

#endif
