//===- Execute.h - compiles and runs one trial ----------------------------===//
#ifndef OGC_TEST_CONFORMANCE_EXECUTE_H
#define OGC_TEST_CONFORMANCE_EXECUTE_H

#include "test/conformance/Cases.h"
#include <functional>

namespace ogc::conformance {

struct Settings {
  std::vector<std::string> targets = {"cpu"};
  /// Where bundles are written as NAME.VARIANT.ogc; they are removed unless `keep` is set.
  std::string bundles;
  bool keep = false;
  /// Run what was compiled (here or before) on `device`.
  bool run = true;
  std::string device = "cpu", cacheDir, precision = "fp32";
};

/// Compiles a trial into the file `bundle`, with the values ("NAME=VALUE") of some inputs; on failure `errors` gets a line each.
using Compile = std::function<bool(const Trial &trial, const Settings &settings, const std::string &bundle,
                                   const std::vector<std::string> &values, std::string &errors)>;

/// The compiler of the process, warm for every trial. Empty in the program that only runs bundles, which so needs no compiler.
Compile makeCompile(const Cases &cases, const Settings &settings);

/// A line of the report: case, variant, status and message, and for a run the "bits" of all outputs.
/// Status: right; given (right once the values of small integer inputs were given to the compiler, as shapes may depend on them);
/// refused (the compiler gave a reason); wrong (which output); missing (no bundle was compiled before).
/// Without `compile` the bundle was compiled before.
llvm::json::Object execute(const Compile &compile, const Trial &trial, const Settings &settings);

} // namespace ogc::conformance

#endif
