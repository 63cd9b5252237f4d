//===- Weights.cpp - finds or makes the weights section -------------------===//
#include "runtime_lib/src/driver/Weights.h"

#include "runtime_lib/format/Checksum.h"
#include "runtime_lib/format/DataType.h"
#include "runtime_lib/format/FileHeader.h"
#include "runtime_lib/src/driver/Random.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace ogc::runtime {

using format::DataType;

namespace {

/// Numbers are picked from a table, so that encoding 16-bit floats costs nothing a weight.
void fillFloats(DataType type, std::byte *data, uint64_t count, double magnitude, Random &random) {
  constexpr size_t tableSize = 1024;
  size_t bytes = format::elementBytes(type);
  std::vector<std::byte> table(tableSize * bytes);
  for (size_t i = 0; i < tableSize; ++i)
    format::writeElement(type, table.data(), i, magnitude * (2.0 * (static_cast<double>(i) + 0.5) / tableSize - 1.0));
  for (uint64_t i = 0; i < count;) {
    uint64_t bits = random.next();
    for (int k = 0; k < 6 && i < count; ++k, ++i, bits >>= 10)
      std::memcpy(data + i * bytes, table.data() + (bits % tableSize) * bytes, bytes);
  }
}

} // namespace

void fillRandomWeights(const fb::Manifest &manifest, std::span<std::byte> bytes, uint64_t seed) {
  std::memset(bytes.data(), 0, bytes.size());
  for (unsigned i = 0; i < manifest.weights()->size(); ++i) {
    const fb::Weight &weight = *manifest.weights()->Get(i);
    if (!format::isFloat(weight.type()) || weight.size_bytes() == 0)
      continue;
    uint64_t count = weight.size_bytes() / format::elementBytes(weight.type());
    unsigned rank = weight.shape()->size();
    // The columns are the outputs of a matrix or of a channels-last convolution; everything else is summed over.
    double fanIn = rank >= 2 ? static_cast<double>(count) / static_cast<double>(weight.shape()->Get(rank - 1)) : 100.0;
    Random random(seed * 0x9E3779B97F4A7C15ull + i);
    fillFloats(weight.type(), bytes.data() + weight.offset_bytes(), count, std::sqrt(3.0 / std::max(fanIn, 1.0)), random);
  }
}

Result<HostWeights> HostWeights::find(const BundlePtr &bundle, const EngineOptions &options) {
  const fb::Manifest &manifest = bundle->manifest();
  uint64_t size = manifest.arena()->weights_bytes();
  HostWeights weights;
  weights.bundle_ = bundle;
  if (size == 0)
    return weights;
  if (auto bytes = bundle->inlineWeights(); bytes && options.weightsFile.empty()) {
    weights.bytes_ = *bytes;
    return weights;
  }
  std::string path = options.weightsFile;
  if (path.empty() && manifest.weights_mode() == fb::WeightsMode::External)
    path = bundle->path() + ".weights";
  if (!path.empty()) {
    Result<std::unique_ptr<format::MappedFile>> file = format::MappedFile::open(path);
    if (!file.ok())
      return file.status().withContext("weights");
    weights.file_ = std::move(file.value());
    weights.bytes_ = weights.file_->bytes();
    if (weights.bytes_.size() != size)
      return Status(Code::DataLoss, "weights '" + path + "' have " + std::to_string(weights.bytes_.size()) + " bytes, expected " +
                                        std::to_string(size));
    if (format::checksum(weights.bytes_.data(), size) != manifest.weights_checksum())
      return Status(Code::DataLoss, "weights '" + path + "' are not those the bundle was compiled with: their checksum differs");
    return weights;
  }
  if (!options.randomWeights)
    return Status(Code::FailedPrecondition, "the bundle holds no weights: give a weights file, or ask for random weights");
  auto *made = static_cast<std::byte *>(std::aligned_alloc(format::kSectionAlignment, format::alignUp(size)));
  if (!made)
    return Status(Code::OutOfMemory, "cannot allocate " + std::to_string(size) + " bytes for weights");
  weights.made_ = {made, [](std::byte *memory) { std::free(memory); }};
  fillRandomWeights(manifest, {made, size}, options.seed);
  weights.bytes_ = {made, size};
  return weights;
}

} // namespace ogc::runtime
