//===- TuningTest.cpp - tuning tables and the choices they replace --------===//
#include "compiler/codegen/cuda/AnchorChoice.h"
#include <gtest/gtest.h>

using namespace ogc::codegen;

namespace {

constexpr CudaArch hopper{9, 0};
constexpr TileProblem product{1, 128, 768, 768, 2};

TuningTable parsed(llvm::StringRef text) {
  llvm::Expected<TuningTable> table = TuningTable::parse(text, "t.txt");
  EXPECT_TRUE(bool(table)) << (table ? "" : llvm::toString(table.takeError()));
  return table ? std::move(*table) : TuningTable();
}

std::string errorOf(llvm::StringRef text) {
  llvm::Expected<TuningTable> table = TuningTable::parse(text, "t.txt");
  return table ? "" : llvm::toString(table.takeError());
}

constexpr llvm::StringLiteral legal = "p = bm=32 bn=32 bk=64 wm=1 wn=2 wk=4 wide=0 stages=4 split=2 trigger=2 reserve=90000\n";

} // namespace

TEST(TuningTable, KnobsAreReadAsTheyAreWritten) {
  std::optional<Knobs> knobs = Knobs::parse("bm=64 split=-2");
  ASSERT_TRUE(knobs);
  EXPECT_EQ(knobs->str(), "bm=64 split=-2");
  EXPECT_EQ(knobs->get("split"), -2);
  EXPECT_EQ(knobs->get("bn"), std::nullopt);
  for (llvm::StringRef wrong : {"", "bm", "bm=", "=4", "bm=x", "bm=1 bm=2"})
    EXPECT_FALSE(Knobs::parse(wrong)) << wrong.str();
}

TEST(TuningTable, AllWrongLinesAreNamed) {
  EXPECT_EQ(parsed("# comment\n\n a b = x=1 # why\n").size(), 1u);
  EXPECT_EQ(errorOf("a = x=1\nb\na = x=2\n"), "t.txt:2: expected 'problem = name=number …'; t.txt:3: 'a' is there twice");
}

TEST(TuningTable, ShippedTablesAreReadable) {
  EXPECT_GT(TuningTable::builtin(hopper).size(), 0u);
  EXPECT_EQ(TuningTable::builtin({7, 5}).size(), 0u);
}

TEST(Tuning, ATableReplacesTheRule) {
  TuningTable table = parsed(legal);
  Tuning tuning;
  TileChoice rule = chooseTile(product, hopper, "p", tuning);
  tuning.tables = {&table};
  TileChoice tuned = chooseTile(product, hopper, "p", tuning);
  EXPECT_EQ(tuned.bm, 32);
  EXPECT_EQ(tuned.split, 2);
  EXPECT_EQ(tuned.trigger, Trigger::AfterMainLoop);
  EXPECT_EQ(tuned.reservedBytes, 90000);
  EXPECT_EQ(chooseTile(product, hopper, "another", tuning).bm, rule.bm);
}

TEST(Tuning, TheFirstTableWins) {
  TuningTable first = parsed("p = threads=64 trigger=0 reserve=0\n"), second = parsed("p = threads=256 trigger=0 reserve=0\n");
  Tuning tuning;
  tuning.tables = {&first, &second};
  EXPECT_EQ(chooseDepthwise("p", tuning).threads, 64);
}

TEST(Tuning, WhatDoesNotFitTheProblemIsNotTaken) {
  Tuning tuning;
  int rule = chooseTile(product, hopper, "p", tuning).bm;
  for (llvm::StringRef text :
       {"p = bm=32 bn=32\n",                                                                   // incomplete
        "p = bm=48 bn=32 bk=64 wm=1 wn=2 wk=4 wide=0 stages=4 split=2 trigger=2 reserve=0\n",  // no such form
        "p = bm=32 bn=32 bk=64 wm=1 wn=2 wk=4 wide=0 stages=4 split=3 trigger=2 reserve=0\n",  // no such split
        "p = bm=32 bn=32 bk=64 wm=1 wn=2 wk=4 wide=0 stages=60 split=2 trigger=2 reserve=0\n", // too much memory
        "p = bm=32 bn=32 bk=64 wm=1 wn=2 wk=4 wide=0 stages=4 split=2 trigger=3 reserve=0\n",  // no such trigger
        "p = bm=32 bn=32 bk=64 wm=1 wn=2 wk=4 wide=0 stages=4 split=2 trigger=1 reserve=999999\n"}) {
    TuningTable table = parsed(text);
    tuning.tables = {&table};
    EXPECT_EQ(chooseTile(product, hopper, "p", tuning).bm, rule) << text.str();
  }
  // Splits need clusters.
  TuningTable table = parsed(legal);
  tuning.tables = {&table};
  EXPECT_EQ(chooseTile(product, {8, 0}, "p", tuning).split, 1);
}

TEST(Gemv, TheRuleBalancesBlocksAndBytes) {
  using Numbers = std::array<int, 4>; // columns, warps, depth, split
  Tuning tuning;
  auto rule = [&](int64_t n, int64_t k, int bytes, int vecB, int64_t panel = 64, CudaArch arch = hopper) {
    GemvChoice choice = chooseGemv({1, 1, n, k, bytes}, vecB, panel, arch, "v", tuning);
    return Numbers{choice.bn, choice.warps, choice.depth, choice.split};
  };
  EXPECT_EQ(rule(128256, 2048, 2, 8), (Numbers{64, 32, 8, 1}));
  EXPECT_EQ(rule(2048, 8192, 2, 8), (Numbers{64, 16, 4, 8}));
  EXPECT_EQ(rule(2048, 8192, 2, 8, 64, {8, 0}), (Numbers{64, 32, 8, 1})); // no clusters
  EXPECT_EQ(rule(240, 960, 2, 8), (Numbers{16, 16, 4, 1}));               // few columns: more blocks
  EXPECT_EQ(rule(1000, 768, 4, 1), (Numbers{32, 32, 8, 1}));              // single elements: no more columns than lanes
  EXPECT_EQ(rule(5, 3, 4, 4), (Numbers{16, 4, 4, 1}));
  // Panels of 16: narrow blocks, smaller ones where there are many.
  EXPECT_EQ(rule(3072, 2048, 2, 8, 16), (Numbers{16, 16, 8, 1}));
  EXPECT_EQ(rule(16384, 2048, 2, 8, 16), (Numbers{16, 8, 8, 1}));
  EXPECT_EQ(rule(2048, 8192, 2, 8, 16), (Numbers{16, 8, 16, 2}));
}

TEST(Gemv, CandidatesAreLegalForAnyRows) {
  for (int64_t rows : {1, 2, 8})
    for (int vecB : {1, 4}) {
      Tuning tuning;
      tuning.collect = true;
      TileProblem problem{1, rows, 1000, 4096, 4};
      chooseGemv(problem, vecB, 64, hopper, "v", tuning);
      ASSERT_GT(tuning.candidates.size(), 10u);
      for (const Knobs &knobs : tuning.candidates) {
        Tuning forced;
        forced.forced = knobs;
        GemvChoice choice = chooseGemv(problem, vecB, 64, hopper, "v", forced);
        EXPECT_EQ(forced.chosen, knobs) << knobs.str();
        EXPECT_LE(choice.bn / vecB, 32) << knobs.str();
        EXPECT_LE(choice.sharedBytes(problem), 227 * 1024) << knobs.str();
      }
    }
}

TEST(Tuning, CandidatesBeginWithTheRuleAndAreAllLegal) {
  TileProblem mappable = product;
  mappable.isMappable = true;
  for (const TileProblem &problem : {product, mappable}) {
    Tuning tuning;
    tuning.collect = true;
    chooseTile(problem, hopper, "p", tuning);
    ASSERT_GT(tuning.candidates.size(), 10u);
    EXPECT_EQ(tuning.candidates.front(), tuning.chosen);
    for (const Knobs &knobs : tuning.candidates) {
      Tuning forced;
      forced.forced = knobs;
      chooseTile(problem, hopper, "p", forced);
      EXPECT_EQ(forced.chosen, knobs) << knobs.str();
    }
  }
}

/// 197 rows are 3 x 72 or 2 x 104, not 4 x 64.
TEST(Tuning, TensorMapsTakeRowsInEights) {
  TileProblem problem{1, 197, 2304, 768, 2};
  Tuning tuning;
  EXPECT_NE(chooseTile(problem, hopper, "p", tuning).engine, Engine::TensorMaps);
  problem.isMappable = true;
  TileChoice tile = chooseTile(problem, hopper, "p", tuning);
  EXPECT_EQ(tile.engine, Engine::TensorMaps);
  EXPECT_LT((197 + tile.bm - 1) / tile.bm * tile.bm, 224);
  EXPECT_NE(chooseTile(problem, {10, 0}, "p", tuning).engine, Engine::TensorMaps);
  auto isTaken = [&](const std::string &numbers) {
    TuningTable table = parsed("p = " + numbers + " trigger=0 reserve=90000\n");
    Tuning tuned;
    tuned.tables = {&table};
    return chooseTile(problem, hopper, "p", tuned).reservedBytes == 90000;
  };
  EXPECT_TRUE(isTaken("bm=40 bn=64 bk=192 wm=1 wn=1 wk=2 wide=2 stages=4 split=1"));
  EXPECT_TRUE(isTaken("bm=64 bn=64 bk=64 wm=1 wn=1 wk=2 wide=1 stages=12 split=1"));    // lines of other engines stay legal
  EXPECT_FALSE(isTaken("bm=36 bn=64 bk=192 wm=1 wn=1 wk=2 wide=2 stages=4 split=1"));   // no eights
  EXPECT_FALSE(isTaken("bm=40 bn=64 bk=192 wm=1 wn=2 wk=1 wide=2 stages=4 split=1"));   // two warpgroups have 128 columns
  EXPECT_FALSE(isTaken("bm=40 bn=64 bk=64 wm=1 wn=1 wk=1 wide=2 stages=2 split=1"));    // a ring of two cannot turn
  EXPECT_FALSE(isTaken("bm=200 bn=128 bk=256 wm=1 wn=2 wk=1 wide=2 stages=3 split=1")); // too much memory
  EXPECT_FALSE(isTaken("bm=40 bn=64 bk=192 wm=1 wn=1 wk=2 wide=3 stages=4 split=1"));
  problem.k = 56; // less than a box
  EXPECT_FALSE(isTaken("bm=40 bn=64 bk=64 wm=1 wn=1 wk=2 wide=2 stages=1 split=1"));
  problem.k = 64;
  EXPECT_TRUE(isTaken("bm=40 bn=64 bk=64 wm=1 wn=1 wk=2 wide=2 stages=1 split=1"));
  problem.k = 768, problem.isMappable = false;
  EXPECT_FALSE(isTaken("bm=40 bn=64 bk=192 wm=1 wn=1 wk=2 wide=2 stages=4 split=1"));
}

/// Stages of f32 have lines of 32 elements, and take twice the memory.
TEST(Tuning, TensorMapsOfF32) {
  TileProblem problem{1, 197, 2304, 768, 4};
  problem.isMappable = true;
  Tuning tuning;
  TileChoice tile = chooseTile(problem, hopper, "p", tuning);
  EXPECT_EQ(tile.engine, Engine::TensorMaps);
  EXPECT_EQ(tile.sharedBytes(problem),
            std::max(tile.stages * (tile.bm + tile.bn) * tile.bk, tile.warpsK * tile.bm * (tile.bn + 4)) * 4 +
                (tile.split > 1 ? tile.bm * (tile.bn + 4) * 4 : 0) + 16 * tile.stages);
  auto isTaken = [&](const std::string &numbers) {
    TuningTable table = parsed("p = " + numbers + " trigger=0 reserve=200000\n");
    Tuning tuned;
    tuned.tables = {&table};
    return chooseTile(problem, hopper, "p", tuned).reservedBytes == 200000;
  };
  EXPECT_TRUE(isTaken("bm=40 bn=64 bk=96 wm=1 wn=1 wk=2 wide=2 stages=4 split=1"));
  EXPECT_FALSE(isTaken("bm=40 bn=64 bk=96 wm=1 wn=1 wk=2 wide=2 stages=6 split=1")); // too much memory
  EXPECT_FALSE(isTaken("bm=40 bn=64 bk=80 wm=1 wn=1 wk=2 wide=2 stages=4 split=1")); // no whole line
  problem.k = 32;
  EXPECT_TRUE(isTaken("bm=40 bn=64 bk=32 wm=1 wn=1 wk=2 wide=2 stages=1 split=1"));
  problem.k = 24;
  EXPECT_FALSE(isTaken("bm=40 bn=64 bk=32 wm=1 wn=1 wk=2 wide=2 stages=1 split=1"));
}

static TileProblem convolution(int64_t images, int64_t size, int64_t channels, int64_t filters, int64_t kernel) {
  TileProblem problem{images, size * size, filters, kernel * kernel * channels, 2};
  BoxProblem boxes;
  boxes.images = images, boxes.height = boxes.width = boxes.inputHeight = boxes.inputWidth = size;
  boxes.channels = channels, boxes.filters = filters, boxes.kernel = {kernel, kernel}, boxes.pads = {kernel / 2, kernel / 2};
  boxes.pixelStride = channels, boxes.rowStride = channels * size, boxes.imageStride = channels * size * size;
  boxes.isFlat = kernel == 1;
  problem.boxes = boxes;
  return problem;
}

/// Large batches take boxes, small ones do not; what the tuner tries is legal and has both kinds.
TEST(Tuning, ManyPixelsTakeBoxes) {
  for (int64_t kernel : {1, 3}) {
    Tuning tuning;
    EXPECT_EQ(chooseTile(convolution(64, 56, 64, 64, kernel), hopper, "p", tuning).engine, Engine::Boxes);
    EXPECT_NE(chooseTile(convolution(64, 56, 64, 64, kernel), {8, 0}, "p", tuning).engine, Engine::Boxes);
    TileProblem problem = convolution(64, 14, 256, 256, kernel);
    problem.isMappable = kernel == 1;
    tuning.collect = true;
    chooseTile(problem, hopper, "p", tuning);
    int64_t boxes = 0;
    for (const Knobs &knobs : tuning.candidates) {
      Tuning forced;
      forced.forced = knobs;
      TileChoice tile = chooseTile(problem, hopper, "p", forced);
      EXPECT_EQ(forced.chosen, knobs) << knobs.str();
      EXPECT_LE(tile.sharedBytes(problem), 227 * 1024) << knobs.str();
      boxes += tile.engine == Engine::Boxes;
    }
    EXPECT_GT(boxes, 3);
    EXPECT_LT(boxes, int64_t(tuning.candidates.size()) - 3);
  }
}

TEST(Tuning, BoxesOutOfRangeAreRefused) {
  TileProblem problem = convolution(8, 28, 128, 128, 3);
  auto isTaken = [&](const std::string &numbers) {
    TuningTable table = parsed("p = " + numbers + " trigger=0 reserve=90000\n");
    Tuning tuned;
    tuned.tables = {&table};
    return chooseTile(problem, hopper, "p", tuned).reservedBytes == 90000;
  };
  const std::string tile = "bm=224 bn=128 bk=64 wm=1 wn=2 wk=1 wide=3 stages=3 split=1 ";
  EXPECT_TRUE(isTaken(tile + "bx=8 by=28 boxes=1 border=1 filters=4 keep=0 blocks=1"));
  EXPECT_TRUE(isTaken(tile + "bx=28 by=8 boxes=1 border=0 filters=4 keep=0 blocks=1"));
  EXPECT_TRUE(isTaken(tile + "bx=8 by=14 boxes=2 border=1 filters=4 keep=0 blocks=1"));
  EXPECT_FALSE(isTaken(tile + "bx=28 by=8 boxes=1 border=1 filters=4 keep=0 blocks=1"));  // a border needs rows of eight
  EXPECT_FALSE(isTaken(tile + "bx=8 by=28 boxes=1 border=1 filters=1 keep=0 blocks=1"));  // a ring of one cannot turn
  EXPECT_FALSE(isTaken(tile + "bx=8 by=28 boxes=1 border=1 filters=9 keep=1 blocks=1"));  // 18 taps do not stay in 9 places
  EXPECT_FALSE(isTaken(tile + "bx=8 by=28 boxes=1 border=1 filters=18 keep=1 blocks=1")); // too much memory
  EXPECT_FALSE(isTaken(tile + "bx=8 by=28 boxes=1 border=1 filters=4 keep=0 blocks=2"));
  EXPECT_FALSE(isTaken(tile + "bx=8 by=14 boxes=1 border=1 filters=4 keep=0 blocks=1")); // not the rows of the tile
  EXPECT_FALSE(isTaken(tile));
  const std::string box = "bx=8 by=14 boxes=1 border=1 filters=4 keep=0 blocks=1",
                    part = "bm=112 bn=64 bk=64 wn=1 wk=1 wide=3 stages=3 ";
  EXPECT_TRUE(isTaken(part + "wm=1 split=2 " + box));
  EXPECT_FALSE(isTaken(part + "wm=1 split=4 " + box));                                       // 128 channels are two lines
  EXPECT_FALSE(isTaken(part + "wm=2 split=2 " + box));                                       // a cluster computes one tile
  EXPECT_FALSE(isTaken("bm=112 bn=64 bk=32 wn=1 wk=1 wide=3 stages=3 wm=1 split=1 " + box)); // half a line
  problem.bytes = problem.boxes->bytes = 4;
  EXPECT_TRUE(isTaken("bm=112 bn=64 bk=32 wn=1 wk=1 wide=3 stages=3 wm=1 split=4 " + box));
  EXPECT_FALSE(isTaken(part + "wm=1 split=2 " + box));
  problem.boxes->strides = {3, 3}; // more phases than maps
  EXPECT_FALSE(isTaken(tile + "bx=8 by=28 boxes=1 border=1 filters=4 keep=0 blocks=1"));
}
