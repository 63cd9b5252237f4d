//===- BundleFormatTest.cpp - reader and verifier of bundles --------------===//
#include "test/unit/TestBundle.h"

#include "runtime_lib/format/DataType.h"
#include "runtime_lib/format/Dump.h"
#include "runtime_lib/format/Json.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace ogc;
using namespace ogc::test;
using format::Bundle;

namespace {

std::string open(const std::string &bytes, Code *code = nullptr) {
  Image image(bytes);
  auto bundle = Bundle::view(image.span());
  if (code)
    *code = bundle.status().code();
  return bundle.status().message();
}

std::string bundleWith(const std::function<void(fb::ManifestT &)> &change) { return makeBundle("not really code", change); }

} // namespace

TEST(Checksum, KnownValuesOfXxh64) {
  EXPECT_EQ(format::checksum("", 0), 0xef46db3751d8e999ull);
  EXPECT_EQ(format::checksum("a", 1), 0xd24ec4f1a98c6e5bull);
  EXPECT_EQ(format::checksum("abc", 3), 0x44bc2cf5ad770999ull);
  std::string text = "Nobody inspects the spammish repetition";
  EXPECT_EQ(format::checksum(text.data(), text.size()), 0xfbcea83c8a378bf1ull);
}

TEST(Checksum, PiecesGiveTheSameAsTheWhole) {
  std::string text(1000, 'x');
  for (size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>(i * 7);
  format::Checksum sum;
  for (size_t at = 0, step = 1; at < text.size(); at += step, step = step * 2 % 61 + 1)
    sum.update(text.data() + at, std::min(step, text.size() - at));
  EXPECT_EQ(sum.value(), format::checksum(text.data(), text.size()));
}

TEST(BundleFormat, ReadsWhatWasWritten) {
  Image image(bundleWith(nullptr));
  auto bundle = Bundle::view(image.span());
  ASSERT_TRUE(bundle.ok()) << bundle.status().message();
  EXPECT_TRUE(bundle.value()->hasTarget("cpu"));
  EXPECT_FALSE(bundle.value()->hasTarget("sm_90"));
  EXPECT_EQ(bundle.value()->findGraph("main"), 0u);
  EXPECT_EQ(bundle.value()->inlineWeights()->size(), 4u * kCount);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bundle.value()->manifest().graphs()) % 4, 0u);
}

TEST(BundleFormat, RefusesWhatIsNoBundle) {
  EXPECT_EQ(open(""), "the file is empty");
  EXPECT_EQ(open("some text that is long enough to hold a header, but is no bundle at all"), "not an ogc bundle");
  EXPECT_EQ(Bundle::open("/nonexistent/file").status().code(), Code::NotFound);
  EXPECT_EQ(Bundle::open("/tmp").status().code(), Code::InvalidArgument);
}

TEST(BundleFormat, NamesTheVersionsItReads) {
  std::string file = bundleWith(nullptr);
  format::FileHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  header.version = 99;
  header.headerChecksum = format::checksum(&header, offsetof(format::FileHeader, headerChecksum));
  std::memcpy(file.data(), &header, sizeof header);
  Code code;
  EXPECT_EQ(open(file, &code), "format version 99 is not supported, expected 1 to 3");
  EXPECT_EQ(code, Code::Unsupported);
}

TEST(BundleFormat, EveryTruncationIsAnError) {
  std::string file = bundleWith(nullptr);
  for (size_t size = 0; size < file.size(); size += size < 256 || file.size() - size < 256 ? 1 : 97)
    EXPECT_NE(open(file.substr(0, size)), "") << size;
}

TEST(BundleFormat, FlippedBitsAreFoundByChecksums) {
  std::string file = bundleWith(nullptr);
  format::FileHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  auto flip = [&](size_t at) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    EXPECT_NE(open(damaged), "") << at;
  };
  for (size_t at = 0; at < sizeof header; ++at)
    flip(at);
  for (size_t at = header.manifestOffset; at < file.size(); ++at)
    flip(at);
  flip(format::kSectionAlignment);
}

// With the checksums made right again, damage reaches the verifier, which must survive anything (run under ASan).
TEST(BundleFormat, TheVerifierSurvivesAnyManifest) {
  std::string file = bundleWith(nullptr);
  format::FileHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  uint64_t state = 1;
  auto next = [&] { return state = state * 6364136223846793005ull + 1442695040888963407ull, state >> 33; };
  unsigned accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = file;
    for (uint64_t i = 0, count = 1 + next() % 4; i < count; ++i)
      damaged[header.manifestOffset + next() % header.manifestBytes] = static_cast<char>(next());
    format::FileHeader repaired = header;
    repaired.manifestChecksum = format::checksum(damaged.data() + header.manifestOffset, header.manifestBytes);
    repaired.headerChecksum = format::checksum(&repaired, offsetof(format::FileHeader, headerChecksum));
    std::memcpy(damaged.data(), &repaired, sizeof repaired);
    Image image(damaged);
    auto bundle = Bundle::view(image.span());
    if (bundle.ok()) {
      ++accepted;
      EXPECT_FALSE(format::dumpText(*bundle.value(), true).empty());
      EXPECT_FALSE(format::dumpJson(*bundle.value()).empty());
      EXPECT_FALSE(format::dumpDot(*bundle.value()).empty());
    }
  }
  EXPECT_GT(accepted, 0u);
}

struct BadManifest {
  const char *reason;
  std::function<void(fb::ManifestT &)> change;
};

class Verifier : public testing::TestWithParam<BadManifest> {};

TEST_P(Verifier, SaysWhy) {
  Code code;
  std::string message = open(bundleWith(GetParam().change), &code);
  EXPECT_NE(message.find(GetParam().reason), std::string::npos) << message;
  EXPECT_EQ(code, Code::DataLoss);
}

static fb::GraphT &graphOf(fb::ManifestT &m) { return *m.graphs[0]; }

/// A tensor map of argument 0 of kernel `add_weight`, which has 256 bytes; `change` spoils it.
static void addTensorMap(fb::ManifestT &m, const std::function<void(fb::TensorMapT &)> &change) {
  auto launch = std::make_unique<fb::CudaKernelT>();
  launch->entry = "add_weight";
  for (auto *dim : {&launch->grid, &launch->block, &launch->cluster})
    *dim = std::make_unique<fb::Dim3>(1, 1, 1);
  m.blobs[0]->kind = fb::BlobKind::Cubin; // the shared object passes for one
  m.blobs[0]->name = "sm_90";
  m.targets = {"sm_90"};
  launch->tensor_maps.push_back(makeTensorMap(0));
  change(*launch->tensor_maps[0]);
  m.kernels[0]->cuda.push_back(std::move(launch));
}

static void setOffset(fb::Slice &s, uint64_t offset) { s = fb::Slice(offset, s.size_bytes(), s.section(), s.access()); }
static void setSize(fb::Slice &s, uint64_t size) { s = fb::Slice(s.offset_bytes(), size, s.section(), s.access()); }
static void setSection(fb::Slice &s, fb::Section section) {
  s = fb::Slice(s.offset_bytes(), s.size_bytes(), section, s.access());
}
static void setAccess(fb::Slice &s, fb::Access access) { s = fb::Slice(s.offset_bytes(), s.size_bytes(), s.section(), access); }
static void setFrom(fb::Edge &e, uint32_t from) { e = fb::Edge(from, e.to(), e.kind()); }
static void setTo(fb::Edge &e, uint32_t to) { e = fb::Edge(e.from(), to, e.kind()); }
static void setKind(fb::Edge &e, fb::EdgeKind kind) { e = fb::Edge(e.from(), e.to(), kind); }

INSTANTIATE_TEST_SUITE_P(
    All, Verifier,
    testing::Values(
        BadManifest{"section 0: lies outside the file", [](auto &m) { m.blobs[0]->size_bytes = 1 << 20; }},
        BadManifest{"section 0: lies outside the file", [](auto &m) { m.blobs[0]->size_bytes = ~0ull - 100; }},
        BadManifest{"section 0: is not aligned", [](auto &m) { m.blobs[0]->offset_bytes += 8; }},
        BadManifest{"sections: 0 and 1 overlap", [](auto &m) { m.blobs[0]->size_bytes = 4097; }},
        BadManifest{"section 1: is not the weights section", [](auto &m) { m.arena->weights_bytes = 260; }},
        BadManifest{"has 1 weights sections, expected 0", [](auto &m) { m.weights_mode = fb::WeightsMode::None; }},
        BadManifest{"arena: an address is not aligned", [](auto &m) { m.arena->context_address = 4096; }},
        BadManifest{"arena: a section has", [](auto &m) { m.arena->scratch_bytes = ~0ull; }},
        BadManifest{"kernel 'twice': is there twice", [](auto &m) { m.kernels[0]->name = "twice"; }},
        BadManifest{"kernel 'add_weight': has a negative", [](auto &m) { m.kernels[0]->cpu->units = -1; }},
        BadManifest{"weight 'w': its size", [](auto &m) { m.weights[0]->shape = {65}; }},
        BadManifest{"weight 'w': its size", [](auto &m) { m.weights[0]->shape = {-64}; }},
        BadManifest{"weight 'w': lies outside", [](auto &m) { m.weights[0]->offset_bytes = 4; }},
        BadManifest{"manifest: lists no target", [](auto &m) { m.targets.clear(); }},
        BadManifest{"node 0 kernel 'add_weight' has no code for target 'sm_90'", [](auto &m) { m.targets.push_back("sm_90"); }},
        BadManifest{"manifest: has no graph", [](auto &m) { m.graphs.clear(); }},
        BadManifest{"arena: section scratch has", [](auto &m) { m.arena->scratch_bytes = 1ull << 40; }},
        BadManifest{"arena: section inputs has", [](auto &m) { m.arena->inputs_bytes = 1ull << 30; }},
        BadManifest{"graph 'main': needs more scratch", [](auto &m) { graphOf(m).scratch_bytes = 769; }},
        BadManifest{"input 'x' has a size",
                    [](auto &m) { graphOf(m).inputs[0]->shape = {1, 63}, graphOf(m).inputs[0]->symbols = {"", ""}; }},
        BadManifest{
            "input 'x' has a size",
            [](auto &m) { graphOf(m).inputs[0]->shape = {int64_t(1) << 62, 64}, graphOf(m).inputs[0]->symbols = {"", ""}; }},
        BadManifest{"input 'x' has 0 dimension names", [](auto &m) { graphOf(m).inputs[0]->symbols.clear(); }},
        BadManifest{"input 'x' lies outside", [](auto &m) { setOffset(*graphOf(m).inputs[0]->slice, 4); }},
        BadManifest{"output 'y' is there twice", [](auto &m) { graphOf(m).outputs[1]->name = "y"; }},
        BadManifest{"output 'y' lies in scratch",
                    [](auto &m) { setSection(*graphOf(m).outputs[0]->slice, fb::Section::Scratch); }},
        BadManifest{"node 0 has an argument outside", [](auto &m) { setSize(graphOf(m).nodes[0]->args[0], ~0ull); }},
        BadManifest{"node 0 has an argument outside", [](auto &m) { setAccess(graphOf(m).nodes[0]->args[0], fb::Access::None); }},
        BadManifest{"node 0 writes to weights", [](auto &m) { setAccess(graphOf(m).nodes[0]->args[1], fb::Access::Write); }},
        BadManifest{"node 0 refers to kernel 9", [](auto &m) { graphOf(m).nodes[0]->kernel = 9; }},
        BadManifest{"node 0 has 2 arguments, expected 3", [](auto &m) { graphOf(m).nodes[0]->args.pop_back(); }},
        BadManifest{"node 0 has no gemm description", [](auto &m) { graphOf(m).nodes[0]->kind = fb::NodeKind::Gemm; }},
        BadManifest{"node 0 has a workspace that is not written scratch",
                    [](auto &m) {
                      fb::NodeT &node = *graphOf(m).nodes[0];
                      node.kind = fb::NodeKind::Gemm;
                      node.args.push_back(node.args[0]);
                      node.gemm = std::make_unique<fb::GemmT>();
                      node.gemm->has_workspace = true;
                    }},
        BadManifest{"node 2 is no copy", [](auto &m) { setSize(graphOf(m).nodes[2]->args[0], 8); }},
        BadManifest{"node 4 does not fill", [](auto &m) { setAccess(graphOf(m).nodes[4]->args[0], fb::Access::Read); }},
        BadManifest{"edge 1 -> 1 does not lead", [](auto &m) { setFrom(graphOf(m).edges[0], 1); }},
        BadManifest{"edge 1 -> 5 does not lead", [](auto &m) { setTo(graphOf(m).edges[2], 5); }},
        BadManifest{"edge 0 -> 2 is programmatic", [](auto &m) { setKind(graphOf(m).edges[1], fb::EdgeKind::Programmatic); }},
        BadManifest{"the uses of 'x' are not", [](auto &m) { graphOf(m).inputs[0]->uses[0] = fb::BindingUse(4, 0, 0); }},
        BadManifest{"the uses of 'x' are not", [](auto &m) { graphOf(m).inputs[0]->uses.emplace_back(0, 99, 0); }},
        BadManifest{"the uses of 'y' are not",
                    [](auto &m) { graphOf(m).nodes[1]->args[1] = slice(fb::Section::Outputs, 4, 256, fb::Access::Write); }},
        BadManifest{"'chain': is said to have the topology of 'main'", [](auto &m) { addGraphs(m), m.graphs[2]->topology = 0; }},
        BadManifest{"'swapped': is said to have the topology of 'main'",
                    [](auto &m) { addGraphs(m), setKind(m.graphs[1]->edges[0], fb::EdgeKind::Full); }},
        BadManifest{"tensor map 0: is of a type other", [](auto &m) { addTensorMap(m, [](auto &t) { t.type = fb::DataType::F64; }); }},
        BadManifest{"tensor map 0: does not have one to five", [](auto &m) { addTensorMap(m, [](auto &t) { t.box.pop_back(); }); }},
        BadManifest{"tensor map 0: does not have one to five",
                    [](auto &m) { addTensorMap(m, [](auto &t) { t.extents.clear(), t.strides_bytes.clear(), t.box.clear(); }); }},
        BadManifest{"tensor map 0: has a swizzle of 48", [](auto &m) { addTensorMap(m, [](auto &t) { t.swizzle_bytes = 48; }); }},
        BadManifest{"tensor map 0: has a box of 8 bytes", [](auto &m) { addTensorMap(m, [](auto &t) { t.box[0] = 4; }); }},
        BadManifest{"tensor map 0: has a box of 64 bytes",
                    [](auto &m) { addTensorMap(m, [](auto &t) { t.box[0] = 32, t.swizzle_bytes = 32; }); }},
        BadManifest{"tensor map 0: does not begin", [](auto &m) { addTensorMap(m, [](auto &t) { t.offset_bytes = 8; }); }},
        BadManifest{"tensor map 0: has an extent or a box out of range in dimension 1",
                    [](auto &m) { addTensorMap(m, [](auto &t) { t.box[1] = 257; }); }},
        BadManifest{"tensor map 0: has a stride out of range in dimension 1",
                    [](auto &m) { addTensorMap(m, [](auto &t) { t.strides_bytes[0] = 24; }); }},
        BadManifest{"node 0 has a tensor map of argument 3, which does not exist",
                    [](auto &m) { addTensorMap(m, [](auto &t) { t.argument = 3; }); }},
        BadManifest{"node 0 has a tensor map that leaves argument 0",
                    [](auto &m) { addTensorMap(m, [](auto &t) { t.extents[1] = 17; }); }},
        BadManifest{"node 0 has a tensor map that leaves argument 0",
                    [](auto &m) { addTensorMap(m, [](auto &t) { t.offset_bytes = ~0ull - 15; }); }},
        BadManifest{"node 0 has a tensor map that leaves argument 0",
                    [](auto &m) { addTensorMap(m, [](auto &t) { t.extents[1] = 1ull << 32, t.strides_bytes[0] = (1ull << 40) - 16; }); }},
        BadManifest{"initializer 'w': has an unknown type",
                    [](auto &m) {
                      m.parameters.push_back(std::make_unique<fb::ParameterT>());
                      m.parameters[0]->name = "w";
                      m.parameters[0]->type = static_cast<fb::DataType>(99);
                    }},
        BadManifest{"edge 0 -> 1 is there twice",
                    [](auto &m) { graphOf(m).edges.push_back(fb::Edge(0, 1, fb::EdgeKind::Full)); }}));

TEST(DataType, SmallFloatsRoundTrip) {
  using format::DataType;
  for (auto [type, count] : {std::pair(DataType::F16, 65536u),
                             {DataType::BF16, 65536u},
                             {DataType::F8E4M3FN, 256u},
                             {DataType::F8E5M2, 256u},
                             {DataType::F8E4M3FNUZ, 256u},
                             {DataType::F8E5M2FNUZ, 256u},
                             {DataType::F8E8M0, 256u},
                             {DataType::F6E2M3, 64u},
                             {DataType::F6E3M2, 64u},
                             {DataType::F4E2M1, 16u}})
    for (unsigned bits = 0; bits < count; ++bits) {
      uint16_t in = static_cast<uint16_t>(bits), out = 0;
      double value = format::readElement(type, &in, 0);
      format::writeElement(type, &out, 0, value);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(format::readElement(type, &out, 0)));
      else
        EXPECT_EQ(in, out) << format::typeName(type) << " " << bits;
    }
}

TEST(DataType, RoundsToNearestEven) {
  using format::DataType;
  uint16_t out = 0;
  format::writeElement(DataType::F16, &out, 0, 1.0 + 1.0 / 2048);
  EXPECT_EQ(out, 0x3c00);
  format::writeElement(DataType::F16, &out, 0, 1.0 + 3.0 / 2048);
  EXPECT_EQ(out, 0x3c02);
  format::writeElement(DataType::F16, &out, 0, 65520.0);
  EXPECT_EQ(out, 0x7c00);
  format::writeElement(DataType::BF16, &out, 0, -1.0);
  EXPECT_EQ(out, 0xbf80);
}

TEST(DataType, SmallIntegersAreTheirLowBits) {
  using format::DataType;
  unsigned char bytes[] = {0x08, 0x07, 0xf8, 0x1f};
  format::normalizeSmallIntegers(DataType::I4, bytes, 4);
  EXPECT_EQ(format::readElement(DataType::I4, bytes, 0), -8);
  EXPECT_EQ(format::readElement(DataType::I4, bytes, 1), 7);
  EXPECT_EQ(format::readElement(DataType::I4, bytes, 2), -8);
  EXPECT_EQ(format::readElement(DataType::I4, bytes, 3), -1);
  format::normalizeSmallIntegers(DataType::U2, bytes, 4);
  EXPECT_EQ(bytes[1], 3);
  format::normalizeSmallIntegers(DataType::U8, bytes, 4);
  EXPECT_EQ(bytes[1], 3);
}

TEST(Json, EscapesNames) {
  EXPECT_EQ(format::jsonString("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
  EXPECT_EQ(format::jsonString("größe"), "\"größe\"");
  EXPECT_EQ(format::jsonString("\xff"), "\"\\ufffd\"");
}
