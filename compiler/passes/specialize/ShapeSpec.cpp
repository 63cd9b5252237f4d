//===- ShapeSpec.cpp - parse the shapes a user asks for -------------------===//
#include "compiler/passes/specialize/ShapeSpec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;

namespace ogc::specialize {
namespace {

bool isSize(StringRef text, int64_t &size) { return !text.getAsInteger(10, size) && size >= 0; }

/// "1x3x224"; empty is a scalar.
bool parseDims(StringRef text, Shape &shape, std::string &reason) {
  llvm::SmallVector<StringRef> parts;
  if (!text.empty())
    text.split(parts, 'x');
  for (StringRef part : parts) {
    int64_t size;
    if (!isSize(part, size)) {
      reason = ("'" + part + "' in shape '" + text + "' is not a size").str();
      return false;
    }
    shape.push_back(size);
  }
  return true;
}

/// "32..512", "32..512:x2", "32..512:+64": from the first size to the last, which always belongs to it.
bool parseRange(StringRef text, std::vector<Shape> &values, std::string &reason) {
  auto [ends, step] = text.split(':');
  auto [firstText, lastText] = ends.split("..");
  int64_t first, last, by = 1;
  bool isFactor = step.consume_front("x"), isSum = step.consume_front("+");
  bool hasStep = text.contains(':');
  if (!isSize(firstText, first) || !isSize(lastText, last) || hasStep != (isFactor || isSum) || (hasStep && !isSize(step, by))) {
    reason = ("'" + text + "' is not a range: A..B, A..B:xFACTOR and A..B:+STEP are").str();
    return false;
  }
  if (first > last || by == 0 || (isFactor && (by == 1 || first == 0))) {
    reason = ("range '" + text + "' " + (first > last ? "ends before it begins" : "does not get on")).str();
    return false;
  }
  for (int64_t size = first; size < last;) {
    if (values.size() >= maxGraphs) {
      reason = ("range '" + text + "' has more than " + llvm::Twine(maxGraphs) + " sizes").str();
      return false;
    }
    values.push_back({size});
    bool isNear = isFactor ? size > last / by : size > last - by;
    size = isNear ? last : isFactor ? size * by : size + by;
  }
  values.push_back({last});
  return true;
}

bool parseValue(StringRef text, std::vector<Shape> &values, std::string &reason) {
  if (text.contains(".."))
    return parseRange(text, values, reason);
  return parseDims(text, values.emplace_back(), reason);
}

/// Something that can only be a further value: names do not begin with a digit and consist of these.
bool isFurtherValue(StringRef text) {
  return llvm::isDigit(text.front()) && text.find_first_not_of("0123456789x.:+") == StringRef::npos;
}

/// Splits "a=1,2 b=3x4" into assignments. Names may hold blanks and '=', values may not.
class AssignmentParser {
public:
  AssignmentParser(ShapeRequest &request, std::string &reason) : request(request), reason(reason) {}

  bool parse(StringRef text) {
    while (!text.empty()) {
      size_t end = text.find_first_of(", \t");
      StringRef piece = text.take_front(end);
      char separator = end == StringRef::npos ? ',' : text[end];
      text = text.drop_front(end == StringRef::npos ? text.size() : end + 1);
      if (!piece.empty() && !take(piece))
        return false;
      // Blanks may be part of a name, a comma ends it.
      if (!name.empty() && separator == ',')
        return fail(name);
      if (!name.empty())
        name += separator;
    }
    return name.empty() || fail(StringRef(name).rtrim());
  }

private:
  bool fail(StringRef piece) {
    reason = ("'" + piece + "' is not of the form name=AxBxC or symbol=A,B,C").str();
    return false;
  }

  bool take(StringRef piece) {
    size_t equals = piece.rfind('=');
    if (equals == StringRef::npos) {
      if (name.empty() && !request.assignments.empty() && isFurtherValue(piece))
        return parseValue(piece, request.assignments.back().values, reason);
      name += piece;
      return true;
    }
    name += piece.take_front(equals);
    if (name.empty())
      return fail(piece);
    for (const ShapeRequest::Assignment &other : request.assignments)
      if (other.name == name) {
        reason = "'" + name + "' is given twice: all its values belong into one list";
        return false;
      }
    request.assignments.push_back({std::exchange(name, {}), {}});
    return parseValue(piece.drop_front(equals + 1), request.assignments.back().values, reason);
  }

  ShapeRequest &request;
  std::string &reason;
  std::string name;
};

bool checkValues(const ShapeRequest &request, std::string &reason) {
  for (const ShapeRequest::Assignment &assignment : request.assignments)
    for (auto [i, value] : llvm::enumerate(assignment.values))
      if (llvm::is_contained(llvm::ArrayRef(assignment.values).take_front(i), value)) {
        reason = "'" + assignment.name + "' lists " + shapeText(value) + " twice";
        return false;
      }
  return true;
}

bool parseRequest(StringRef text, ShapeRequest &request, std::string &reason) {
  // Input names may hold colons ("input:0"), so that an ID ends in colon and space.
  size_t colon = text.find(": ");
  if (text.ends_with(":"))
    colon = text.size() - 1;
  if (colon != StringRef::npos) {
    request.id = text.take_front(colon).trim().str();
    if (!isValidID(request.id)) {
      reason = "'" + request.id + "' is not a graph ID: letters, digits, '_', '-' and '.' are";
      return false;
    }
    text = text.drop_front(colon + 1);
  }
  return AssignmentParser(request, reason).parse(text.trim()) && checkValues(request, reason);
}

} // namespace

bool isValidID(StringRef id) {
  return !id.empty() && llvm::all_of(id, [](char c) { return llvm::isAlnum(c) || c == '_' || c == '-' || c == '.'; });
}

std::string toValidID(StringRef text) {
  std::string id = text.str();
  for (char &c : id)
    if (!isValidID(StringRef(&c, 1)))
      c = '_';
  return id;
}

std::optional<int64_t> sizeOfSymbol(mlir::func::FuncOp function, StringRef symbol) {
  auto symbols = function->getAttrOfType<mlir::DictionaryAttr>("ogc.symbols");
  auto size = symbols ? mlir::dyn_cast_or_null<mlir::IntegerAttr>(symbols.get(symbol)) : mlir::IntegerAttr();
  return size ? std::optional(size.getInt()) : std::nullopt;
}

std::optional<SizePair> sizePair(mlir::ModuleOp module, StringRef symbol) {
  auto functions = llvm::to_vector(module.getOps<mlir::func::FuncOp>());
  if (functions.size() != 2 || llvm::any_of(functions, [](mlir::func::FuncOp function) { return function.isExternal(); }))
    return std::nullopt;
  std::optional<int64_t> small = sizeOfSymbol(functions[0], symbol), large = sizeOfSymbol(functions[1], symbol);
  if (!small || !large || *small >= *large)
    return std::nullopt;
  return SizePair{functions[0], functions[1], *small, *large};
}

std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  return shape.empty() ? "scalar" : llvm::join(llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }), "x");
}

std::optional<std::vector<ShapeRequest>> parseShapes(StringRef text, std::string &reason) {
  std::vector<ShapeRequest> requests;
  while (!text.empty()) {
    size_t end = text.find_first_of(";\n");
    StringRef part = text.take_front(end).trim();
    text = text.drop_front(end == StringRef::npos ? text.size() : end + 1);
    if (!part.empty() && !parseRequest(part, requests.emplace_back(), reason))
      return std::nullopt;
  }
  return requests;
}

} // namespace ogc::specialize
