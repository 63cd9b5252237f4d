//===- Execute.h - compiles and runs one trial ----------------------------===//
#ifndef OGC_TEST_CONFORMANCE_EXECUTE_H
#define OGC_TEST_CONFORMANCE_EXECUTE_H

#include "mlir/IR/MLIRContext.h"
#include "test/conformance/Cases.h"

namespace ogc::conformance {

struct Settings {
  std::vector<std::string> targets = {"cpu"};
  /// Where bundles are written as NAME.VARIANT.ogc; they are removed unless `keep` is set.
  std::string bundles;
  bool keep = false;
  /// Compile, and run what was compiled (here or before) on `device`.
  bool compile = true, run = true;
  std::string device = "cpu", cacheDir, precision = "fp32";
};

/// A line of the report: case, variant, status and message, and for a run the "bits" of all outputs.
/// Status: right; given (right once the values of small integer inputs were given to the compiler, as shapes may depend on them);
/// refused (the compiler gave a reason); wrong (which output); missing (no bundle was compiled before).
llvm::json::Object execute(mlir::MLIRContext &context, const Trial &trial, const Settings &settings);

} // namespace ogc::conformance

#endif
