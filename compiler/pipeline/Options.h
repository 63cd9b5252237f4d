//===- Options.h - what a compilation is asked for ------------------------===//
#ifndef OGC_PIPELINE_OPTIONS_H
#define OGC_PIPELINE_OPTIONS_H

#include "compiler/pipeline/Phases.h"
#include "runtime_lib/format/Bundle.h"

#include <memory>
#include <string>
#include <vector>

namespace ogc {

struct CompileOptions {
  std::string modelPath;
  std::string outputPath;
  /// Shapes of the graphs (docs/shapes.md): "input=1x3x224x224,other=1x128", "b8: batch=8 seq=32..512:x2", "@buckets.yaml". Empty
  /// for a model without unknown dimensions.
  std::vector<std::string> shapes;
  /// "cpu" and CUDA architectures "sm_XX".
  std::vector<std::string> targets = {"sm_90", "cpu"};
  /// fp32, tf32 (f32 storage, products rounded to tf32), fp16 or bf16 (storage of everything but the model's inputs and outputs).
  std::string precision = "fp32";
  /// inline, external (FILE.weights beside the bundle) or none.
  std::string weights = "inline";
  /// Provider of matrix products with constant weights on CUDA: own or cublaslt.
  std::string gemm = "own";
  /// Processor of the cpu target: "host" or an LLVM processor name.
  std::string cpu = "host";
  /// "INPUT=OUTPUT": declared as one state each.
  std::vector<std::string> states;
  /// Edges in one chain, the oracle for the derived edges.
  bool serial = false;
  /// Most bytes of a context (state, inputs, outputs, scratch); 0: no limit.
  int64_t memoryBytes = 0;
  /// Programmatic edges between kernels, on architectures that have them (sm_90 and later).
  bool pdl = true;
  /// Optimizations that are left out, of `optionalPasses` (compiler/pipeline/Pipelines.h).
  std::vector<std::string> disabled;
  /// Tuning table that comes before the shipped one (docs/tuning.md); "none" for the rules alone.
  std::string tuning;
  /// Compile every other choice of each CUDA kernel too, for `tune` to measure.
  bool tuningCandidates = false;
  /// Threads of the compiler itself; 0 means one a core.
  unsigned threads = 0;
  /// Folder of the compiled kernels' cache; empty for the default.
  std::string cacheDir;

  /// Take the code of this bundle instead of compiling kernels, and fail where the result differs from it in more than its
  /// weights.
  std::shared_ptr<const format::Bundle> refit;

  /// Values of inputs, "NAME=VALUE" as `parseInputValue` of compiler/import reads them: the bundle has no such inputs.
  std::vector<std::string> values;

  /// Stop after this phase and print its IR to the output path, or to standard output when it is empty.
  std::optional<Phase> stopAfter;
  bool printIrAfterAll = false;
  /// Print a line about each graph to standard output at the end.
  bool summary = true;
  bool timing = false;
  /// Folder for the IR after each phase and the text of the kernels; empty for none.
  std::string dumpDir;
};

} // namespace ogc

#endif
