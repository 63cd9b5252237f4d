//===- Check.cpp - an output against what a case expects ------------------===//
#include "test/conformance/Check.h"

#include "runtime_lib/format/DataType.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"
#include <cmath>

namespace ogc::conformance {

using format::DataType;

static std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  return "[" + llvm::join(llvm::map_range(shape, [](int64_t dim) { return std::to_string(dim); }), ", ") + "]";
}

static DataType typeOf(const ogc_tensor &info) { return static_cast<DataType>(info.dtype); }

/// The values of an output that is drawn at random: what every generator's would keep to.
static std::string checkLaw(const std::string &law, DataType type, llvm::ArrayRef<char> actual, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    double value = format::readElement(type, actual.data(), i);
    if (!std::isfinite(value) || (law != "dropped" && value != 0 && value != 1))
      return llvm::formatv("element {0} is {1}, expected {2}", i, value, law);
  }
  return "";
}

static std::string compareValues(const Case &item, DataType type, llvm::ArrayRef<char> actual, llvm::ArrayRef<char> expected,
                                 size_t count) {
  // Two units in the last place of 16-bit floats, in which intermediate values are rounded in one place or another.
  double rtol = std::max(item.rtol, type == DataType::BF16 ? 0x1p-6 : type == DataType::F16 ? 0x1p-9 : 0.0);
  bool isExact = !format::isFloat(type);
  size_t bytes = format::elementBytes(type), wrong = 0, worst = 0;
  double largest = -1;
  for (size_t i = 0; i < count; ++i) {
    if (llvm::equal(actual.slice(i * bytes, bytes), expected.slice(i * bytes, bytes)))
      continue;
    double a = format::readElement(type, actual.data(), i), e = format::readElement(type, expected.data(), i);
    double difference = std::fabs(a - e);
    if (!isExact && ((std::isnan(a) && std::isnan(e)) || a == e || difference <= item.atol + rtol * std::fabs(e)))
      continue;
    ++wrong;
    if (double size = std::isnan(difference) ? INFINITY : difference; size > largest) {
      largest = size;
      worst = i;
    }
  }
  if (!wrong)
    return "";
  return llvm::formatv("{0} of {1} elements differ, most element {2}: {3:e9}, expected {4:e9}", wrong, count, worst,
                       format::readElement(type, actual.data(), worst), format::readElement(type, expected.data(), worst));
}

std::string checkOutput(const Case &item, size_t index, const ogc_tensor &info, llvm::ArrayRef<char> actual) {
  const Tensor &expected = item.outputs[index];
  std::string problem;
  llvm::ArrayRef<int64_t> shape(info.shape, info.rank);
  if (expected.type != format::typeName(typeOf(info)))
    problem = std::string("has type ") + format::typeName(typeOf(info)) + ", expected " + expected.type;
  else if (shape != llvm::ArrayRef<int64_t>(expected.shape))
    problem = "has shape " + shapeText(shape) + ", expected " + shapeText(expected.shape);
  else if (actual.size() != expected.data.size())
    problem = llvm::formatv("has {0} bytes, expected {1}", actual.size(), expected.data.size());
  else {
    size_t count = 1;
    for (int64_t dim : shape)
      count *= dim;
    problem = expected.law.empty() ? compareValues(item, typeOf(info), actual, expected.data, count)
                                   : checkLaw(expected.law, typeOf(info), actual, count);
  }
  return problem.empty() ? "" : "output '" + expected.name + "': " + problem;
}

std::string valueText(const Tensor &tensor) {
  DataType type = DataType::Bool;
  for (int number = 0; number <= static_cast<int>(DataType::MAX); ++number)
    if (tensor.type == format::typeName(static_cast<DataType>(number)))
      type = static_cast<DataType>(number);
  std::string text;
  size_t bytes = format::elementBytes(type);
  for (size_t i = 0; bytes && i < tensor.data.size() / bytes; ++i) {
    double value = format::readElement(type, tensor.data.data(), i);
    text += i ? ", " : "";
    if (type == DataType::I64) // a double does not hold all of them
      text += std::to_string(static_cast<int64_t>(llvm::support::endian::read64le(tensor.data.data() + i * bytes)));
    else
      text += llvm::formatv(format::isFloat(type) ? "{0:e17}" : "{0:f0}", value).str();
  }
  return tensor.shape.empty() ? text : "[" + text + "]";
}

uint64_t bitsOf(const ogc_tensor &info, llvm::ArrayRef<char> data, uint64_t seed) {
  std::vector<uint8_t> copy(data.begin(), data.end());
  size_t bytes = format::elementBytes(typeOf(info));
  if (format::isFloat(typeOf(info)) && bytes)
    for (size_t i = 0; i < data.size() / bytes; ++i)
      if (std::isnan(format::readElement(typeOf(info), data.data(), i)))
        std::fill_n(copy.begin() + i * bytes, bytes, 0xff);
  return llvm::xxh3_64bits(copy) ^ (seed * 0x9E3779B97F4A7C15ull + 1);
}

} // namespace ogc::conformance
