//===- ManifestBuilder.cpp - cg module to the manifest of a bundle --------===//
#include "compiler/bundle/ManifestBuilder.h"

#include "compiler/analysis/KernelWork.h"
#include "compiler/bundle/ElementTypes.h"
#include "compiler/dialect/kern/Kern.h"
#include "runtime_lib/format/Bundle.h"
#include "runtime_lib/format/Checksum.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ogc::bundle {

/// Addresses that lie far from where the loader, the heap and the driver itself place things, so that they are granted; 64 TiB
/// apart.
static constexpr uint64_t kWeightsAddress = 0x200000000000, kContextAddress = 0x240000000000;

SectionSizes sectionSizes(ModuleOp module) {
  SectionSizes sizes;
  auto cover = [&](cg::Section section, int64_t offset, int64_t size) {
    uint64_t &bytes = sizes.bytes[static_cast<size_t>(section)];
    bytes = std::max(bytes, static_cast<uint64_t>(offset + size));
  };
  for (auto weight : module.getOps<cg::WeightOp>()) {
    auto type = cast<ShapedType>(weight.getValue().getType());
    if (std::optional<format::DataType> element = dataTypeOf(type.getElementType()))
      cover(cg::Section::Weights, weight.getOffsetBytes(),
            type.getNumElements() * static_cast<int64_t>(format::elementBytes(*element)));
  }
  for (auto graph : module.getOps<cg::GraphOp>()) {
    cover(cg::Section::Scratch, 0, graph.getScratchBytes());
    for (ArrayAttr bindings : {graph.getInputs(), graph.getOutputs()})
      for (auto binding : bindings.getAsRange<cg::BindingAttr>()) {
        cover(binding.getSection(), binding.getOffsetBytes(), binding.getSizeBytes());
        if (DenseI64ArrayAttr extent = binding.getExtent())
          cover(binding.getSection(), extent[1], sizeof(int64_t));
      }
    for (Operation &op : graph.getBody().front())
      for (cg::SliceAttr slice : cg::nodeSlices(&op))
        cover(slice.getSection(), slice.getOffsetBytes(), slice.getSizeBytes());
  }
  return sizes;
}

/// The names in a location, in order, without repetition.
static void collectNames(Location loc, llvm::SetVector<StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    names.insert(name.getName());
    return;
  }
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      collectNames(part, names);
}

/// What LLVM's list of features asks for, without what it switches off: "+avx2,-sse4a" is "avx2".
static std::string requiredFeatures(StringRef features) {
  SmallVector<StringRef> parts, required;
  features.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    if (!part.starts_with("-"))
      required.push_back(part.ltrim('+'));
  return llvm::join(required, ",");
}

static fb::Slice toSlice(cg::SliceAttr slice) {
  return fb::Slice(static_cast<uint64_t>(slice.getOffsetBytes()), static_cast<uint64_t>(slice.getSizeBytes()),
                   static_cast<fb::Section>(slice.getSection()), static_cast<fb::Access>(slice.getAccess()));
}

static fb::Dim3 toDim3(const std::array<int64_t, 3> &dims) {
  return fb::Dim3(static_cast<uint32_t>(dims[0]), static_cast<uint32_t>(dims[1]), static_cast<uint32_t>(dims[2]));
}

ManifestBuilder::Strings ManifestBuilder::strings(const std::vector<std::string> &values) {
  return builder_.CreateVectorOfStrings(values);
}

fb::DataType ManifestBuilder::dataType(Operation *op, Type type) {
  if (std::optional<format::DataType> result = dataTypeOf(type))
    return *result;
  op->emitOpError() << "uses element type " << type << ", which a bundle cannot hold";
  failed_ = true;
  return fb::DataType::U8;
}

uint32_t ManifestBuilder::kernelIndex(Operation *op, StringRef name) {
  auto found = kernelIndices_.find(name);
  if (found != kernelIndices_.end())
    return found->second;
  op->emitOpError() << "kernel '" << name << "' was not compiled";
  failed_ = true;
  return 0;
}

ManifestBuilder::VectorOffset<ManifestBuilder::Offset<fb::Blob>> ManifestBuilder::buildBlobs(ArrayRef<WrittenBlob> blobs) {
  std::vector<Offset<fb::Blob>> offsets;
  for (const WrittenBlob &blob : blobs)
    offsets.push_back(
        fb::CreateBlob(builder_, blob.kind, builder_.CreateString(blob.name), blob.offset, blob.size, blob.checksum));
  return builder_.CreateVector(offsets);
}

ManifestBuilder::VectorOffset<fb::DataType> ManifestBuilder::buildArgTypes(StringRef name) {
  auto kernel = module_.lookupSymbol<kern::KernelOp>(name);
  if (!kernel)
    return 0;
  std::vector<uint8_t> types;
  Block &body = kernel.getBody().front();
  auto add = [&](Type type) {
    if (auto shaped = dyn_cast<ShapedType>(type))
      types.push_back(static_cast<uint8_t>(dataType(kernel, shaped.getElementType())));
  };
  for (Type type : body.getArgumentTypes())
    add(type);
  if (!body.empty())
    for (Type type : body.back().getOperandTypes())
      add(type);
  return VectorOffset<fb::DataType>(builder_.CreateVector(types).o);
}

uint64_t ManifestBuilder::bodyHash(StringRef name) {
  auto kernel = module_.lookupSymbol<kern::KernelOp>(name);
  if (!kernel)
    return 0;
  std::string text;
  llvm::raw_string_ostream stream(text);
  // The text names large constants, but does not hold their values. Without the local scope, each print would number the whole
  // module.
  kernel.walk([&](Operation *op) {
    for (NamedAttribute attribute : op->getAttrs())
      if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute.getValue()))
        if (const AsmResourceBlob *blob = resource.getRawHandle().getBlob())
          stream << StringRef(blob->getData().data(), blob->getData().size());
  });
  kernel->print(stream, OpPrintingFlags().printGenericOpForm().elideLargeResourceString(0).useLocalScope());
  return format::checksum(text.data(), text.size());
}

ManifestBuilder::Offset<fb::KernelWork> ManifestBuilder::buildWork(StringRef name) {
  auto kernel = module_.lookupSymbol<kern::KernelOp>(name);
  if (!kernel || kernel.getBody().front().empty())
    return 0;
  KernelWork work = countWork(kernel);
  std::vector<uint64_t> bytes(work.argumentBytes.begin(), work.argumentBytes.end());
  fb::DataType type = work.productType ? dataType(kernel, work.productType) : fb::DataType::F32;
  auto schedule = builder_.CreateSharedString(kern::stringifySchedule(kernel.getSchedule()).str());
  return fb::CreateKernelWork(builder_, schedule, static_cast<uint64_t>(work.productOperations), type, work.tf32,
                              static_cast<uint64_t>(work.otherOperations), builder_.CreateVector(bytes));
}

ManifestBuilder::Offset<fb::CudaKernel> ManifestBuilder::buildLaunch(const CudaLaunch &launch) {
  fb::Dim3 grid = toDim3(launch.grid), block = toDim3(launch.block), cluster = toDim3(launch.cluster);
  std::vector<Offset<fb::TensorMap>> maps;
  for (const TensorMap &map : launch.tensorMaps)
    maps.push_back(fb::CreateTensorMapDirect(builder_, map.argument, map.type, map.offsetBytes, &map.extents, &map.stridesBytes,
                                             &map.box, map.swizzleBytes));
  auto entry = builder_.CreateString(launch.entry);
  VectorOffset<Offset<fb::TensorMap>> mapVector;
  if (!maps.empty())
    mapVector = builder_.CreateVector(maps);
  return fb::CreateCudaKernel(builder_, launch.cubin, entry, &grid, &block, &cluster, static_cast<uint32_t>(launch.sharedBytes),
                              mapVector);
}

ManifestBuilder::VectorOffset<ManifestBuilder::Offset<fb::CudaVariant>> ManifestBuilder::buildVariants(const KernelCode &code) {
  if (code.variants.empty())
    return 0;
  std::vector<Offset<fb::CudaVariant>> variants;
  for (const CudaVariant &variant : code.variants) {
    auto problem = builder_.CreateSharedString(variant.problem), knobs = builder_.CreateSharedString(variant.knobs);
    variants.push_back(fb::CreateCudaVariant(builder_, problem, knobs, buildLaunch(variant.launch)));
  }
  return builder_.CreateVector(variants);
}

ManifestBuilder::VectorOffset<ManifestBuilder::Offset<fb::Kernel>> ManifestBuilder::buildKernels() {
  std::vector<Offset<fb::Kernel>> kernels;
  for (const KernelCode &code : parts_.kernels) {
    kernelIndices_[code.name] = static_cast<uint32_t>(kernels.size());
    std::vector<Offset<fb::CudaKernel>> launches;
    for (const CudaLaunch &launch : code.cuda)
      launches.push_back(buildLaunch(launch));
    Offset<fb::CpuKernel> cpu;
    if (code.cpu)
      cpu = fb::CreateCpuKernel(builder_, builder_.CreateString(code.cpu->symbol), code.cpu->units);
    auto launchVector = builder_.CreateVector(launches);
    auto argTypes = buildArgTypes(code.name);
    auto variants = buildVariants(code);
    auto work = buildWork(code.name);
    kernels.push_back(fb::CreateKernel(builder_, builder_.CreateString(code.name), launchVector, cpu, argTypes,
                                       bodyHash(code.name), variants, work));
  }
  return builder_.CreateVector(kernels);
}

ManifestBuilder::VectorOffset<ManifestBuilder::Offset<fb::Binding>>
ManifestBuilder::buildBindings(cg::GraphOp graph, ArrayAttr bindings, ArrayRef<std::optional<format::Uses>> uses) {
  std::vector<Offset<fb::Binding>> offsets;
  for (auto [binding, itsUses] : llvm::zip(bindings.getAsRange<cg::BindingAttr>(), uses)) {
    std::vector<std::string> symbols;
    for (Attribute symbol : binding.getSymbols())
      symbols.push_back(isa<StringAttr>(symbol) ? cast<StringAttr>(symbol).str() : "");
    symbols.resize(static_cast<size_t>(binding.getType().getRank()));
    fb::Slice slice(static_cast<uint64_t>(binding.getOffsetBytes()), static_cast<uint64_t>(binding.getSizeBytes()),
                    static_cast<fb::Section>(binding.getSection()), fb::Access::ReadWrite);
    fb::DataType type = dataType(graph, binding.getType().getElementType());
    auto name = builder_.CreateString(binding.getName().str());
    auto shape = builder_.CreateVector(binding.getType().getShape().data(), binding.getType().getShape().size());
    auto symbolVector = strings(symbols);
    VectorOffset<const fb::BindingUse *> useVector;
    if (itsUses)
      useVector = builder_.CreateVectorOfStructs(*itsUses);
    uint32_t extentDim = 0;
    std::optional<fb::Slice> extent;
    if (DenseI64ArrayAttr runTime = binding.getExtent()) {
      extentDim = static_cast<uint32_t>(runTime[0]);
      extent.emplace(static_cast<uint64_t>(runTime[1]), sizeof(int64_t), static_cast<fb::Section>(binding.getSection()),
                     fb::Access::Read);
    }
    offsets.push_back(
        fb::CreateBinding(builder_, name, type, shape, symbolVector, &slice, useVector, extentDim, extent ? &*extent : nullptr));
  }
  return builder_.CreateVector(offsets);
}

ManifestBuilder::Offset<fb::Gemm> ManifestBuilder::buildGemm(cg::GemmOp op) {
  fb::Activation activation = fb::Activation::None;
  if (op.getActivation() == "relu")
    activation = fb::Activation::Relu;
  else if (op.getActivation() == "gelu_tanh")
    activation = fb::Activation::GeluTanh;
  else if (!op.getActivation().empty()) {
    op.emitOpError() << "has activation '" << op.getActivation() << "', expected '', 'relu' or 'gelu_tanh'";
    failed_ = true;
  }
  return fb::CreateGemm(builder_, dataType(op, op.getElementType()), dataType(op, op.getResultType()), op.getBatch(), op.getM(),
                        op.getN(), op.getK(), op.getBroadcastB(), op.getTransposeB(), op.getHasBias(), op.getHasResidual(),
                        activation, op.getTf32(), op.getHasWorkspace());
}

ManifestBuilder::Offset<fb::Node> ManifestBuilder::buildNode(Operation *op) {
  fb::NodeKind kind = fb::NodeKind::Kernel;
  uint32_t kernel = 0;
  Offset<fb::Gemm> gemm;
  uint8_t value = 0;
  if (auto node = dyn_cast<cg::KernelOp>(op)) {
    kernel = kernelIndex(op, node.getKernel());
  } else if (auto node = dyn_cast<cg::GemmOp>(op)) {
    kind = fb::NodeKind::Gemm;
    kernel = kernelIndex(op, node.getFallback());
    gemm = buildGemm(node);
  } else if (isa<cg::MemcpyOp>(op)) {
    kind = fb::NodeKind::Memcpy;
  } else if (auto node = dyn_cast<cg::MemsetOp>(op)) {
    kind = fb::NodeKind::Memset;
    value = static_cast<uint8_t>(node.getValue());
  }
  std::vector<fb::Slice> args;
  for (cg::SliceAttr slice : cg::nodeSlices(op))
    args.push_back(toSlice(slice));
  llvm::SetVector<StringRef> names;
  collectNames(op->getLoc(), names);
  std::vector<std::string> nameStrings;
  for (StringRef name : names)
    nameStrings.push_back(name.str());
  auto argVector = builder_.CreateVectorOfStructs(args);
  return fb::CreateNode(builder_, kind, kernel, argVector, gemm, value, strings(nameStrings));
}

/// The arguments that lie in each input and output of a graph.
static std::vector<std::optional<format::Uses>> findUses(cg::GraphOp graph) {
  std::vector<fb::Slice> bindings;
  for (ArrayAttr list : {graph.getInputs(), graph.getOutputs()})
    for (auto binding : list.getAsRange<cg::BindingAttr>())
      bindings.emplace_back(static_cast<uint64_t>(binding.getOffsetBytes()), static_cast<uint64_t>(binding.getSizeBytes()),
                            static_cast<fb::Section>(binding.getSection()), fb::Access::ReadWrite);
  std::vector<format::Argument> arguments;
  for (auto [node, op] : llvm::enumerate(graph.getBody().front()))
    for (auto [index, slice] : llvm::enumerate(cg::nodeSlices(&op)))
      arguments.push_back({static_cast<uint32_t>(node), static_cast<uint32_t>(index), toSlice(slice)});
  return format::bindingUses(bindings, graph.getInputs().size(), arguments);
}

ManifestBuilder::Offset<fb::Graph> ManifestBuilder::buildGraph(cg::GraphOp graph) {
  std::vector<Offset<fb::Node>> nodes;
  std::vector<fb::Edge> edges;
  llvm::DenseMap<Operation *, uint32_t> indices;
  for (Operation &op : graph.getBody().front()) {
    if (!cg::isNode(&op)) {
      op.emitOpError() << "is no node of a bundle";
      failed_ = true;
      continue;
    }
    uint32_t index = static_cast<uint32_t>(nodes.size());
    auto kinds = op.getAttrOfType<DenseI32ArrayAttr>("edge_kinds");
    for (auto [i, dependency] : llvm::enumerate(cg::nodeDependencies(&op))) {
      bool programmatic = kinds && kinds[static_cast<int64_t>(i)] == static_cast<int32_t>(cg::EdgeKind::Programmatic);
      edges.emplace_back(indices.lookup(dependency.getDefiningOp()), index,
                         programmatic ? fb::EdgeKind::Programmatic : fb::EdgeKind::Full);
    }
    nodes.push_back(buildNode(&op));
    indices[&op] = index;
  }
  auto id = builder_.CreateString(graph.getSymName().str());
  std::vector<std::optional<format::Uses>> uses = findUses(graph);
  ArrayRef<std::optional<format::Uses>> all = uses;
  auto inputs = buildBindings(graph, graph.getInputs(), all.take_front(graph.getInputs().size()));
  auto outputs = buildBindings(graph, graph.getOutputs(), all.drop_front(graph.getInputs().size()));
  auto nodeVector = builder_.CreateVector(nodes);
  auto edgeVector = builder_.CreateVectorOfStructs(edges);
  return fb::CreateGraph(builder_, id, inputs, outputs, nodeVector, edgeVector, static_cast<uint64_t>(graph.getScratchBytes()),
                         static_cast<uint64_t>(graph.getScratchBoundBytes()),
                         static_cast<uint32_t>(graph.getTopology().value_or(format::kNoTopology)));
}

ManifestBuilder::VectorOffset<ManifestBuilder::Offset<fb::Graph>> ManifestBuilder::buildGraphs() {
  std::vector<Offset<fb::Graph>> graphs;
  for (auto graph : module_.getOps<cg::GraphOp>())
    graphs.push_back(buildGraph(graph));
  return builder_.CreateVector(graphs);
}

ManifestBuilder::VectorOffset<ManifestBuilder::Offset<fb::Weight>> ManifestBuilder::buildWeights() {
  std::vector<Offset<fb::Weight>> weights;
  for (auto op : module_.getOps<cg::WeightOp>()) {
    auto type = cast<ShapedType>(op.getValue().getType());
    fb::DataType element = dataType(op, type.getElementType());
    auto name = builder_.CreateString(op.getName().str());
    auto shape = builder_.CreateVector(type.getShape().data(), type.getShape().size());
    weights.push_back(fb::CreateWeight(builder_, name, element, shape, static_cast<uint64_t>(op.getOffsetBytes()),
                                       static_cast<uint64_t>(type.getNumElements()) * format::elementBytes(element)));
  }
  return builder_.CreateVector(weights);
}

ManifestBuilder::VectorOffset<ManifestBuilder::Offset<fb::Parameter>> ManifestBuilder::buildParameters() {
  std::vector<Offset<fb::Parameter>> parameters;
  for (const Parameter &parameter : parts_.parameters) {
    auto name = builder_.CreateString(parameter.name);
    auto shape = builder_.CreateVector(parameter.type.getShape().data(), parameter.type.getShape().size());
    parameters.push_back(fb::CreateParameter(builder_, name, dataType(module_, parameter.type.getElementType()), shape));
  }
  return builder_.CreateVector(parameters);
}

ManifestBuilder::Offset<fb::Provenance> ManifestBuilder::buildProvenance() {
  const Provenance &from = parts_.provenance;
  auto producer = builder_.CreateString(OGC_PRODUCER), model = builder_.CreateString(from.model),
       hash = builder_.CreateString(from.modelHash);
  auto flags = strings(from.flags), versions = strings(from.versions);
  return fb::CreateProvenance(builder_, producer, model, hash, flags, versions);
}

/// From the module's `ogc.padding`, which `ogc-prove-padding` describes.
ManifestBuilder::VectorOffset<ManifestBuilder::Offset<fb::Symbol>> ManifestBuilder::buildSymbols() {
  std::vector<Offset<fb::Symbol>> symbols;
  auto answers = module_->getAttrOfType<ArrayAttr>("ogc.padding");
  for (Attribute attribute : answers ? answers.getValue() : ArrayRef<Attribute>()) {
    auto answer = dyn_cast<DictionaryAttr>(attribute);
    auto safe = answer ? answer.getAs<BoolAttr>("safe") : BoolAttr();
    auto cuts = answer ? answer.getAs<ArrayAttr>("cuts") : ArrayAttr();
    if (!safe || !cuts)
      continue;
    auto text = [&](StringRef key) {
      auto value = answer.getAs<StringAttr>(key);
      return builder_.CreateString(value ? value.str() : "");
    };
    std::vector<Offset<fb::RowCut>> offsets;
    for (auto cut : cuts.getAsRange<DenseI64ArrayAttr>())
      if (cut.size() == 3)
        offsets.push_back(fb::CreateRowCut(builder_, static_cast<uint32_t>(cut[0]), static_cast<uint32_t>(cut[1]), cut[2]));
    auto cutVector = builder_.CreateVector(offsets);
    auto name = text("symbol"), type = text("operator"), node = text("node"), reason = text("reason");
    symbols.push_back(fb::CreateSymbol(builder_, name, safe.getValue(), cutVector, type, node, reason));
  }
  return builder_.CreateVector(symbols);
}

LogicalResult ManifestBuilder::build(ArrayRef<WrittenBlob> blobs, const SectionSizes &sizes, uint64_t weightsChecksum) {
  auto provenance = buildProvenance();
  auto targetVector = strings(parts_.targets);
  auto blobVector = buildBlobs(blobs);
  auto kernels = buildKernels();
  auto graphs = buildGraphs();
  auto weights = buildWeights();
  auto arena =
      fb::CreateArena(builder_, kWeightsAddress, kContextAddress, sizes.of(cg::Section::Weights), sizes.of(cg::Section::State),
                      sizes.of(cg::Section::Inputs), sizes.of(cg::Section::Outputs), sizes.of(cg::Section::Scratch));
  auto features = builder_.CreateString(requiredFeatures(parts_.cpuFeatures));
  auto parameters = buildParameters();
  auto symbols = buildSymbols();
  auto manifest = fb::CreateManifest(builder_, provenance, targetVector, blobVector, kernels, graphs, arena,
                                     static_cast<fb::WeightsMode>(parts_.weightsMode), weightsChecksum, weights, features,
                                     parameters, symbols);
  fb::FinishManifestBuffer(builder_, manifest);
  return failure(failed_);
}

} // namespace ogc::bundle
