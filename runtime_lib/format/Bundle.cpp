//===- Bundle.cpp - opens and verifies a bundle ---------------------------===//
#include "runtime_lib/format/Bundle.h"

#include "runtime_lib/format/Checksum.h"
#include "runtime_lib/format/FileHeader.h"
#include "runtime_lib/format/Verify.h"

#include <cstring>

namespace ogc::format {

namespace {

Status damaged(const std::string &what) { return Status(Code::DataLoss, what); }

/// Reads the header and checks everything in it against the size of the file.
Result<FileHeader> readHeader(std::span<const std::byte> bytes) {
  FileHeader header;
  if (bytes.empty())
    return damaged("the file is empty");
  if (bytes.size() < sizeof header || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return damaged("not an ogc bundle");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (checksum(&header, offsetof(FileHeader, headerChecksum)) != header.headerChecksum)
    return damaged("the header is damaged: its checksum differs");
  if (header.version < kOldestFormatVersion || header.version > kFormatVersion)
    return Status(Code::Unsupported, "format version " + std::to_string(header.version) + " is not supported, expected " +
                                         std::to_string(kOldestFormatVersion) + " to " + std::to_string(kFormatVersion));
  if (header.headerBytes != sizeof header)
    return damaged("the header has " + std::to_string(header.headerBytes) + " bytes, expected " + std::to_string(sizeof header));
  if (header.fileBytes != bytes.size())
    return damaged("the file has " + std::to_string(bytes.size()) + " bytes, expected " + std::to_string(header.fileBytes) +
                   (bytes.size() < header.fileBytes ? " (truncated)" : ""));
  if (header.manifestOffset < sizeof header || header.manifestOffset % kSectionAlignment != 0 ||
      header.manifestOffset > bytes.size() || header.manifestBytes != bytes.size() - header.manifestOffset)
    return damaged("the manifest is out of place");
  return header;
}

} // namespace

Result<std::shared_ptr<const Bundle>> Bundle::open(const std::string &path, const OpenOptions &options) {
  Result<std::unique_ptr<MappedFile>> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  std::shared_ptr<Bundle> bundle(new Bundle);
  bundle->path_ = path;
  bundle->file_ = std::move(file.value());
  if (Status status = bundle->initialize(bundle->file_->bytes(), options); !status.ok())
    return status.withContext("'" + path + "'");
  return std::shared_ptr<const Bundle>(bundle);
}

Result<std::shared_ptr<const Bundle>> Bundle::view(std::span<const std::byte> bytes, const OpenOptions &options) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 8 != 0)
    return Status(Code::InvalidArgument, "the bytes of a bundle must be aligned to 8");
  std::shared_ptr<Bundle> bundle(new Bundle);
  if (Status status = bundle->initialize(bytes, options); !status.ok())
    return status;
  return std::shared_ptr<const Bundle>(bundle);
}

Status Bundle::initialize(std::span<const std::byte> bytes, const OpenOptions &options) {
  Result<FileHeader> header = readHeader(bytes);
  if (!header.ok())
    return header.status();
  bytes_ = bytes;
  std::span<const std::byte> manifest = bytes.subspan(header.value().manifestOffset, header.value().manifestBytes);
  if (checksum(manifest.data(), manifest.size()) != header.value().manifestChecksum)
    return damaged("the manifest is damaged: its checksum differs");
  Result<const fb::Manifest *> verified = verifyManifest(manifest, header.value().manifestOffset);
  if (!verified.ok())
    return verified.status();
  manifest_ = verified.value();

  for (size_t i = 0; i < manifest_->blobs()->size(); ++i) {
    const fb::Blob &entry = *manifest_->blobs()->Get(static_cast<unsigned>(i));
    if (entry.kind() == fb::BlobKind::Weights && !options.checkWeights)
      continue;
    if (checksum(blob(i).data(), blob(i).size()) != entry.checksum())
      return damaged("section " + std::to_string(i) + " (" + entry.name()->str() + ") is damaged: its checksum differs");
  }
  return Status();
}

std::span<const std::byte> Bundle::blob(size_t index) const {
  const fb::Blob &entry = *manifest_->blobs()->Get(static_cast<unsigned>(index));
  return bytes_.subspan(entry.offset_bytes(), entry.size_bytes());
}

std::optional<std::span<const std::byte>> Bundle::findBlob(fb::BlobKind kind) const {
  for (size_t i = 0; i < manifest_->blobs()->size(); ++i)
    if (manifest_->blobs()->Get(static_cast<unsigned>(i))->kind() == kind)
      return blob(i);
  return std::nullopt;
}

std::optional<std::span<const std::byte>> Bundle::inlineWeights() const { return findBlob(fb::BlobKind::Weights); }

std::optional<std::span<const std::byte>> Bundle::sharedObject() const { return findBlob(fb::BlobKind::SharedObject); }

bool Bundle::hasTarget(std::string_view target) const {
  for (const auto *name : *manifest_->targets())
    if (name->string_view() == target)
      return true;
  return false;
}

std::optional<size_t> Bundle::findGraph(std::string_view id) const {
  for (unsigned i = 0; i < manifest_->graphs()->size(); ++i)
    if (manifest_->graphs()->Get(i)->id()->string_view() == id)
      return i;
  return std::nullopt;
}

ContextLayout contextLayout(const fb::Arena &arena) {
  ContextLayout layout;
  layout.inputs = alignUp(layout.state + arena.state_bytes());
  layout.outputs = alignUp(layout.inputs + arena.inputs_bytes());
  layout.scratch = alignUp(layout.outputs + arena.outputs_bytes());
  layout.total = alignUp(layout.scratch + arena.scratch_bytes());
  return layout;
}

uint64_t sectionBytes(const fb::Arena &arena, fb::Section section) {
  switch (section) {
  case fb::Section::Weights:
    return arena.weights_bytes();
  case fb::Section::State:
    return arena.state_bytes();
  case fb::Section::Inputs:
    return arena.inputs_bytes();
  case fb::Section::Outputs:
    return arena.outputs_bytes();
  case fb::Section::Scratch:
    return arena.scratch_bytes();
  }
  return 0;
}

const char *sectionName(fb::Section section) {
  constexpr const char *names[] = {"weights", "state", "inputs", "outputs", "scratch"};
  return names[static_cast<size_t>(section)];
}

const char *nodeKindName(fb::NodeKind kind) {
  constexpr const char *names[] = {"kernel", "gemm", "memcpy", "memset"};
  return names[static_cast<size_t>(kind)];
}

} // namespace ogc::format
