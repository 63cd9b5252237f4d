//===- CudaTypes.cpp - names of types and literals in CUDA C++ ------------===//
#include "compiler/codegen/cuda/CudaTypes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ogc::codegen {

unsigned CudaTypes::width(Type type) const {
  if (type.isIndex())
    return wideIndex ? 64 : 32;
  return type.getIntOrFloatBitWidth();
}

std::string CudaTypes::name(Type type) const {
  if (auto vector = dyn_cast<VectorType>(type)) {
    std::string element = name(vector.getElementType());
    if (element.empty() || vector.getRank() != 1 || vector.isScalable())
      return "";
    return "ogc::Vec<" + element + ", " + std::to_string(vector.getNumElements()) + ">";
  }
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isF16())
    return "ogc::f16";
  if (type.isBF16())
    return "ogc::bf16";
  if (type.isInteger(1))
    return "bool";
  if (!type.isIndex() && !isa<IntegerType>(type))
    return "";
  switch (width(type)) {
  case 8:
    return "signed char";
  case 16:
    return "short";
  case 32:
    return "int";
  case 64:
    return "long long";
  default:
    return "";
  }
}

std::string CudaTypes::unsignedName(Type type) const {
  std::string signedName = name(type);
  return signedName == "signed char" ? "unsigned char" : "unsigned " + signedName;
}

static std::string integerLiteral(const APInt &value, unsigned width) {
  if (width == 1)
    return value.isZero() ? "false" : "true";
  std::string suffix = width == 64 ? "LL" : "";
  // The smallest value has no literal: the minus is an operator on a positive number that does not fit.
  if (width >= 32 && value.isMinSignedValue())
    return "(-" + llvm::toString(-(value + 1), 10, /*Signed=*/true) + suffix + " - 1)";
  std::string digits = llvm::toString(value, 10, /*Signed=*/true) + suffix;
  return value.isNegative() ? "(" + digits + ")" : digits;
}

static std::string floatLiteral(const APFloat &value, Type type) {
  std::string bits = "0x" + llvm::toString(value.bitcastToAPInt(), 16, /*Signed=*/false);
  if (type.isF16())
    return "ogc::f16{" + bits + "}";
  if (type.isBF16())
    return "ogc::bf16{" + bits + "}";
  if (!value.isFinite())
    return type.isF32() ? "__int_as_float((int)" + bits + "u)" : "__longlong_as_double((long long)" + bits + "ull)";
  char digits[64];
  unsigned length = value.convertToHexString(digits, 0, /*upperCase=*/false, APFloat::rmNearestTiesToEven);
  std::string text(digits, length);
  if (type.isF32())
    text += "f";
  return value.isNegative() ? "(" + text + ")" : text;
}

std::string CudaTypes::literal(TypedAttr value) const {
  if (name(value.getType()).empty())
    return "";
  if (auto integer = dyn_cast<IntegerAttr>(value)) {
    unsigned bits = width(value.getType());
    return integerLiteral(integer.getValue().sextOrTrunc(bits), bits);
  }
  if (auto real = dyn_cast<FloatAttr>(value))
    return floatLiteral(real.getValue(), value.getType());
  return "";
}

unsigned cudaElementBytes(Type type) {
  if (CudaTypes(true).name(type).empty() || isa<VectorType>(type))
    return 0;
  if (type.isIndex())
    return 8;
  return (type.getIntOrFloatBitWidth() + 7) / 8;
}

static void collectNames(Location loc, llvm::SetVector<StringRef> &names) {
  if (auto named = dyn_cast<NameLoc>(loc)) {
    names.insert(named.getName());
  } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      collectNames(part, names);
  } else if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    collectNames(call.getCallee(), names);
    collectNames(call.getCaller(), names);
  }
}

std::string nodeNames(Location loc) {
  llvm::SetVector<StringRef> names;
  collectNames(loc, names);
  return names.empty() ? "unknown" : llvm::join(names, ", ");
}

} // namespace ogc::codegen
