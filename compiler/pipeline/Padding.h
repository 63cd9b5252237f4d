//===- Padding.h - which named dimensions may be padded -------------------===//
#ifndef OGC_PIPELINE_PADDING_H
#define OGC_PIPELINE_PADDING_H

#include "compiler/pipeline/Options.h"
#include "mlir/IR/BuiltinOps.h"

namespace ogc {

/// Proves for each named dimension of the inputs whether it may be padded (`ogc-prove-padding`), by compiling two neighbouring
/// sizes of it up to the lower phase. `generic` is the module before the specialize phase, `specialized` the one after it, whose
/// first graph gives the sizes of the other dimensions. One dictionary a symbol, in the order of the model.
mlir::ArrayAttr provePadding(mlir::ModuleOp generic, mlir::ModuleOp specialized, const CompileOptions &options);

} // namespace ogc

#endif
