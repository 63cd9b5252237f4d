//===- SelectTest.cpp - the graph for the shapes of the inputs ------------===//
#include "runtime_lib/src/select/Select.h"

#include "gtest/gtest.h"
#include <numeric>
#include <random>

using namespace ogc;
using namespace ogc::runtime;

namespace {

/// A bundle's manifest with the graphs of some sizes of [batch, seq]: x and y of that shape, z without; batch may be padded.
class Manifest {
public:
  explicit Manifest(const std::vector<std::pair<int64_t, int64_t>> &sizes) {
    fb::ManifestT manifest;
    manifest.provenance = std::make_unique<fb::ProvenanceT>();
    manifest.arena = std::make_unique<fb::ArenaT>();
    for (auto [batch, seq] : sizes) {
      auto graph = std::make_unique<fb::GraphT>();
      graph->id = "b" + std::to_string(batch) + "s" + std::to_string(seq);
      graph->inputs.push_back(binding("x", {batch, seq}, {"batch", "seq"}));
      graph->inputs.push_back(binding("y", {batch, 3}, {"batch", ""}));
      graph->outputs.push_back(binding("out", {2 * batch, seq}, {"", "seq"}));
      auto node = std::make_unique<fb::NodeT>();
      node->args.push_back(fb::Slice(0, static_cast<uint64_t>(batch * seq), fb::Section::Inputs, fb::Access::Read));
      graph->nodes.push_back(std::move(node));
      manifest.graphs.push_back(std::move(graph));
    }
    manifest.symbols.push_back(symbol("batch", true));
    manifest.symbols.back()->cuts.push_back(std::make_unique<fb::RowCutT>());
    manifest.symbols.back()->cuts.back()->inner = 2;
    manifest.symbols.push_back(symbol("seq", false));
    builder_.Finish(fb::Manifest::Pack(builder_, &manifest));
  }
  const fb::Manifest &get() const { return *fb::GetManifest(builder_.GetBufferPointer()); }

private:
  static std::unique_ptr<fb::BindingT> binding(const char *name, Shape shape, std::vector<std::string> symbols) {
    auto result = std::make_unique<fb::BindingT>();
    result->name = name;
    result->type = fb::DataType::F32;
    result->shape = std::move(shape);
    result->symbols = std::move(symbols);
    result->slice = std::make_unique<fb::Slice>(0, 4, fb::Section::Inputs, fb::Access::ReadWrite);
    return result;
  }
  static std::unique_ptr<fb::SymbolT> symbol(const char *name, bool isSafe) {
    auto result = std::make_unique<fb::SymbolT>();
    result->name = name;
    result->padding_safe = isSafe;
    if (!isSafe) {
      result->operator_type = "Softmax";
      result->node = "s";
      result->reason = "reduces over it";
    }
    return result;
  }
  flatbuffers::FlatBufferBuilder builder_;
};

TEST(Select, exactBeforePadded) {
  Manifest manifest({{8, 16}, {4, 16}, {2, 16}});
  auto exact = selectGraph(manifest.get(), {{"x", {4, 16}}});
  ASSERT_TRUE(exact.ok());
  EXPECT_EQ(exact.value().graph, 1u);
  EXPECT_TRUE(exact.value().paddings.empty());
}

TEST(Select, cheapestThatCovers) {
  Manifest manifest({{8, 16}, {4, 16}, {2, 16}});
  auto selection = selectGraph(manifest.get(), {{"x", {3, 16}}, {"y", {3, 3}}});
  ASSERT_TRUE(selection.ok());
  EXPECT_EQ(selection.value().graph, 1u);
  ASSERT_EQ(selection.value().paddings.size(), 1u);
  EXPECT_EQ(selection.value().paddings[0].given, 3);
  EXPECT_EQ(selection.value().paddings[0].size, 4);
  EXPECT_EQ(inputShape(manifest.get(), selection.value(), 0), (Shape{3, 16}));
  EXPECT_EQ(outputShape(manifest.get(), selection.value(), 0), (Shape{6, 16}));
}

TEST(Select, refusals) {
  Manifest manifest({{8, 16}, {4, 32}});
  auto message = [&](const std::vector<GivenInput> &inputs) { return selectGraph(manifest.get(), inputs).status().message(); };
  EXPECT_EQ(
      message({{"x", {4, 15}}}),
      "no graph takes 'x' of shape 4x15; the graphs are 'b8s16' (x 8x16), 'b4s32' (x 4x32); 'seq' is not padded: Softmax node "
      "'s' reduces over it");
  EXPECT_EQ(message({{"x", {9, 16}}}), "no graph takes 'x' of shape 9x16; the graphs are 'b8s16' (x 8x16), 'b4s32' (x 4x32)");
  EXPECT_EQ(message({{"x", {0, 16}}}), "no graph takes 'x' of shape 0x16; the graphs are 'b8s16' (x 8x16), 'b4s32' (x 4x32)");
  EXPECT_EQ(message({{"x", {4}}}), "no graph takes 'x' of shape 4; the graphs are 'b8s16' (x 8x16), 'b4s32' (x 4x32)");
  EXPECT_EQ(message({{"x", {3, 16}}, {"y", {2, 3}}}), "dimension 'batch' is 3 in input 'x', but 2 in input 'y'");
  EXPECT_EQ(message({{"w", {3}}}), "there is no input 'w', the graphs have 'x', 'y'");
  EXPECT_EQ(message({{"y", {3, 4}}}), "no graph takes 'y' of shape 3x4; the graphs are 'b8s16' (y 8x3), 'b4s32' (y 4x3)");
}

/// Against a loop over all positions.
TEST(Select, copyRows) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    size_t rank = 1 + random() % 4;
    Shape from, to;
    for (size_t dim = 0; dim < rank; ++dim) {
      from.push_back(1 + int64_t(random() % 4));
      to.push_back(random() % 2 ? from.back() : 1 + int64_t(random() % 4));
    }
    auto count = [](const Shape &shape) { return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()); };
    std::vector<uint32_t> source(count(from)), target(count(to), 0xFFFFFFFF), expected(count(to), 0);
    std::iota(source.begin(), source.end(), 1);
    for (int64_t i = 0; i < count(from); ++i) {
      int64_t rest = i, index = 0, stride = 1;
      bool isInside = true;
      for (size_t dim = rank; dim-- > 0;) {
        int64_t at = rest % from[dim];
        rest /= from[dim];
        isInside &= at < to[dim];
        index += at * stride;
        stride *= to[dim];
      }
      if (isInside)
        expected[index] = source[i];
    }
    copyRows(source.data(), from, target.data(), to, 4);
    EXPECT_EQ(target, expected);
  }
}

} // namespace
