//===- SmallTypes.cpp -----------------------------------------------------===//
#include "compiler/passes/lower/SmallTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include <cmath>

using namespace mlir;

namespace ogc::lower {

bool isSmallFloat(Type type) {
  auto floatType = dyn_cast<FloatType>(type);
  return floatType && floatType.getWidth() <= 8;
}

bool isSmallInteger(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer && (integer.getWidth() == 2 || integer.getWidth() == 4);
}

Type storageType(Type type) {
  if (isSmallType(type))
    return IntegerType::get(type.getContext(), 8);
  if (auto integer = dyn_cast<IntegerType>(type); integer && !integer.isSignless())
    return IntegerType::get(type.getContext(), integer.getWidth());
  return type;
}

/// A small constant as bytes by value.
static ElementsAttr smallElements(DenseElementsAttr dense, RankedTensorType target) {
  Type element = dense.getElementType();
  SmallVector<char> bytes;
  bytes.reserve(dense.isSplat() ? 1 : dense.getNumElements());
  auto add = [&](const APInt &bits) {
    bool isSigned = isa<IntegerType>(element) && !element.isUnsignedInteger();
    bytes.push_back(static_cast<char>(isSigned ? bits.getSExtValue() : static_cast<int64_t>(bits.getZExtValue())));
  };
  int64_t count = dense.isSplat() ? 1 : dense.getNumElements();
  if (isa<FloatType>(element)) {
    for (const APFloat &value : llvm::make_range(dense.value_begin<APFloat>(), dense.value_begin<APFloat>() + count))
      add(value.bitcastToAPInt());
  } else {
    for (const APInt &value : llvm::make_range(dense.value_begin<APInt>(), dense.value_begin<APInt>() + count))
      add(value);
  }
  return DenseElementsAttr::getFromRawBuffer(target, bytes);
}

ElementsAttr storageElements(ElementsAttr value) {
  auto type = dyn_cast<RankedTensorType>(value.getShapedType());
  if (!type)
    return {};
  RankedTensorType target = RankedTensorType::get(type.getShape(), storageType(type.getElementType()), type.getEncoding());
  if (target == type)
    return value;
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    return type.getElementTypeBitWidth() < 8 ? smallElements(dense, target)
                                             : ElementsAttr(dense.bitcast(target.getElementType()));
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    return DenseResourceElementsAttr::get(target, resource.getRawHandle());
  return {};
}

//===----------------------------------------------------------------------===//
// Bit patterns
//===----------------------------------------------------------------------===//

namespace {

/// Numbers of a small float format.
struct Format {
  explicit Format(FloatType type) {
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    mantissaBits = static_cast<int>(APFloat::semanticsPrecision(semantics)) - 1;
    minExponent = APFloat::semanticsMinExponent(semantics);
    signShift = static_cast<int>(type.getWidth()) - 1;
    maxCode = code(APFloat::getLargest(semantics));
    hasInfinity = APFloat::semanticsHasInf(semantics);
    hasNaN = APFloat::semanticsHasNaN(semantics);
    nanIsNegativeZero = hasNaN && code(APFloat::getNaN(semantics)) == int64_t(1) << signShift;
    if (hasNaN)
      nanCode = nanIsNegativeZero ? int64_t(1) << signShift : code(APFloat::getNaN(semantics)) & ((int64_t(1) << signShift) - 1);
  }
  static int64_t code(const APFloat &value) { return static_cast<int64_t>(value.bitcastToAPInt().getZExtValue()); }

  int bias() const { return 1 - minExponent; }

  int mantissaBits, minExponent, signShift;
  int64_t maxCode, nanCode = 0;
  bool hasInfinity, hasNaN, nanIsNegativeZero;
};

Value shiftLeft(Scalar &s, Value x, int64_t by) {
  return by ? arith::ShLIOp::create(s.b, x, s.icst(x.getType(), by)).getResult() : x;
}
Value shiftRight(Scalar &s, Value x, int64_t by) {
  return by ? arith::ShRUIOp::create(s.b, x, s.icst(x.getType(), by)).getResult() : x;
}
Value bitAnd(Scalar &s, Value x, int64_t mask) { return arith::AndIOp::create(s.b, x, s.icst(x.getType(), mask)); }
Value bitOr(Scalar &s, Value x, Value y) { return arith::OrIOp::create(s.b, x, y); }
Value asFloat(Scalar &s, Value bits) { return arith::BitcastOp::create(s.b, s.b.getF32Type(), bits); }
Value asBits(Scalar &s, Value x) { return arith::BitcastOp::create(s.b, s.b.getI32Type(), x); }

/// Powers of two: the exponent of an f32.
Value decodePower(Scalar &s, Value code) {
  Type i32 = s.b.getI32Type();
  Value isLowest = s.cmp(Compare::Equal, code, s.icst(i32, 0), false),
        isNaN = s.cmp(Compare::Equal, code, s.icst(i32, 255), false);
  // 2^-127 is a subnormal f32.
  Value bits = s.select(isLowest, s.icst(i32, 0x00400000), shiftLeft(s, code, 23));
  return asFloat(s, s.select(isNaN, s.icst(i32, 0x7fc00000), bits));
}

Value encodePower(Scalar &s, Value x, SmallFloatOptions options) {
  Type i32 = s.b.getI32Type(), i1 = s.b.getI1Type();
  Value bits = asBits(s, x), exponent = bitAnd(s, shiftRight(s, bits, 23), 255), zero = s.icst(i32, 0);
  auto isSet = [&](int64_t mask) { return s.logicalNot(s.cmp(Compare::Equal, bitAnd(s, bits, mask), zero, false)); };
  Value up = s.icst(i1, 0);
  if (options.round == PowerRounding::Up) {
    up = isSet(0x7fffff);
  } else if (options.round == PowerRounding::Nearest) {
    Value isOverHalf = bitOr(s, isSet(0x3fffff), s.cmp(Compare::Greater, exponent, zero, false));
    up = arith::AndIOp::create(s.b, isSet(0x400000), isOverHalf);
  }
  Value rounded = s.add(exponent, s.cast(up, true, i32, false));
  if (options.saturate) {
    rounded = s.min(rounded, s.icst(i32, 254), false);
    return s.cast(s.select(s.isNan(x), s.icst(i32, 255), rounded), false, s.b.getI8Type(), true);
  }
  return s.cast(s.min(rounded, s.icst(i32, 255), false), false, s.b.getI8Type(), true);
}

} // namespace

Value decodeFloat(Scalar &s, Value byte, FloatType type) {
  Type i32 = s.b.getI32Type();
  Value code = s.cast(byte, /*fromUnsigned=*/true, i32, false);
  if (isa<Float8E8M0FNUType>(type))
    return decodePower(s, code);
  Format format(type);
  Value magnitude = bitAnd(s, code, (int64_t(1) << format.signShift) - 1);
  // As an f32 with the wrong bias, subnormal where the small value is; a power of two sets it right.
  Value value = s.mul(asFloat(s, shiftLeft(s, magnitude, 23 - format.mantissaBits)),
                      s.cst(s.b.getF32Type(), std::ldexp(1.0, 127 - format.bias())));
  Value bits = bitOr(s, asBits(s, value), shiftLeft(s, shiftRight(s, code, format.signShift), 31));
  if (format.nanIsNegativeZero) {
    Value isNaN = s.cmp(Compare::Equal, bitAnd(s, code, 0xff), s.icst(i32, format.nanCode), false);
    return asFloat(s, s.select(isNaN, s.icst(i32, 0x7fc00000), bits));
  }
  if (!format.hasNaN)
    return asFloat(s, bits);
  Value sign = shiftLeft(s, shiftRight(s, code, format.signShift), 31);
  Value isBeyond = s.cmp(Compare::Greater, magnitude, s.icst(i32, format.maxCode), false);
  Value special = s.icst(i32, 0x7fc00000);
  if (format.hasInfinity) {
    Value isInfinity = s.cmp(Compare::Equal, magnitude, s.icst(i32, format.maxCode + 1), false);
    special = s.select(isInfinity, s.icst(i32, 0x7f800000), special);
  }
  return asFloat(s, s.select(isBeyond, bitOr(s, special, sign), bits));
}

Value encodeFloat(Scalar &s, Value x, FloatType type, SmallFloatOptions options) {
  if (isa<Float8E8M0FNUType>(type))
    return encodePower(s, x, options);
  Format format(type);
  Type i32 = s.b.getI32Type();
  Value bits = asBits(s, x), magnitude = bitAnd(s, bits, 0x7fffffff);
  Value sign = shiftLeft(s, shiftRight(s, bits, 31), format.signShift);
  // Normal results: round the mantissa half to even; a carry runs into the exponent, as it should.
  int dropped = 23 - format.mantissaBits;
  Value odd = bitAnd(s, shiftRight(s, magnitude, dropped), 1);
  Value rounded = s.add(s.add(magnitude, odd), s.icst(i32, (int64_t(1) << (dropped - 1)) - 1));
  Value normal = s.sub(shiftRight(s, rounded, dropped), s.icst(i32, int64_t(127 - format.bias()) << format.mantissaBits));
  // Subnormal ones: adding a number whose last bit is the smallest subnormal rounds, the same way.
  Value magic = s.cst(s.b.getF32Type(), std::ldexp(1.0, format.minExponent - format.mantissaBits + 23));
  Value subnormal = s.sub(asBits(s, s.add(asFloat(s, magnitude), magic)), asBits(s, magic));
  Value isSmall = s.cmp(Compare::Less, magnitude, s.icst(i32, int64_t(format.minExponent + 127) << 23), false);
  Value code = s.select(isSmall, subnormal, normal);
  Value largest = s.icst(i32, format.maxCode);
  Value isBeyond = s.cmp(Compare::Greater, s.select(isSmall, s.icst(i32, 0), code), largest, false);
  int64_t overflow = options.saturate || !format.hasNaN ? format.maxCode
                     : format.hasInfinity               ? format.maxCode + 1
                                                        : format.nanCode;
  code = s.select(isBeyond, s.icst(i32, overflow), code);
  Value isNaN = s.cmp(Compare::Greater, magnitude, s.icst(i32, 0x7f800000), false);
  Value signedCode = bitOr(s, code, sign);
  if (format.nanIsNegativeZero) {
    // There is no negative zero, and its pattern is the only NaN.
    Value isUnsignedCode = s.cmp(Compare::Equal, code, s.icst(i32, 0), false);
    signedCode = s.select(isUnsignedCode, s.icst(i32, 0), signedCode);
    if (overflow == format.nanCode)
      isNaN = bitOr(s, isNaN, isBeyond);
    signedCode = s.select(isNaN, s.icst(i32, format.nanCode), signedCode);
  } else {
    Value nan = format.hasNaN ? bitOr(s, s.icst(i32, format.nanCode), sign) : s.icst(i32, int64_t(1) << format.signShift);
    signedCode = s.select(isNaN, nan, signedCode);
  }
  return s.cast(signedCode, false, s.b.getI8Type(), true);
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

Value saturateToInteger(Scalar &s, Value x, IntegerType to) {
  bool isUnsigned = to.isUnsigned();
  auto storage = cast<IntegerType>(storageType(to));
  if (storage.getWidth() == to.getWidth() && isa<FloatType>(x.getType()))
    return s.cast(x, false, storage, isUnsigned); // casts saturate
  unsigned width = to.getWidth();
  int64_t high = isUnsigned ? (int64_t(1) << width) - 1 : (int64_t(1) << (width - 1)) - 1;
  int64_t low = isUnsigned ? 0 : -(int64_t(1) << (width - 1));
  Type i32 = s.b.getI32Type();
  Value wide = isa<FloatType>(x.getType()) ? s.cast(x, false, i32, false) : x;
  Value clamped = s.min(s.max(wide, s.icst(wide.getType(), low), false), s.icst(wide.getType(), high), false);
  return s.cast(clamped, false, storage, isUnsigned);
}

Value wrapToWidth(Scalar &s, Value byte, IntegerType to) {
  int64_t unused = 8 - to.getWidth();
  if (to.isUnsigned())
    return bitAnd(s, byte, (int64_t(1) << to.getWidth()) - 1);
  return arith::ShRSIOp::create(s.b, shiftLeft(s, byte, unused), s.icst(byte.getType(), unused));
}

Value castElement(Scalar &s, Value x, Type from, Type to, SmallFloatOptions options) {
  if (from == to)
    return x;
  bool fromUnsigned = from.isUnsignedInteger(), toUnsigned = to.isUnsignedInteger();
  if (isSmallFloat(from)) {
    x = decodeFloat(s, x, cast<FloatType>(from));
    from = x.getType();
  }
  if (isSmallFloat(to))
    return encodeFloat(s, s.cast(x, fromUnsigned, s.b.getF32Type(), false), cast<FloatType>(to), options);
  if (!isSmallInteger(to))
    return s.cast(x, fromUnsigned, storageType(to), toUnsigned);
  auto integer = cast<IntegerType>(to);
  // ONNX leaves floats out of range open: they keep the low bits of the 32-bit integer, as integers do and its cases expect.
  if (isa<FloatType>(x.getType()))
    x = s.cast(x, false, s.b.getI32Type(), false);
  return wrapToWidth(s, s.cast(x, fromUnsigned, storageType(to), toUnsigned), integer);
}

} // namespace ogc::lower
