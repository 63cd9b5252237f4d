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

constexpr TypeInfo kTypes[] = {{"bool", 1},     {"int8", 1},    {"int16", 2},   {"int32", 4},        {"int64", 8},
                               {"uint8", 1},    {"uint16", 2},  {"uint32", 4},  {"uint64", 8},       {"float16", 2},
                               {"bfloat16", 2}, {"float32", 4}, {"float64", 8}, {"float8e4m3fn", 1}, {"float8e5m2", 1}};
static_assert(std::size(kTypes) == static_cast<size_t>(DataType::MAX) + 1);

bool isValid(DataType type) { return static_cast<size_t>(type) < std::size(kTypes); }

/// Layout of a small binary float. Without infinities (e4m3fn) the largest exponent holds numbers, and all ones is NaN.
struct SmallFloat {
  int exponentBits, mantissaBits;
  bool hasInfinity;
};

double decode(SmallFloat format, uint32_t bits) {
  int bias = (1 << (format.exponentBits - 1)) - 1;
  uint32_t mantissa = bits & ((1u << format.mantissaBits) - 1);
  int exponent = static_cast<int>(bits >> format.mantissaBits & ((1u << format.exponentBits) - 1));
  double sign = bits >> (format.exponentBits + format.mantissaBits) & 1 ? -1.0 : 1.0;
  int top = (1 << format.exponentBits) - 1;
  if (exponent == top && format.hasInfinity)
    return mantissa ? std::nan("") : sign * INFINITY;
  if (exponent == top && mantissa == (1u << format.mantissaBits) - 1)
    return std::nan("");
  if (exponent == 0)
    return sign * std::ldexp(static_cast<double>(mantissa), 1 - bias - format.mantissaBits);
  return sign * std::ldexp(static_cast<double>(mantissa | 1u << format.mantissaBits), exponent - bias - format.mantissaBits);
}

uint32_t encode(SmallFloat format, double value) {
  int bias = (1 << (format.exponentBits - 1)) - 1;
  int top = (1 << format.exponentBits) - 1;
  uint32_t sign = std::signbit(value) ? 1u << (format.exponentBits + format.mantissaBits) : 0;
  uint32_t nan = static_cast<uint32_t>(top) << format.mantissaBits | ((1u << format.mantissaBits) - 1);
  uint32_t infinity = format.hasInfinity ? static_cast<uint32_t>(top) << format.mantissaBits : nan;
  if (std::isnan(value))
    return sign | nan;
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude))
    return sign | infinity;
  if (magnitude == 0)
    return sign;
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  // nearbyint rounds half to even; a carry out of the mantissa runs into the exponent, as it should.
  double scaled = std::nearbyint(std::ldexp(magnitude, format.mantissaBits - exponent));
  uint64_t bits = static_cast<uint64_t>(scaled) + (static_cast<uint64_t>(exponent + bias - 1) << format.mantissaBits);
  return bits >= infinity ? sign | infinity : sign | static_cast<uint32_t>(bits);
}

constexpr SmallFloat kF16 = {5, 10, true}, kBF16 = {8, 7, true}, kE4M3 = {4, 3, false}, kE5M2 = {5, 2, true};

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
  return type == DataType::F16 || type == DataType::BF16 || type == DataType::F32 || type == DataType::F64 ||
         type == DataType::F8E4M3FN || type == DataType::F8E5M2;
}

double readElement(DataType type, const void *data, size_t index) {
  switch (type) {
  case DataType::Bool:
  case DataType::U8:
    return readAs<uint8_t>(data, index);
  case DataType::I8:
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
    return decode(kF16, static_cast<uint32_t>(readAs<uint16_t>(data, index)));
  case DataType::BF16:
    return decode(kBF16, static_cast<uint32_t>(readAs<uint16_t>(data, index)));
  case DataType::F32:
    return readAs<float>(data, index);
  case DataType::F64:
    return readAs<double>(data, index);
  case DataType::F8E4M3FN:
    return decode(kE4M3, static_cast<uint32_t>(readAs<uint8_t>(data, index)));
  case DataType::F8E5M2:
    return decode(kE5M2, static_cast<uint32_t>(readAs<uint8_t>(data, index)));
  }
  return 0;
}

void writeElement(DataType type, void *data, size_t index, double value) {
  switch (type) {
  case DataType::Bool:
  case DataType::U8:
    return writeAs(data, index, static_cast<uint8_t>(value));
  case DataType::I8:
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
    return writeAs(data, index, static_cast<uint16_t>(encode(kF16, value)));
  case DataType::BF16:
    return writeAs(data, index, static_cast<uint16_t>(encode(kBF16, value)));
  case DataType::F32:
    return writeAs(data, index, static_cast<float>(value));
  case DataType::F64:
    return writeAs(data, index, value);
  case DataType::F8E4M3FN:
    return writeAs(data, index, static_cast<uint8_t>(encode(kE4M3, value)));
  case DataType::F8E5M2:
    return writeAs(data, index, static_cast<uint8_t>(encode(kE5M2, value)));
  }
}

} // namespace ogc::format
