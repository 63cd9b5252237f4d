//===- InputValues.h - values of inputs that are given when compiling -----===//
#ifndef OGC_IMPORT_INPUTVALUES_H
#define OGC_IMPORT_INPUTVALUES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace ogc {

/// The value that a text gives to an input of a declared type: numbers, true and false, in nested lists as the dimensions are
/// ("3", "[0, 2]", "[[1.5, nan], [-inf, 2]]"), or "@FILE" for a file with a TensorProto. Fails with a reason where text and type
/// do not fit.
mlir::FailureOr<mlir::ElementsAttr> parseInputValue(mlir::TensorType declared, llvm::StringRef text, std::string &reason);

} // namespace ogc

#endif
