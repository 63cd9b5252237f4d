//===- BundleCases.cpp - opens and runs damaged bundles --------------------===//
#include "test/fuzz/Cases.h"
#include "test/fuzz/Corpus.h"
#include "test/fuzz/Isolate.h"
#include "test/fuzz/Random.h"

#include "runtime_lib/format/Checksum.h"
#include "runtime_lib/format/Dump.h"
#include "runtime_lib/format/FileHeader.h"
#include "runtime_lib/src/driver/Driver.h"

#include <cstring>

namespace ogc::fuzz {

namespace {

using format::FileHeader;
namespace fb = format::fb;

constexpr uint64_t allowedBytes = uint64_t(256) << 20;

/// A file in memory that is aligned as a mapped one.
class AlignedBytes {
public:
  explicit AlignedBytes(const std::string &bytes) : words(bytes.size() / 8 + 1), size(bytes.size()) {
    std::memcpy(words.data(), bytes.data(), size);
  }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(words)).first(size); }

private:
  std::vector<uint64_t> words;
  size_t size;
};

template <typename T> void overwrite(std::string &bytes, size_t at, Random &random) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  value = static_cast<T>(oddInteger(random, static_cast<int64_t>(value)));
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// Overwrites scalars of the manifest, which lie at multiples of their size.
void damageManifest(Random &random, std::string &bytes, const FileHeader &header) {
  for (uint64_t count = 1 + random.below(3); count != 0; --count) {
    size_t size = size_t(1) << random.below(4);
    if (header.manifestBytes < size)
      return;
    size_t at = header.manifestOffset + random.below(header.manifestBytes / size) * size;
    if (size == 1)
      overwrite<uint8_t>(bytes, at, random);
    else if (size == 2)
      overwrite<uint16_t>(bytes, at, random);
    else if (size == 4)
      overwrite<uint32_t>(bytes, at, random);
    else
      overwrite<uint64_t>(bytes, at, random);
  }
}

/// Makes the checksums of header and manifest right again, so that what is behind them is reached.
void sign(std::string &bytes, FileHeader header) {
  header.manifestChecksum = format::checksum(bytes.data() + header.manifestOffset, header.manifestBytes);
  header.headerChecksum = format::checksum(&header, offsetof(FileHeader, headerChecksum));
  std::memcpy(bytes.data(), &header, sizeof header);
}

/// True where running `damaged` calls the same code over the same buffers as `whole`. Anything else is forged code, which may do
/// what it likes: a kernel that takes positions in range from the one before it reads anywhere when it is given other numbers.
bool runsSameCode(const format::Bundle &whole, const format::Bundle &damaged) {
  const fb::Manifest &a = whole.manifest(), &b = damaged.manifest();
  auto codeA = whole.sharedObject(), codeB = damaged.sharedObject();
  if (!codeA || !codeB || !std::equal(codeA->begin(), codeA->end(), codeB->begin(), codeB->end()) ||
      a.kernels()->size() != b.kernels()->size() || a.graphs()->size() != b.graphs()->size())
    return false;
  for (unsigned i = 0; i < a.kernels()->size(); ++i) {
    const fb::CpuKernel *x = a.kernels()->Get(i)->cpu(), *y = b.kernels()->Get(i)->cpu();
    if (!x || !y || x->units() != y->units() || x->symbol()->string_view() != y->symbol()->string_view())
      return false;
  }
  for (unsigned g = 0; g < a.graphs()->size(); ++g) {
    const auto &nodesA = *a.graphs()->Get(g)->nodes(), &nodesB = *b.graphs()->Get(g)->nodes();
    if (nodesA.size() != nodesB.size())
      return false;
    for (unsigned i = 0; i < nodesA.size(); ++i) {
      const fb::Node &x = *nodesA.Get(i), &y = *nodesB.Get(i);
      if (x.kind() != y.kind() || x.kernel() != y.kernel() || x.args()->size() != y.args()->size())
        return false;
      for (unsigned k = 0; k < x.args()->size(); ++k) {
        const fb::Slice &p = *x.args()->Get(k), &q = *y.args()->Get(k);
        if (p.section() != q.section() || p.offset_bytes() != q.offset_bytes() || p.size_bytes() != q.size_bytes())
          return false;
      }
    }
  }
  return true;
}

class BundleCases final : public Cases {
public:
  BundleCases(const std::string &corpus, uint64_t seed) : seed(seed), files(readCorpus(corpus, ".ogc")) {}

  size_t size() const override { return files.size(); }
  const char *suffix() const override { return ".ogc"; }

  std::string make(uint64_t index) const override {
    const std::string *whole = nullptr;
    return make(index, whole);
  }

  bool run(uint64_t index) const override {
    const std::string *original = nullptr;
    std::string bytes = make(index, original);
    limitAllocations(10 * bytes.size() + allowedBytes);
    AlignedBytes aligned(bytes), alignedWhole(*original);
    auto opened = format::Bundle::view(aligned.span());
    if (!opened.ok())
      return refuse(opened.status());
    const format::Bundle &bundle = *opened.value();
    if (format::dumpText(bundle, true).empty() || format::dumpJson(bundle).empty() || format::dumpDot(bundle).empty())
      fail("a verified bundle that shows nothing");
    auto whole = format::Bundle::view(alignedWhole.span());
    auto engine = runtime::createEngine(opened.value(), "cpu", {});
    if (!engine.ok())
      return refuse(engine.status());
    auto context = engine.value()->createContext(engine.value(), {});
    if (!context.ok())
      return refuse(context.status());
    if (!whole.ok() || !runsSameCode(*whole.value(), bundle))
      return true;
    for (size_t graph = 0; graph < bundle.manifest().graphs()->size(); ++graph)
      if (Status status = context.value()->launch(graph); !status.ok())
        return refuse(status);
    return true;
  }

private:
  static bool refuse(const Status &status) {
    if (status.message().empty())
      fail("refused without a reason");
    return false;
  }

  std::string make(uint64_t index, const std::string *&outWhole) const {
    Random random(seed * 0x100000001B3ull + index);
    std::string bytes = random.pick(files);
    outWhole = nullptr;
    for (const std::string &file : files)
      if (file == bytes)
        outWhole = &file;
    FileHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (random.oneIn(8)) {
      damageBytes(random, bytes);
    } else if (random.oneIn(8)) { // the header, behind a right checksum
      size_t at = 8 * random.below(sizeof header / 8);
      overwrite<uint64_t>(bytes, at, random);
      std::memcpy(&header, bytes.data(), sizeof header);
      header.headerChecksum = format::checksum(&header, offsetof(FileHeader, headerChecksum));
      std::memcpy(bytes.data(), &header, sizeof header);
    } else {
      damageManifest(random, bytes, header);
      sign(bytes, header);
    }
    return bytes;
  }

  uint64_t seed;
  std::vector<std::string> files;
};

} // namespace

std::unique_ptr<Cases> bundleCases(const std::string &corpus, uint64_t seed) {
  return std::make_unique<BundleCases>(corpus, seed);
}

} // namespace ogc::fuzz
