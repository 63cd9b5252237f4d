//===- BundleReader.h - model.ogc to a cg module --------------------------===//
#ifndef OGC_BUNDLE_BUNDLE_READER_H
#define OGC_BUNDLE_BUNDLE_READER_H

#include "runtime_lib/format/Bundle.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>

namespace ogc::bundle {

/// The module that `bundle` was written from, without the bodies of its kernels. Weights that the bundle holds are attached
/// without a copy and keep it alive; others have no data.
mlir::OwningOpRef<mlir::ModuleOp> readBundle(const std::shared_ptr<const format::Bundle> &bundle, mlir::MLIRContext *context);

/// Prints the module of the bundle at `path`, large weights elided.
Status printBundleIr(const std::string &path, llvm::raw_ostream &os);

} // namespace ogc::bundle

#endif
