//===- ShapeFile.h - the shapes of a file ---------------------------------===//
#ifndef OGC_PIPELINE_SHAPEFILE_H
#define OGC_PIPELINE_SHAPEFILE_H

#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace ogc {

/// Replaces each "@FILE" of a list of --shapes by what the file holds. The file is YAML: a list, or a mapping whose key `shapes`
/// holds it. An entry is the text of one --shapes, or a mapping from names to values (one, or a list of them) with an optional
/// key `id`.
llvm::Expected<std::vector<std::string>> readShapeFiles(const std::vector<std::string> &shapes);

/// The same for the contents of one file; `name` is for messages.
llvm::Expected<std::vector<std::string>> parseShapeFile(llvm::StringRef text, llvm::StringRef name);

} // namespace ogc

#endif
