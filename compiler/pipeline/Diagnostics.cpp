//===- Diagnostics.cpp - the text of a problem, for people -----------------===//
#include "compiler/pipeline/Diagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

namespace ogc {

std::string diagnosticText(const mlir::Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  if (auto name = diagnostic.getLocation()->findInstanceOf<mlir::NameLoc>())
    if (!llvm::StringRef(text).contains(name.getName().getValue()))
      text += " (at '" + name.getName().getValue().str() + "')";
  for (char &c : text)
    if (static_cast<unsigned char>(c) < ' ')
      c = ' ';
  return text;
}

} // namespace ogc
