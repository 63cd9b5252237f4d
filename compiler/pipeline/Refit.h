//===- Refit.h - other weights for a bundle that exists -------------------===//
//
// A bundle is refitted by compiling the model with the new weights again, up to the plan, and taking the code of the old bundle.
// So every weight that was folded, cast, merged or packed is right by the passes that made it the first time. That the result
// differs in the weights alone is checked on the finished bundle.
//
#ifndef OGC_PIPELINE_REFIT_H
#define OGC_PIPELINE_REFIT_H

#include "compiler/bundle/BundleWriter.h"
#include "runtime_lib/format/Bundle.h"

#include "mlir/IR/BuiltinOps.h"

#include <vector>

namespace ogc {

/// The initializers of a module as it was imported.
std::vector<bundle::Parameter> collectParameters(mlir::ModuleOp module);

/// Emits an error for each initializer that `base` was compiled with and `parameters` lacks or has of another shape or type, and
/// for each new one.
mlir::LogicalResult checkParameters(mlir::ModuleOp module, const std::vector<bundle::Parameter> &parameters,
                                    const format::Bundle &base);

/// Fills in the code, the launch shapes and the flags of `base`, and a check that the written bundle differs from it in its
/// weights alone. Emits an error where a kernel of the module is not in `base`.
mlir::LogicalResult takeCode(mlir::ModuleOp module, const std::shared_ptr<const format::Bundle> &base,
                             bundle::BundleParts &parts);

} // namespace ogc

#endif
