//===- InputValues.cpp - values of inputs that are given when compiling ---===//
#include "compiler/import/InputValues.h"

#include "compiler/dialect/onnx/Proto.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace ogc {
namespace {

/// Reads nested lists of numbers; every list of a depth has the same length.
class ListParser {
public:
  ListParser(StringRef text, Type element, std::string &reason) : rest(text), element(element), reason(reason) {}

  FailureOr<ElementsAttr> parse() {
    if (failed(value(0)))
      return failure();
    if (!rest.trim().empty())
      return fail("'" + rest.trim() + "' follows the value");
    // Below a list without elements there are no dimensions to see.
    SmallVector<int64_t> shape(sizes.begin(), sizes.end());
    return ElementsAttr(DenseElementsAttr::get(RankedTensorType::get(shape, element), values));
  }

private:
  LogicalResult fail(const Twine &why) {
    reason = why.str();
    return failure();
  }

  LogicalResult value(unsigned depth) {
    rest = rest.ltrim();
    if (!rest.consume_front("["))
      return depth == sizes.size() ? scalar() : fail("lists are nested to different depths");
    if (depth == 8)
      return fail("more than 8 dimensions");
    int64_t count = 0;
    bool isFirst = depth == sizes.size();
    if (isFirst) {
      if (!values.empty())
        return fail("lists are nested to different depths");
      sizes.push_back(-1);
    }
    for (rest = rest.ltrim(); !rest.consume_front("]"); rest = rest.ltrim()) {
      if (count && !rest.consume_front(","))
        return fail(rest.empty() ? "a list is not closed" : "expected ',' or ']' before '" + rest + "'");
      if (failed(value(depth + 1)))
        return failure();
      ++count;
    }
    if (sizes[depth] >= 0 && sizes[depth] != count)
      return fail("lists of " + Twine(sizes[depth]) + " and of " + Twine(count) + " elements");
    sizes[depth] = count;
    return success();
  }

  LogicalResult scalar() {
    StringRef word = rest.take_until([](char c) { return c == ',' || c == ']' || c == '['; }).rtrim();
    rest = rest.drop_front(word.size());
    Attribute attr = word.empty()              ? Attribute()
                     : element.isInteger(1)    ? boolean(word)
                     : isa<FloatType>(element) ? real(word)
                                               : integer(word);
    if (!attr)
      return fail(word.empty() ? "a number is missing" : "'" + word + "' is no value of the input's type");
    values.push_back(attr);
    return success();
  }

  Attribute boolean(StringRef word) {
    bool isTrue = word == "true" || word == "1";
    return isTrue || word == "false" || word == "0" ? BoolAttr::get(element.getContext(), isTrue) : Attribute();
  }

  Attribute integer(StringRef word) {
    auto type = cast<IntegerType>(element);
    APInt number;
    bool isNegative = word.consume_front("-");
    if (word.getAsInteger(10, number) || (isNegative && type.isUnsigned() && !number.isZero()))
      return {};
    number = number.zext(std::max(number.getBitWidth(), type.getWidth()) + 1);
    if (isNegative)
      number.negate();
    bool fits = type.isUnsigned() ? number.isIntN(type.getWidth()) : number.isSignedIntN(type.getWidth());
    return fits ? IntegerAttr::get(type, number.trunc(type.getWidth())) : Attribute();
  }

  Attribute real(StringRef word) {
    auto type = cast<FloatType>(element);
    APFloat number(type.getFloatSemantics());
    llvm::Expected<APFloat::opStatus> status = number.convertFromString(word, APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      return {};
    }
    return FloatAttr::get(type, number);
  }

  StringRef rest;
  Type element;
  std::string &reason;
  SmallVector<int64_t> sizes; ///< of each depth, -1 while its first list is read
  SmallVector<Attribute> values;
};

FailureOr<ElementsAttr> readFile(MLIRContext *context, StringRef path, std::string &reason) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file) {
    reason = "'" + path.str() + "' cannot be read: " + file.getError().message();
    return failure();
  }
  auto tensor = std::make_shared<::onnx::TensorProto>();
  StringRef bytes = (*file)->getBuffer();
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !tensor->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    reason = "'" + path.str() + "' holds no ONNX tensor";
    return failure();
  }
  return onnx::importTensor(context, *tensor, tensor, reason);
}

} // namespace

FailureOr<ElementsAttr> parseInputValue(TensorType declared, StringRef text, std::string &reason) {
  FailureOr<ElementsAttr> value = text.starts_with("@") ? readFile(declared.getContext(), text.drop_front(), reason)
                                                        : ListParser(text, declared.getElementType(), reason).parse();
  if (failed(value))
    return failure();
  ShapedType type = value->getShapedType();
  if (type.getElementType() != declared.getElementType() ||
      (declared.hasRank() && failed(verifyCompatibleShape(type.getShape(), declared.getShape())))) {
    std::string described;
    llvm::raw_string_ostream(described) << "is of type " << type << ", expected " << declared;
    reason = described;
    return failure();
  }
  return value;
}

} // namespace ogc
