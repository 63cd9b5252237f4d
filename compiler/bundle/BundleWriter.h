//===- BundleWriter.h - cg module and compiled code to model.ogc ----------===//
#ifndef OGC_BUNDLE_BUNDLE_WRITER_H
#define OGC_BUNDLE_BUNDLE_WRITER_H

#include "runtime_lib/format/Bundle.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ogc::bundle {

/// One compiled CUDA program. Several programs may be of the same architecture.
struct CubinImage {
  std::string arch; // "sm_90", "sm_90a"
  std::string bytes;
};

/// A parameter behind the pointers; see bundle.fbs.
struct TensorMap {
  unsigned argument = 0;
  format::fb::DataType type = format::fb::DataType::F16;
  uint64_t offsetBytes = 0;
  std::vector<uint64_t> extents, stridesBytes;
  std::vector<uint32_t> box;
  uint32_t swizzleBytes = 0;
};

/// How a kernel is launched from one cubin.
struct CudaLaunch {
  unsigned cubin = 0; // index into BundleParts::cubins
  std::string entry;
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  std::array<int64_t, 3> cluster = {1, 1, 1};
  int64_t sharedBytes = 0; // dynamic shared memory
  std::vector<TensorMap> tensorMaps = {};
};

/// The entry of a kernel in the shared object; the runtime splits [0, units) among its threads.
struct CpuEntry {
  std::string symbol;
  int64_t units = 1;
};

/// Another choice for a kernel; the texts are the two sides of a line of a tuning table.
struct CudaVariant {
  std::string problem, knobs;
  CudaLaunch launch;
};

/// The code of one kernel symbol that cg.kernel and cg.gemm nodes name.
struct KernelCode {
  std::string name;
  std::vector<CudaLaunch> cuda; // at most one an architecture
  std::optional<CpuEntry> cpu;
  std::vector<CudaVariant> variants = {}; // of all architectures, in bundles for `tune`
};

struct Provenance {
  std::string model;                 // file name without folders
  std::string modelHash;             // "xxh64:…" or the like
  std::vector<std::string> flags;    // of the compilation, in the order given
  std::vector<std::string> versions; // "llvm 22.1", "nvrtc 13.0", …
};

/// An initializer of the model.
struct Parameter {
  std::string name;
  mlir::RankedTensorType type;
};

enum class WeightsMode {
  Inline,   // a section of the bundle
  External, // <path>.weights beside the bundle
  None,     // left out; only their checksum is kept
};

/// Everything in a bundle that the cg module does not say.
struct BundleParts {
  /// "sm_90", "cpu", …: a graph of copies alone has targets but no code.
  std::vector<std::string> targets;
  std::vector<CubinImage> cubins;
  std::string sharedObject; // empty: no cpu target
  std::string cpuTriple = "x86_64-unknown-linux-gnu";
  std::string cpuFeatures; // instruction sets needed, as LLVM names them: "+avx2,+fma"
  std::vector<KernelCode> kernels;
  Provenance provenance;
  std::vector<Parameter> parameters;
  WeightsMode weightsMode = WeightsMode::Inline;
  /// Looks at the finished bundle before it gets its name; a failure is reported, and no file is left behind.
  std::function<Status(const format::Bundle &)> accept;
};

/// Writes the `cg.graph`s and `cg.weight`s of `module` and the compiled code to `path`. A walk over the module: no decision is
/// taken here. Types of kernel arguments are taken from `kern.kernel`s where the module still has them. Equal inputs give equal
/// bytes. The file appears under its name only when it is complete (and passed the reader's verifier); on failure diagnostics are
/// emitted on the module and no file is left behind.
mlir::LogicalResult writeBundle(mlir::ModuleOp module, const BundleParts &parts, llvm::StringRef path);

} // namespace ogc::bundle

#endif
