//===- ShapeSpec.h - the shapes a user asks for ---------------------------===//
#ifndef OGC_PASSES_SPECIALIZE_SHAPESPEC_H
#define OGC_PASSES_SPECIALIZE_SHAPESPEC_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace ogc::specialize {

/// The shapes of one graph ID.
struct GraphShapes {
  struct Input {
    std::string name;
    llvm::SmallVector<int64_t> shape;
  };
  std::string id = "default";
  std::vector<Input> inputs;
};

/// Parses "ID: name=AxB,name=C; ID: …" (see the pass ogc-specialize-shapes). Empty text is one graph without shapes. On failure
/// the list is empty and `reason` says why.
std::vector<GraphShapes> parseShapes(llvm::StringRef text, std::string &reason);

} // namespace ogc::specialize

#endif
