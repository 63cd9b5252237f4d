//===- ManifestBuilder.h - cg module to the manifest of a bundle ----------===//
#ifndef OGC_BUNDLE_MANIFEST_BUILDER_H
#define OGC_BUNDLE_MANIFEST_BUILDER_H

#include "compiler/bundle/BundleWriter.h"
#include "compiler/dialect/cg/Cg.h"
#include "runtime_lib/format/BindingUses.h"
#include "runtime_lib/format/bundle_generated.h"

#include "llvm/ADT/StringMap.h"

namespace ogc::bundle {

namespace fb = format::fb;

/// Bytes of each section that a module uses, indexed by cg::Section.
struct SectionSizes {
  uint64_t bytes[5] = {};
  uint64_t of(cg::Section section) const { return bytes[static_cast<size_t>(section)]; }
};
SectionSizes sectionSizes(mlir::ModuleOp module);

/// A section of the file as it was written.
struct WrittenBlob {
  fb::BlobKind kind;
  std::string name;
  uint64_t offset, size, checksum;
};

/// Walks the module and builds the FlatBuffer. Everything that has no place in a bundle is reported at its operation.
class ManifestBuilder {
public:
  ManifestBuilder(mlir::ModuleOp module, const BundleParts &parts) : module_(module), parts_(parts) {}

  /// `blobs` begin with the cubins, in the order of `parts`.
  mlir::LogicalResult build(llvm::ArrayRef<WrittenBlob> blobs, const SectionSizes &sizes, uint64_t weightsChecksum);

  llvm::StringRef bytes() const { return {reinterpret_cast<const char *>(builder_.GetBufferPointer()), builder_.GetSize()}; }

private:
  template <typename T> using Offset = flatbuffers::Offset<T>;
  template <typename T> using VectorOffset = Offset<flatbuffers::Vector<T>>;
  using Strings = VectorOffset<Offset<flatbuffers::String>>;

  Strings strings(const std::vector<std::string> &values);
  VectorOffset<Offset<fb::Blob>> buildBlobs(llvm::ArrayRef<WrittenBlob> blobs);
  VectorOffset<Offset<fb::Kernel>> buildKernels();
  Offset<fb::CudaKernel> buildLaunch(const CudaLaunch &launch);
  VectorOffset<Offset<fb::CudaVariant>> buildVariants(const KernelCode &code);
  VectorOffset<fb::DataType> buildArgTypes(llvm::StringRef kernel);
  VectorOffset<Offset<fb::Graph>> buildGraphs();
  /// `uses` has an entry a binding.
  VectorOffset<Offset<fb::Binding>> buildBindings(cg::GraphOp graph, mlir::ArrayAttr bindings,
                                                  llvm::ArrayRef<std::optional<format::Uses>> uses);
  VectorOffset<Offset<fb::Parameter>> buildParameters();
  uint64_t bodyHash(llvm::StringRef kernel);
  Offset<fb::KernelWork> buildWork(llvm::StringRef kernel);
  VectorOffset<Offset<fb::Weight>> buildWeights();
  Offset<fb::Graph> buildGraph(cg::GraphOp graph);
  Offset<fb::Node> buildNode(mlir::Operation *op);
  Offset<fb::Gemm> buildGemm(cg::GemmOp op);
  Offset<fb::Provenance> buildProvenance();
  VectorOffset<Offset<fb::Symbol>> buildSymbols();
  uint32_t kernelIndex(mlir::Operation *op, llvm::StringRef name);
  fb::DataType dataType(mlir::Operation *op, mlir::Type type);

  mlir::ModuleOp module_;
  const BundleParts &parts_;
  flatbuffers::FlatBufferBuilder builder_;
  llvm::StringMap<uint32_t> kernelIndices_;
  bool failed_ = false;
};

} // namespace ogc::bundle

#endif
