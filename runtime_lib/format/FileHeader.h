//===- FileHeader.h - the first bytes of a bundle -------------------------===//
#ifndef OGC_FORMAT_FILE_HEADER_H
#define OGC_FORMAT_FILE_HEADER_H

#include <cstddef>
#include <cstdint>

namespace ogc::format {

/// Versions of the format that this reader understands; written by the writer is the newest.
inline constexpr uint32_t kFormatVersion = 3;
inline constexpr uint32_t kOldestFormatVersion = 1;

inline constexpr char kMagic[8] = {'O', 'G', 'C', 'B', 'U', 'N', 'D', '\n'};

/// Alignment of every section, and of the sections of an arena. The weights section can so be mapped.
inline constexpr uint64_t kSectionAlignment = 4096;

/// The fixed start of the file, little endian. The sections follow, the manifest stands at the end: so weights are streamed while
/// their checksum is taken.
struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t headerBytes; // sizeof(FileHeader)
  uint64_t fileBytes;
  uint64_t manifestOffset;
  uint64_t manifestBytes;
  uint64_t manifestChecksum;
  uint64_t reserved;
  uint64_t headerChecksum; // of all bytes before this field
};
static_assert(sizeof(FileHeader) == 64 && offsetof(FileHeader, headerChecksum) == 56);

constexpr uint64_t alignUp(uint64_t value, uint64_t alignment = kSectionAlignment) {
  return (value + alignment - 1) / alignment * alignment;
}

} // namespace ogc::format

#endif
