//===- Cases.h - what the fuzzer does with a damaged file ------------------===//
#ifndef OGC_TEST_FUZZ_CASES_H
#define OGC_TEST_FUZZ_CASES_H

#include <cstdint>
#include <memory>
#include <string>

namespace ogc::fuzz {

/// Cases by number. A case is made from the seed and its number alone.
class Cases {
public:
  virtual ~Cases() = default;
  /// Files in the corpus.
  virtual size_t size() const = 0;
  virtual const char *suffix() const = 0;
  /// The damaged file of a case.
  virtual std::string make(uint64_t index) const = 0;
  /// Makes a case and uses it; false where it was refused. Ends the process where something is wrong.
  virtual bool run(uint64_t index) const = 0;
};

/// Models (.onnx), compiled to a plan of the cpu target, and some of them to a bundle that is then run. Right is: compiled, or
/// refused with a diagnostic on one line.
std::unique_ptr<Cases> modelCases(const std::string &corpus, uint64_t seed);

/// Bundles (.ogc), opened, shown in every form, loaded, and run where the code gets the buffers that it was compiled for. Right
/// is: all of that, or a status that says why not.
std::unique_ptr<Cases> bundleCases(const std::string &corpus, uint64_t seed);

} // namespace ogc::fuzz

#endif
