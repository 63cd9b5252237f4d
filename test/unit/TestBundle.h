//===- TestBundle.h - a small bundle made by hand -------------------------===//
#ifndef OGC_TEST_UNIT_TEST_BUNDLE_H
#define OGC_TEST_UNIT_TEST_BUNDLE_H

#include "runtime_lib/format/BindingUses.h"
#include "runtime_lib/format/Bundle.h"
#include "runtime_lib/format/Checksum.h"
#include "runtime_lib/format/FileHeader.h"

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

namespace ogc::test {

namespace fb = format::fb;

/// Bytes of a file, aligned for Bundle::view.
struct Image {
  std::vector<uint64_t> words;
  size_t size = 0;

  explicit Image(const std::string &bytes) : words(bytes.size() / 8 + 1), size(bytes.size()) {
    std::memcpy(words.data(), bytes.data(), size);
  }
  std::span<const std::byte> span() const { return {reinterpret_cast<const std::byte *>(words.data()), size}; }
  char *data() { return reinterpret_cast<char *>(words.data()); }
};

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline std::unique_ptr<fb::BindingT> makeBinding(const char *name, fb::Section section, uint64_t offset, int64_t count) {
  auto binding = std::make_unique<fb::BindingT>();
  binding->name = name;
  binding->type = fb::DataType::F32;
  binding->shape = {count};
  binding->symbols = {"n"};
  binding->slice = std::make_unique<fb::Slice>(offset, static_cast<uint64_t>(4 * count), section, fb::Access::ReadWrite);
  return binding;
}

inline std::unique_ptr<fb::KernelT> makeKernel(const char *name, size_t args, int64_t units, bool withCuda) {
  auto kernel = std::make_unique<fb::KernelT>();
  kernel->name = name;
  kernel->arg_types.assign(args, fb::DataType::F32);
  kernel->cpu = std::make_unique<fb::CpuKernelT>();
  kernel->cpu->symbol = name;
  kernel->cpu->units = units;
  if (withCuda) {
    auto launch = std::make_unique<fb::CudaKernelT>();
    launch->cubin = 1;
    launch->entry = name;
    launch->grid = std::make_unique<fb::Dim3>(static_cast<uint32_t>(units + 127) / 128, 1, 1);
    launch->block = std::make_unique<fb::Dim3>(128, 1, 1);
    launch->cluster = std::make_unique<fb::Dim3>(1, 1, 1);
    kernel->cuda.push_back(std::move(launch));
  }
  return kernel;
}

inline fb::Slice slice(fb::Section section, uint64_t offset, uint64_t size, fb::Access access) {
  return fb::Slice(offset, size, section, access);
}

inline std::unique_ptr<fb::NodeT> makeNode(fb::NodeKind kind, uint32_t kernel, std::vector<fb::Slice> args, const char *name) {
  auto node = std::make_unique<fb::NodeT>();
  node->kind = kind;
  node->kernel = kernel;
  node->args = std::move(args);
  node->names = {name};
  return node;
}

/// A tensor map of 16 x 8 elements of 16 bits in argument `argument`.
inline std::unique_ptr<fb::TensorMapT> makeTensorMap(uint32_t argument) {
  auto map = std::make_unique<fb::TensorMapT>();
  map->argument = argument;
  map->type = fb::DataType::F16;
  map->extents = {8, 16};
  map->strides_bytes = {16};
  map->box = {8, 8};
  return map;
}

/// A file made of sections and a manifest; `change` may spoil the manifest first.
inline std::string assemble(fb::ManifestT &manifest, const std::vector<std::string> &sections,
                            const std::function<void(fb::ManifestT &)> &change) {
  std::string file(sizeof(format::FileHeader), '\0');
  for (size_t i = 0; i < sections.size(); ++i) {
    file.resize(format::alignUp(file.size()), '\0');
    fb::BlobT &blob = *manifest.blobs[i];
    blob.offset_bytes = file.size();
    blob.size_bytes = sections[i].size();
    blob.checksum = format::checksum(sections[i].data(), sections[i].size());
    if (blob.kind == fb::BlobKind::Weights)
      manifest.weights_checksum = blob.checksum;
    file += sections[i];
  }
  if (change)
    change(manifest);
  file.resize(format::alignUp(file.size()), '\0');
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishManifestBuffer(builder, fb::CreateManifest(builder, &manifest));
  format::FileHeader header = {};
  std::memcpy(header.magic, format::kMagic, sizeof header.magic);
  header.version = format::kFormatVersion;
  header.headerBytes = sizeof header;
  header.manifestOffset = file.size();
  header.manifestBytes = builder.GetSize();
  header.fileBytes = file.size() + builder.GetSize();
  header.manifestChecksum = format::checksum(builder.GetBufferPointer(), builder.GetSize());
  header.headerChecksum = format::checksum(&header, offsetof(format::FileHeader, headerChecksum));
  file.append(reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize());
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

inline constexpr int64_t kCount = 64;

/// Fills in the uses of the bindings.
inline void findUses(fb::GraphT &graph) {
  std::vector<fb::Slice> bindings;
  for (const auto *list : {&graph.inputs, &graph.outputs})
    for (const auto &binding : *list)
      bindings.push_back(*binding->slice);
  std::vector<format::Argument> arguments;
  for (uint32_t node = 0; node < graph.nodes.size(); ++node)
    for (uint32_t i = 0; i < graph.nodes[node]->args.size(); ++i)
      arguments.push_back({node, i, graph.nodes[node]->args[i]});
  std::vector<std::optional<format::Uses>> uses = format::bindingUses(bindings, graph.inputs.size(), arguments);
  for (size_t i = 0; i < bindings.size(); ++i)
    (i < graph.inputs.size() ? graph.inputs[i] : graph.outputs[i - graph.inputs.size()])->uses = uses[i].value_or(format::Uses());
}

/// The graph of the test bundle, of kCount floats each: a = x + w; b = 2 a; c = copy of a; y = c - b; z = zeros. So y = -(x + w).
inline std::unique_ptr<fb::GraphT> makeGraph() {
  constexpr uint64_t bytes = 4 * kCount;
  using fb::Access, fb::NodeKind, fb::Section;
  auto graph = std::make_unique<fb::GraphT>();
  graph->id = "main";
  graph->inputs.push_back(makeBinding("x", Section::Inputs, 0, kCount));
  graph->outputs.push_back(makeBinding("y", Section::Outputs, 0, kCount));
  graph->outputs.push_back(makeBinding("z", Section::Outputs, 256, kCount));
  auto a = [&](Access access) { return slice(Section::Scratch, 0, bytes, access); };
  auto b = [&](Access access) { return slice(Section::Scratch, 256, bytes, access); };
  auto c = [&](Access access) { return slice(Section::Scratch, 512, bytes, access); };
  fb::Slice x = slice(Section::Inputs, 0, bytes, Access::Read), w = slice(Section::Weights, 0, bytes, Access::Read);
  graph->nodes.push_back(makeNode(NodeKind::Kernel, 0, {x, w, a(Access::Write)}, "first"));
  graph->nodes.push_back(makeNode(NodeKind::Kernel, 1, {a(Access::Read), b(Access::Write)}, "second"));
  graph->nodes.push_back(makeNode(NodeKind::Memcpy, 0, {a(Access::Read), c(Access::Write)}, "copy"));
  graph->nodes.push_back(makeNode(NodeKind::Kernel, 2,
                                  {c(Access::Read), b(Access::Read), slice(Section::Outputs, 0, bytes, Access::Write)}, "last"));
  graph->nodes.push_back(makeNode(NodeKind::Memset, 0, {slice(Section::Outputs, 256, bytes, Access::Write)}, "zeros"));
  graph->edges = {fb::Edge(0, 1, fb::EdgeKind::Programmatic), fb::Edge(0, 2, fb::EdgeKind::Full),
                  fb::Edge(1, 3, fb::EdgeKind::Full), fb::Edge(2, 3, fb::EdgeKind::Full)};
  graph->scratch_bytes = 768;
  graph->scratch_bound_bytes = 768;
  graph->topology = 0;
  findUses(*graph);
  return graph;
}

/// Adds graphs to the test bundle: "swapped" computes y = x + w by b - c, with the same topology as "main"; "chain" what "main"
/// does, but with one edge more.
inline void addGraphs(fb::ManifestT &manifest) {
  manifest.graphs.push_back(makeGraph());
  fb::GraphT &swapped = *manifest.graphs.back();
  swapped.id = "swapped";
  std::swap(swapped.nodes[3]->args[0], swapped.nodes[3]->args[1]);
  manifest.graphs.push_back(makeGraph());
  fb::GraphT &chain = *manifest.graphs.back();
  chain.id = "chain";
  chain.topology = 1;
  chain.edges.push_back(fb::Edge(3, 4, fb::EdgeKind::Full));
}

/// Adds graph "state": present = past + w, one buffer of the state section, and y = 2 present.
inline void addStateGraph(fb::ManifestT &manifest) {
  using fb::Access, fb::NodeKind, fb::Section;
  constexpr uint64_t bytes = 4 * kCount;
  manifest.arena->state_bytes = bytes;
  auto graph = std::make_unique<fb::GraphT>();
  graph->id = "state";
  graph->inputs.push_back(makeBinding("past", Section::State, 0, kCount));
  graph->outputs.push_back(makeBinding("present", Section::State, 0, kCount));
  graph->outputs.push_back(makeBinding("y", Section::Outputs, 0, kCount));
  fb::Slice state = slice(Section::State, 0, bytes, Access::ReadWrite), w = slice(Section::Weights, 0, bytes, Access::Read);
  graph->nodes.push_back(makeNode(NodeKind::Kernel, 0, {state, w, state}, "advance"));
  graph->nodes.push_back(makeNode(NodeKind::Kernel, 1, {state, slice(Section::Outputs, 0, bytes, Access::Write)}, "read"));
  graph->edges = {fb::Edge(0, 1, fb::EdgeKind::Full)};
  manifest.graphs.push_back(std::move(graph));
}

/// The test bundle, with w[i] = `step` i: `sharedObject` is the built TestKernels.c; with a cubin, of architecture sm_90, a CUDA
/// target too.
inline std::string makeBundle(const std::string &sharedObject, const std::function<void(fb::ManifestT &)> &change = nullptr,
                              const std::string &cubin = "", float step = 0.5f) {
  fb::ManifestT manifest;
  manifest.provenance = std::make_unique<fb::ProvenanceT>();
  manifest.provenance->producer = "test";
  manifest.provenance->model = "hand-made";
  manifest.targets = {"cpu"};
  auto addBlob = [&](fb::BlobKind kind, const char *name) {
    manifest.blobs.push_back(std::make_unique<fb::BlobT>());
    manifest.blobs.back()->kind = kind;
    manifest.blobs.back()->name = name;
  };
  std::vector<std::string> sections = {sharedObject};
  addBlob(fb::BlobKind::SharedObject, "host");
  if (!cubin.empty()) {
    addBlob(fb::BlobKind::Cubin, "sm_90");
    sections.push_back(cubin);
    manifest.targets.push_back("sm_90");
  }
  std::vector<float> weights(kCount);
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = step * static_cast<float>(i);
  addBlob(fb::BlobKind::Weights, "weights");
  sections.emplace_back(reinterpret_cast<const char *>(weights.data()), 4 * weights.size());
  manifest.kernels.push_back(makeKernel("add_weight", 3, kCount, !cubin.empty()));
  manifest.kernels.push_back(makeKernel("twice", 2, kCount, !cubin.empty()));
  manifest.kernels.push_back(makeKernel("subtract", 3, kCount, !cubin.empty()));
  manifest.graphs.push_back(makeGraph());
  manifest.arena = std::make_unique<fb::ArenaT>();
  manifest.arena->weights_address = 0x200000000000;
  manifest.arena->context_address = 0x240000000000;
  manifest.arena->weights_bytes = 4 * kCount;
  manifest.arena->inputs_bytes = 4 * kCount;
  manifest.arena->outputs_bytes = 8 * kCount;
  manifest.arena->scratch_bytes = 768;
  manifest.weights.push_back(std::make_unique<fb::WeightT>());
  manifest.weights.back()->name = "w";
  manifest.weights.back()->type = fb::DataType::F32;
  manifest.weights.back()->shape = {kCount};
  manifest.weights.back()->size_bytes = 4 * kCount;
  return assemble(manifest, sections, change);
}

/// A file that is removed at the end of a test.
struct TemporaryFile {
  std::string path;
  explicit TemporaryFile(const std::string &content) {
    char name[] = "/tmp/ogc-test-XXXXXX";
    int fd = mkstemp(name);
    path = name;
    if (fd >= 0)
      close(fd);
    std::ofstream(path, std::ios::binary) << content;
  }
  ~TemporaryFile() { unlink(path.c_str()); }
};

} // namespace ogc::test

#endif
