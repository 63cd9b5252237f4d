//===- ShapeSpec.h - the shapes a user asks for ---------------------------===//
//
// Text of --shapes → requests → one GraphShapes a graph ID. docs/shapes.md describes the text.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_PASSES_SPECIALIZE_SHAPESPEC_H
#define OGC_PASSES_SPECIALIZE_SHAPESPEC_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace ogc::specialize {

/// More graph IDs than this are taken for a mistake.
constexpr size_t maxGraphs = 4096;

using Shape = llvm::SmallVector<int64_t>;

/// One --shapes: what names (inputs or symbols) may be. It stands for the product of the alternatives.
struct ShapeRequest {
  struct Assignment {
    std::string name;
    std::vector<Shape> values; // a symbol's are of rank 1
  };
  std::string id; // empty: made from the sizes
  std::vector<Assignment> assignments;
};

/// The sizes of one graph ID, by input and by symbol.
struct GraphShapes {
  struct Input {
    std::string name;
    Shape shape;
  };
  struct Symbol {
    std::string name;
    int64_t size;
  };
  std::string id;    // empty, or as asked for
  std::string label; // what was asked for, for messages: "batch=4 seq=128"
  std::vector<Input> inputs;
  std::vector<Symbol> symbols;
};

/// Parses requests that are separated by ';' or line ends. Nothing, with the `reason`, where the text has another form.
std::optional<std::vector<ShapeRequest>> parseShapes(llvm::StringRef text, std::string &reason);

/// The product of each request, in order: the last name changes fastest. A name that is an input of the model is one, any other a
/// symbol. No request at all gives one graph without sizes. Nothing, with the `reason`, for too many graphs or a value of wrong
/// rank.
std::optional<std::vector<GraphShapes>> expandShapes(llvm::ArrayRef<ShapeRequest> requests, llvm::ArrayRef<std::string> inputs,
                                                     std::string &reason);

/// True for what may be a graph ID: letters, digits, '_', '-' and '.'.
bool isValidID(llvm::StringRef id);

/// `text` with everything that no graph ID may hold replaced by '_'.
std::string toValidID(llvm::StringRef text);

/// The size that a specialized function has for a symbol.
std::optional<int64_t> sizeOfSymbol(mlir::func::FuncOp function, llvm::StringRef symbol);

/// A model specialized for two sizes of a symbol, smaller first.
struct SizePair {
  mlir::func::FuncOp first, second;
  int64_t small, large;
};
/// The two functions of a module, which have bodies; none where it does not hold such a pair.
std::optional<SizePair> sizePair(mlir::ModuleOp module, llvm::StringRef symbol);

/// "2x3", "scalar".
std::string shapeText(llvm::ArrayRef<int64_t> shape);

} // namespace ogc::specialize

#endif
