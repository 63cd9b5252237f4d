//===- Cases.h - the cases of a folder that cases.py made -----------------===//
#ifndef OGC_TEST_CONFORMANCE_CASES_H
#define OGC_TEST_CONFORMANCE_CASES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>
#include <vector>

namespace ogc::conformance {

/// An input or an expected output: dense, row-major, one byte for an element of less.
struct Tensor {
  std::string name, type;
  std::vector<int64_t> shape;
  llvm::ArrayRef<char> data;
  /// Where no implementation can give the same values, what they have to keep to: "zero or one", "dropped", "mask". Else empty.
  std::string law;
};

struct Case {
  std::string name;
  double rtol = 0, atol = 0;
  std::vector<Tensor> inputs, outputs;
};

/// A case in one of its variants: plain, folded (all inputs are initializers) or half (every second one is).
struct Trial {
  const Case *of = nullptr;
  std::string variant, modelPath;
  std::string label() const { return of->name + "." + variant; }
};

/// All cases with tensors, and the mapped file their bytes are in.
class Cases {
public:
  static llvm::Expected<std::unique_ptr<Cases>> open(llvm::StringRef folder);

  const std::vector<std::unique_ptr<Case>> &all() const { return cases; }
  /// The trials of the named variants, in order of the cases. A model that the folder lacks has no trial.
  std::vector<Trial> trials(llvm::ArrayRef<std::string> variants) const;
  std::string warmUpModel() const { return folder + "/warmup.onnx"; }

private:
  llvm::Error add(const llvm::json::Object &entry);

  std::string folder;
  std::unique_ptr<llvm::MemoryBuffer> bytes;
  std::vector<std::unique_ptr<Case>> cases;
  std::vector<std::vector<std::string>> variants; ///< of each case
};

} // namespace ogc::conformance

#endif
