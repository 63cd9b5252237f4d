//===- DataType.cpp - element types of a bundle ---------------------------===//
#include "runtime_lib/format/DataType.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace ogc::format {

namespace {

struct TypeInfo {
  const char *name;
  size_t bytes;
};

constexpr TypeInfo kTypes[] = {
    {"bool", 1},           {"int8", 1},           {"int16", 2},      {"int32", 4},        {"int64", 8},
    {"uint8", 1},          {"uint16", 2},         {"uint32", 4},     {"uint64", 8},       {"float16", 2},
    {"bfloat16", 2},       {"float32", 4},        {"float64", 8},    {"float8e4m3fn", 1}, {"float8e5m2", 1},
    {"float8e4m3fnuz", 1}, {"float8e5m2fnuz", 1}, {"float8e8m0", 1}, {"float6e2m3", 1},   {"float6e3m2", 1},
    {"float4e2m1", 1},     {"int4", 1},           {"uint4", 1},      {"int2", 1},         {"uint2", 1}};
static_assert(std::size(kTypes) == static_cast<size_t>(DataType::MAX) + 1);

bool isValid(DataType type) { return static_cast<size_t>(type) < std::size(kTypes); }

/// What the largest exponent of a small binary float means: infinities and NaN (IEEE); numbers, and NaN where all bits are ones
/// (AllOnes); numbers, and the pattern of negative zero is NaN (NegativeZero), or there is none (None).
enum class Special { Ieee, AllOnes, NegativeZero, None };

struct SmallFloat {
  int exponentBits, mantissaBits, bias;
  Special special;
};

double decode(SmallFloat format, uint32_t bits) {
  int bias = format.bias;
  bits &= (2u << (format.exponentBits + format.mantissaBits)) - 1;
  uint32_t mantissa = bits & ((1u << format.mantissaBits) - 1);
  int exponent = static_cast<int>(bits >> format.mantissaBits & ((1u << format.exponentBits) - 1));
  double sign = bits >> (format.exponentBits + format.mantissaBits) & 1 ? -1.0 : 1.0;
  int top = (1 << format.exponentBits) - 1;
  if (exponent == top && format.special == Special::Ieee)
    return mantissa ? std::nan("") : sign * INFINITY;
  if (exponent == top && format.special == Special::AllOnes && mantissa == (1u << format.mantissaBits) - 1)
    return std::nan("");
  if (format.special == Special::NegativeZero && bits == 1u << (format.exponentBits + format.mantissaBits))
    return std::nan("");
  if (exponent == 0)
    return sign * std::ldexp(static_cast<double>(mantissa), 1 - bias - format.mantissaBits);
  return sign * std::ldexp(static_cast<double>(mantissa | 1u << format.mantissaBits), exponent - bias - format.mantissaBits);
}

uint32_t encode(SmallFloat format, double value) {
  int bias = format.bias;
  uint32_t signBit = 1u << (format.exponentBits + format.mantissaBits), sign = std::signbit(value) ? signBit : 0;
  uint32_t ones = signBit - 1, nan = format.special == Special::Ieee || format.special == Special::AllOnes ? ones : signBit;
  // The pattern after the largest number.
  uint32_t infinity = format.special == Special::Ieee      ? ones >> format.mantissaBits << format.mantissaBits
                      : format.special == Special::AllOnes ? ones
                                                           : signBit;
  if (std::isnan(value) || (format.special == Special::NegativeZero && std::isinf(value)))
    return format.special == Special::NegativeZero ? nan : sign | nan;
  if (format.special == Special::NegativeZero && value == 0)
    return 0;
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude))
    return sign | (format.special == Special::None ? ones : infinity);
  if (magnitude == 0)
    return sign;
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  // nearbyint rounds half to even; a carry out of the mantissa runs into the exponent, as it should.
  double scaled = std::nearbyint(std::ldexp(magnitude, format.mantissaBits - exponent));
  uint64_t bits = static_cast<uint64_t>(scaled) + (static_cast<uint64_t>(exponent + bias - 1) << format.mantissaBits);
  if (bits < infinity)
    return format.special == Special::NegativeZero && bits == 0 ? 0 : sign | static_cast<uint32_t>(bits);
  return format.special == Special::NegativeZero ? nan : sign | (format.special == Special::None ? ones : infinity);
}

/// Layouts by type, from float8e4m3fnuz on those that are stored as bytes.
const SmallFloat *layoutOf(DataType type) {
  static constexpr SmallFloat f16 = {5, 10, 15, Special::Ieee}, bf16 = {8, 7, 127, Special::Ieee},
                              e4m3 = {4, 3, 7, Special::AllOnes}, e5m2 = {5, 2, 15, Special::Ieee},
                              e4m3uz = {4, 3, 8, Special::NegativeZero}, e5m2uz = {5, 2, 16, Special::NegativeZero},
                              e2m3 = {2, 3, 1, Special::None}, e3m2 = {3, 2, 3, Special::None}, e2m1 = {2, 1, 1, Special::None};
  switch (type) {
  case DataType::F16:
    return &f16;
  case DataType::BF16:
    return &bf16;
  case DataType::F8E4M3FN:
    return &e4m3;
  case DataType::F8E5M2:
    return &e5m2;
  case DataType::F8E4M3FNUZ:
    return &e4m3uz;
  case DataType::F8E5M2FNUZ:
    return &e5m2uz;
  case DataType::F6E2M3:
    return &e2m3;
  case DataType::F6E3M2:
    return &e3m2;
  case DataType::F4E2M1:
    return &e2m1;
  default:
    return nullptr;
  }
}

/// Powers of two; 255 is NaN.
double decodePower(uint8_t bits) { return bits == 255 ? std::nan("") : std::ldexp(1.0, bits - 127); }
uint8_t encodePower(double value) {
  if (!(std::fabs(value) < INFINITY) || value == 0)
    return value == 0 ? 0 : 255;
  return static_cast<uint8_t>(std::clamp(std::ilogb(std::fabs(value) * 1.5) + 127, 0, 254)); // to the nearest
}

template <typename T> double readAs(const void *data, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char *>(data) + index * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

template <typename T> void writeAs(void *data, size_t index, T value) {
  std::memcpy(static_cast<char *>(data) + index * sizeof(T), &value, sizeof(T));
}

} // namespace

size_t elementBytes(DataType type) { return isValid(type) ? kTypes[static_cast<size_t>(type)].bytes : 0; }

const char *typeName(DataType type) { return isValid(type) ? kTypes[static_cast<size_t>(type)].name : "?"; }

bool isFloat(DataType type) {
  return type == DataType::F32 || type == DataType::F64 || type == DataType::F8E8M0 || layoutOf(type) != nullptr;
}

int smallIntegerBits(DataType type) {
  return type == DataType::I4 || type == DataType::U4 ? 4 : type == DataType::I2 || type == DataType::U2 ? 2 : 0;
}

void normalizeSmallIntegers(DataType type, void *data, size_t elements) {
  int bits = smallIntegerBits(type);
  if (bits == 0)
    return;
  bool isSigned = type == DataType::I4 || type == DataType::I2;
  auto *bytes = static_cast<unsigned char *>(data);
  for (size_t i = 0; i < elements; ++i) {
    unsigned low = bytes[i] & ((1u << bits) - 1);
    bytes[i] = static_cast<unsigned char>(isSigned && low >> (bits - 1) ? low - (1u << bits) : low);
  }
}

double readElement(DataType type, const void *data, size_t index) {
  switch (type) {
  case DataType::Bool:
  case DataType::U8:
  case DataType::U4:
  case DataType::U2:
    return readAs<uint8_t>(data, index);
  case DataType::I8:
  case DataType::I4:
  case DataType::I2:
    return readAs<int8_t>(data, index);
  case DataType::I16:
    return readAs<int16_t>(data, index);
  case DataType::I32:
    return readAs<int32_t>(data, index);
  case DataType::I64:
    return readAs<int64_t>(data, index);
  case DataType::U16:
    return readAs<uint16_t>(data, index);
  case DataType::U32:
    return readAs<uint32_t>(data, index);
  case DataType::U64:
    return readAs<uint64_t>(data, index);
  case DataType::F16:
  case DataType::BF16:
    return decode(*layoutOf(type), static_cast<uint32_t>(readAs<uint16_t>(data, index)));
  case DataType::F32:
    return readAs<float>(data, index);
  case DataType::F64:
    return readAs<double>(data, index);
  case DataType::F8E8M0:
    return decodePower(static_cast<const uint8_t *>(data)[index]);
  default:
    break;
  }
  const SmallFloat *layout = layoutOf(type);
  return layout ? decode(*layout, static_cast<const uint8_t *>(data)[index]) : 0;
}

void writeElement(DataType type, void *data, size_t index, double value) {
  switch (type) {
  case DataType::Bool:
  case DataType::U8:
  case DataType::U4:
  case DataType::U2:
    return writeAs(data, index, static_cast<uint8_t>(value));
  case DataType::I8:
  case DataType::I4:
  case DataType::I2:
    return writeAs(data, index, static_cast<int8_t>(value));
  case DataType::I16:
    return writeAs(data, index, static_cast<int16_t>(value));
  case DataType::I32:
    return writeAs(data, index, static_cast<int32_t>(value));
  case DataType::I64:
    return writeAs(data, index, static_cast<int64_t>(value));
  case DataType::U16:
    return writeAs(data, index, static_cast<uint16_t>(value));
  case DataType::U32:
    return writeAs(data, index, static_cast<uint32_t>(value));
  case DataType::U64:
    return writeAs(data, index, static_cast<uint64_t>(value));
  case DataType::F16:
  case DataType::BF16:
    return writeAs(data, index, static_cast<uint16_t>(encode(*layoutOf(type), value)));
  case DataType::F32:
    return writeAs(data, index, static_cast<float>(value));
  case DataType::F64:
    return writeAs(data, index, value);
  case DataType::F8E8M0:
    return writeAs(data, index, encodePower(value));
  default:
    if (const SmallFloat *layout = layoutOf(type))
      writeAs(data, index, static_cast<uint8_t>(encode(*layout, value)));
  }
}

} // namespace ogc::format
