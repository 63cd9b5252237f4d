//===- Verify.cpp - the manifest as a whole, sections, kernels, weights ---===//
#include "runtime_lib/format/Verify.h"

#include "runtime_lib/format/DataType.h"
#include "runtime_lib/format/FileHeader.h"
#include "runtime_lib/format/VerifyGraph.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

namespace ogc::format {

namespace {

Status invalid(const std::string &where, const std::string &what) { return Status(Code::DataLoss, where + ": " + what); }

/// Byte ranges that must not overlap.
struct Range {
  uint64_t begin, end;
  unsigned index;
};

Status verifyDisjoint(std::vector<Range> &ranges, const char *what) {
  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      return invalid(what, std::to_string(ranges[i - 1].index) + " and " + std::to_string(ranges[i].index) + " overlap");
  return Status();
}

Status verifyBlobs(const fb::Manifest &manifest, uint64_t sectionsEnd) {
  std::vector<Range> ranges;
  unsigned sharedObjects = 0, weights = 0;
  for (unsigned i = 0; i < manifest.blobs()->size(); ++i) {
    const fb::Blob &blob = *manifest.blobs()->Get(i);
    std::string where = "section " + std::to_string(i);
    if (blob.kind() > fb::BlobKind::MAX)
      return invalid(where, "has an unknown kind");
    if (blob.offset_bytes() < sizeof(FileHeader) || blob.offset_bytes() > sectionsEnd ||
        blob.size_bytes() > sectionsEnd - blob.offset_bytes())
      return invalid(where, "lies outside the file");
    if (blob.offset_bytes() % kSectionAlignment != 0)
      return invalid(where, "is not aligned to " + std::to_string(kSectionAlignment));
    sharedObjects += blob.kind() == fb::BlobKind::SharedObject;
    if (blob.kind() == fb::BlobKind::Weights) {
      ++weights;
      if (blob.size_bytes() != manifest.arena()->weights_bytes() || blob.checksum() != manifest.weights_checksum())
        return invalid(where, "is not the weights section that the arena describes");
    }
    if (blob.size_bytes() != 0)
      ranges.push_back({blob.offset_bytes(), blob.offset_bytes() + blob.size_bytes(), i});
  }
  if (sharedObjects > 1)
    return invalid("manifest", "has " + std::to_string(sharedObjects) + " shared objects, expected at most one");
  bool isInline = manifest.weights_mode() == fb::WeightsMode::Inline && manifest.arena()->weights_bytes() != 0;
  if (weights != (isInline ? 1u : 0u))
    return invalid("manifest", "has " + std::to_string(weights) + " weights sections, expected " + (isInline ? "1" : "0"));
  return verifyDisjoint(ranges, "sections");
}

Status verifyArena(const fb::Arena &arena) {
  // Far below 2^64, so that sums of a few sections cannot overflow; far above any device.
  constexpr uint64_t limit = 1ull << 46;
  for (uint64_t bytes :
       {arena.weights_bytes(), arena.state_bytes(), arena.inputs_bytes(), arena.outputs_bytes(), arena.scratch_bytes()})
    if (bytes > limit)
      return invalid("arena", "a section has " + std::to_string(bytes) + " bytes, expected at most " + std::to_string(limit));
  constexpr uint64_t pageBytes = 2ull << 20;
  if (arena.weights_address() % pageBytes != 0 || arena.context_address() % pageBytes != 0)
    return invalid("arena", "an address is not aligned to 2 MiB");
  return Status();
}

bool isPositive(const fb::Dim3 &dim, uint32_t x, uint32_t y, uint32_t z) {
  return dim.x() >= 1 && dim.y() >= 1 && dim.z() >= 1 && dim.x() <= x && dim.y() <= y && dim.z() <= z;
}

/// Limits of the CUDA programming guide, which hold for every architecture from sm_75 on.
Status verifyLaunch(const fb::CudaKernel &launch, const std::string &where) {
  const fb::Dim3 &grid = *launch.grid(), &block = *launch.block(), &cluster = *launch.cluster();
  if (!isPositive(grid, 0x7fffffff, 65535, 65535))
    return invalid(where, "grid is out of range");
  if (!isPositive(block, 1024, 1024, 64) || uint64_t(block.x()) * block.y() * block.z() > 1024)
    return invalid(where, "block is out of range");
  if (!isPositive(cluster, 16, 16, 16) || cluster.x() * cluster.y() * cluster.z() > 16)
    return invalid(where, "cluster is out of range");
  if (grid.x() % cluster.x() || grid.y() % cluster.y() || grid.z() % cluster.z())
    return invalid(where, "grid is no multiple of the cluster");
  if (launch.shared_bytes() > 227u << 10)
    return invalid(where,
                   "asks for " + std::to_string(launch.shared_bytes()) + " bytes of shared memory, expected at most 232448");
  return Status();
}

/// What cuTensorMapEncodeTiled asks for. Whether a map stays in its argument is checked node by node.
Status verifyTensorMap(const fb::TensorMap &map, const std::string &where) {
  constexpr uint64_t copyBytes = 16;
  const auto &extents = *map.extents(), &strides = *map.strides_bytes();
  const auto &box = *map.box();
  if (map.type() != fb::DataType::F16 && map.type() != fb::DataType::BF16 && map.type() != fb::DataType::F32)
    return invalid(where, "is of a type other than f16, bf16 and f32");
  if (extents.size() == 0 || extents.size() > 5 || strides.size() != extents.size() - 1 || box.size() != extents.size() ||
      !isAligned(extents) || !isAligned(strides) || !isAligned(box, sizeof(uint32_t)))
    return invalid(where, "does not have one to five dimensions, each with extent, stride and box");
  uint64_t lineBytes = elementBytes(map.type()) * (box.size() ? box.Get(0) : 0);
  if (map.swizzle_bytes() != 0 && map.swizzle_bytes() != 32 && map.swizzle_bytes() != 64 && map.swizzle_bytes() != 128)
    return invalid(where, "has a swizzle of " + std::to_string(map.swizzle_bytes()) + " bytes, expected 0, 32, 64 or 128");
  if (lineBytes % copyBytes != 0 || (map.swizzle_bytes() != 0 && lineBytes > map.swizzle_bytes()))
    return invalid(where, "has a box of " + std::to_string(lineBytes) + " bytes a line, which the swizzle does not hold");
  if (map.offset_bytes() % copyBytes != 0)
    return invalid(where, "does not begin at a multiple of 16 bytes");
  for (unsigned i = 0; i < extents.size(); ++i) {
    if (extents.Get(i) < 1 || extents.Get(i) > uint64_t(1) << 32 || box.Get(i) < 1 || box.Get(i) > 256)
      return invalid(where, "has an extent or a box out of range in dimension " + std::to_string(i));
    if (i > 0 && (strides.Get(i - 1) % copyBytes != 0 || strides.Get(i - 1) >= uint64_t(1) << 40))
      return invalid(where, "has a stride out of range in dimension " + std::to_string(i));
  }
  return Status();
}

Status verifyCubin(const fb::Manifest &manifest, const fb::CudaKernel &launch, const std::string &where) {
  if (launch.cubin() >= manifest.blobs()->size() || manifest.blobs()->Get(launch.cubin())->kind() != fb::BlobKind::Cubin)
    return invalid(where, "refers to section " + std::to_string(launch.cubin()) + ", which is no cubin");
  for (unsigned i = 0; launch.tensor_maps() && i < launch.tensor_maps()->size(); ++i)
    OGC_RETURN_IF_ERROR(verifyTensorMap(*launch.tensor_maps()->Get(i), where + ": tensor map " + std::to_string(i)));
  return verifyLaunch(launch, where);
}

Status verifyKernels(const fb::Manifest &manifest) {
  std::set<std::string_view> names;
  for (const fb::Kernel *kernel : *manifest.kernels()) {
    std::string where = "kernel '" + kernel->name()->str() + "'";
    if (!names.insert(kernel->name()->string_view()).second)
      return invalid(where, "is there twice");
    std::set<std::string_view> archs;
    for (unsigned i = 0; kernel->cuda() && i < kernel->cuda()->size(); ++i) {
      const fb::CudaKernel &launch = *kernel->cuda()->Get(i);
      OGC_RETURN_IF_ERROR(verifyCubin(manifest, launch, where));
      if (!archs.insert(manifest.blobs()->Get(launch.cubin())->name()->string_view()).second)
        return invalid(where, "has two launches for one architecture");
    }
    for (unsigned i = 0; kernel->variants() && i < kernel->variants()->size(); ++i)
      OGC_RETURN_IF_ERROR(verifyCubin(manifest, *kernel->variants()->Get(i)->kernel(), where));
    if (kernel->cpu() && kernel->cpu()->units() < 0)
      return invalid(where, "has a negative number of units");
    if (kernel->arg_types())
      for (unsigned i = 0; i < kernel->arg_types()->size(); ++i)
        if (elementBytes(static_cast<DataType>(kernel->arg_types()->Get(i))) == 0)
          return invalid(where, "has an argument of an unknown type");
    if (kernel->work() && elementBytes(kernel->work()->product_type()) == 0)
      return invalid(where, "multiplies in an unknown type");
  }
  return Status();
}

Status verifyWeights(const fb::Manifest &manifest) {
  std::vector<Range> ranges;
  uint64_t total = manifest.arena()->weights_bytes();
  for (unsigned i = 0; i < manifest.weights()->size(); ++i) {
    const fb::Weight &weight = *manifest.weights()->Get(i);
    std::string where = "weight '" + weight.name()->str() + "'";
    if (!isTensorOfBytes(weight.type(), *weight.shape(), weight.size_bytes()))
      return invalid(where, "its size is not that of its shape and type");
    if (weight.offset_bytes() > total || weight.size_bytes() > total - weight.offset_bytes())
      return invalid(where, "lies outside the weights section");
    if (weight.size_bytes() != 0)
      ranges.push_back({weight.offset_bytes(), weight.offset_bytes() + weight.size_bytes(), i});
  }
  return verifyDisjoint(ranges, "weights");
}

Status verifyParameters(const fb::Manifest &manifest) {
  for (unsigned i = 0; manifest.parameters() && i < manifest.parameters()->size(); ++i) {
    const fb::Parameter &parameter = *manifest.parameters()->Get(i);
    if (elementBytes(parameter.type()) == 0 || !isAligned(*parameter.shape()))
      return invalid("initializer '" + parameter.name()->str() + "'", "has an unknown type or a misaligned shape");
  }
  return Status();
}

/// A cut must be right for every graph, since the runtime slices outputs by it.
Status verifySymbols(const fb::Manifest &manifest) {
  std::set<std::string_view> names;
  for (unsigned i = 0; manifest.symbols() && i < manifest.symbols()->size(); ++i) {
    const fb::Symbol &symbol = *manifest.symbols()->Get(i);
    std::string where = "symbol '" + symbol.name()->str() + "'";
    if (!names.insert(symbol.name()->string_view()).second)
      return invalid(where, "is there twice");
    std::set<unsigned> outputs;
    for (const fb::RowCut *cut : *symbol.cuts()) {
      if (!outputs.insert(cut->output()).second)
        return invalid(where, "cuts output " + std::to_string(cut->output()) + " twice");
      for (const fb::Graph *graph : *manifest.graphs()) {
        bool fits = cut->output() < graph->outputs()->size() &&
                    cut->dim() < graph->outputs()->Get(cut->output())->shape()->size() && cut->inner() >= 1;
        if (!fits || graph->outputs()->Get(cut->output())->shape()->Get(cut->dim()) % cut->inner() != 0)
          return invalid(where, "cuts output " + std::to_string(cut->output()) + " where graph '" + graph->id()->str() +
                                    "' has nothing to cut");
      }
    }
  }
  return Status();
}

/// That every kernel has code for every target is checked node by node.
Status verifyTargets(const fb::Manifest &manifest) {
  if (manifest.targets()->size() == 0)
    return invalid("manifest", "lists no target");
  bool hasSharedObject = false;
  for (const fb::Blob *blob : *manifest.blobs())
    hasSharedObject |= blob->kind() == fb::BlobKind::SharedObject;
  std::set<std::string_view> names;
  for (const auto *target : *manifest.targets()) {
    if (!names.insert(target->string_view()).second)
      return invalid("target '" + target->str() + "'", "is there twice");
    if (target->string_view() == "cpu" && !hasSharedObject && manifest.kernels()->size() != 0)
      return invalid("target 'cpu'", "has no shared object");
  }
  return Status();
}

} // namespace

Result<const fb::Manifest *> verifyManifest(std::span<const std::byte> bytes, uint64_t sectionsEnd) {
  const auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  // FlatBuffers offsets are 32 bits wide, and a buffer holds at least the root offset and the identifier.
  if (bytes.size() < 8 || bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return invalid("manifest", "has " + std::to_string(bytes.size()) + " bytes");
  flatbuffers::Verifier verifier(data, bytes.size(), /*max_depth=*/16, /*max_tables=*/20'000'000);
  if (!fb::VerifyManifestBuffer(verifier))
    return invalid("manifest", "is no valid FlatBuffer of this schema");
  const fb::Manifest &manifest = *fb::GetManifest(data);
  if (manifest.weights_mode() > fb::WeightsMode::MAX)
    return invalid("manifest", "has an unknown weights mode");
  OGC_RETURN_IF_ERROR(verifyArena(*manifest.arena()));
  OGC_RETURN_IF_ERROR(verifyBlobs(manifest, sectionsEnd));
  OGC_RETURN_IF_ERROR(verifyKernels(manifest));
  OGC_RETURN_IF_ERROR(verifyWeights(manifest));
  OGC_RETURN_IF_ERROR(verifyParameters(manifest));
  OGC_RETURN_IF_ERROR(verifyTargets(manifest));
  OGC_RETURN_IF_ERROR(verifyGraphs(manifest));
  OGC_RETURN_IF_ERROR(verifySymbols(manifest));
  return &manifest;
}

} // namespace ogc::format
