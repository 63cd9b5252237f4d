//===- Bundle.h - a verified bundle ---------------------------------------===//
#ifndef OGC_FORMAT_BUNDLE_H
#define OGC_FORMAT_BUNDLE_H

#include "runtime_lib/format/MappedFile.h"
#include "runtime_lib/format/Status.h"
#include "runtime_lib/format/bundle_generated.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ogc::format {

struct OpenOptions {
  /// Also check the checksum of inline weights, which reads all of them. Code and manifest are always checked.
  bool checkWeights = true;
};

/// A bundle whose header, manifest and sections were verified; everything reached from `manifest()` is in bounds and consistent
/// (Verify.h). Immutable, so any number of threads may read it.
class Bundle {
public:
  /// Maps and verifies `path`. NotFound: no such file. DataLoss: no bundle, or a damaged one. Unsupported: another format
  /// version.
  static Result<std::shared_ptr<const Bundle>> open(const std::string &path, const OpenOptions &options = {});

  /// The same over bytes in memory, which must outlive the bundle and be aligned to 8.
  static Result<std::shared_ptr<const Bundle>> view(std::span<const std::byte> bytes, const OpenOptions &options = {});

  const fb::Manifest &manifest() const { return *manifest_; }
  const std::string &path() const { return path_; }
  uint64_t fileBytes() const { return bytes_.size(); }

  /// The bytes of a section; `index` must be one of the manifest's blobs.
  std::span<const std::byte> blob(size_t index) const;

  /// The weights section, where it is inline.
  std::optional<std::span<const std::byte>> inlineWeights() const;

  /// The shared object of the cpu target, if there is one.
  std::optional<std::span<const std::byte>> sharedObject() const;

  bool hasTarget(std::string_view target) const;

  /// Index of the graph called `id`.
  std::optional<size_t> findGraph(std::string_view id) const;

private:
  Bundle() = default;
  Status initialize(std::span<const std::byte> bytes, const OpenOptions &options);
  std::optional<std::span<const std::byte>> findBlob(fb::BlobKind kind) const;

  std::unique_ptr<MappedFile> file_;
  std::string path_;
  std::span<const std::byte> bytes_;
  const fb::Manifest *manifest_ = nullptr;
};

/// Offsets of the sections of a context in its region, and the whole size. Every section begins at a multiple of
/// kSectionAlignment.
struct ContextLayout {
  uint64_t state = 0, inputs = 0, outputs = 0, scratch = 0, total = 0;
};
ContextLayout contextLayout(const fb::Arena &arena);

/// Bytes of a section.
uint64_t sectionBytes(const fb::Arena &arena, fb::Section section);

/// fb::Graph::topology of a graph that is in no class.
inline constexpr uint32_t kNoTopology = 0xffffffff;

const char *sectionName(fb::Section section);
const char *nodeKindName(fb::NodeKind kind);

} // namespace ogc::format

#endif
