//===- ShapeSpecTest.cpp - the text of --shapes ---------------------------===//
#include "compiler/passes/specialize/ShapeSpec.h"

#include "gtest/gtest.h"

using namespace ogc::specialize;

namespace {

/// "id{label}" of each graph, or "error: reason".
std::string expand(const char *text, std::vector<std::string> inputs = {"x", "y z", "input:0"}) {
  std::string reason, result;
  auto requests = parseShapes(text, reason);
  auto graphs = requests ? expandShapes(*requests, inputs, reason) : std::nullopt;
  if (!graphs)
    return "error: " + reason;
  for (const GraphShapes &graph : *graphs)
    result += (result.empty() ? "" : " | ") + graph.id + "{" + graph.label + "}";
  return result;
}

TEST(ShapeSpec, inputs) {
  EXPECT_EQ(expand(""), "{}");
  EXPECT_EQ(expand("x=1x3x224x224"), "{x=1x3x224x224}");
  EXPECT_EQ(expand("b8: x=8x3,input:0=4"), "b8{x=8x3 input:0=4}");
  EXPECT_EQ(expand("input:0=4"), "{input:0=4}");
  EXPECT_EQ(expand("y z=2x3 x=4"), "{y z=2x3 x=4}");
  EXPECT_EQ(expand("x="), "{x=scalar}");
  EXPECT_EQ(expand("small:"), "small{}");
  EXPECT_EQ(expand("x=1x8,2x8"), "{x=1x8} | {x=2x8}");
  EXPECT_EQ(expand("x=0x4"), "{x=0x4}");
}

TEST(ShapeSpec, products) {
  EXPECT_EQ(expand("batch=1,2 seq=32..128:x2"),
            "{batch=1 seq=32} | {batch=1 seq=64} | {batch=1 seq=128} | {batch=2 seq=32} | {batch=2 seq=64} | {batch=2 seq=128}");
  EXPECT_EQ(expand("g: batch=1,2 seq=8"), "g_batch1{batch=1 seq=8} | g_batch2{batch=2 seq=8}");
  EXPECT_EQ(expand("a: batch=1; b: batch=2\nc: x=1x8"), "a{batch=1} | b{batch=2} | c{x=1x8}");
  EXPECT_EQ(expand("x=1x8 batch=1,2"), "{x=1x8 batch=1} | {x=1x8 batch=2}");
}

TEST(ShapeSpec, ranges) {
  EXPECT_EQ(expand("n=1..3"), "{n=1} | {n=2} | {n=3}");
  EXPECT_EQ(expand("n=64..200:+64"), "{n=64} | {n=128} | {n=192} | {n=200}");
  EXPECT_EQ(expand("n=3..20:x2"), "{n=3} | {n=6} | {n=12} | {n=20}");
  EXPECT_EQ(expand("n=5..5"), "{n=5}");
  EXPECT_EQ(expand("n=1,4..5,9"), "{n=1} | {n=4} | {n=5} | {n=9}");
  EXPECT_EQ(expand("n=4611686018427387904..9223372036854775807:x2"), "{n=4611686018427387904} | {n=9223372036854775807}");
}

TEST(ShapeSpec, errors) {
  EXPECT_EQ(expand("x=1x-8"), "error: '-8' in shape '1x-8' is not a size");
  EXPECT_EQ(expand("x=99999999999999999999"), "error: '99999999999999999999' in shape '99999999999999999999' is not a size");
  EXPECT_EQ(expand("x"), "error: 'x' is not of the form name=AxBxC or symbol=A,B,C");
  EXPECT_EQ(expand("x=1 y,"), "error: 'y' is not of the form name=AxBxC or symbol=A,B,C");
  EXPECT_EQ(expand("=1"), "error: '=1' is not of the form name=AxBxC or symbol=A,B,C");
  EXPECT_EQ(expand("5,x=1"), "error: '5' is not of the form name=AxBxC or symbol=A,B,C");
  EXPECT_EQ(expand("x=1 x=2"), "error: 'x' is given twice: all its values belong into one list");
  EXPECT_EQ(expand("n=1,2,1"), "error: 'n' lists 1 twice");
  EXPECT_EQ(expand("a/b: n=1"), "error: 'a/b' is not a graph ID: letters, digits, '_', '-' and '.' are");
  EXPECT_EQ(expand("n=8..4"), "error: range '8..4' ends before it begins");
  EXPECT_EQ(expand("n=0..4:x2"), "error: range '0..4:x2' does not get on");
  EXPECT_EQ(expand("n=1..4:x1"), "error: range '1..4:x1' does not get on");
  EXPECT_EQ(expand("n=1..4:2"), "error: '1..4:2' is not a range: A..B, A..B:xFACTOR and A..B:+STEP are");
  EXPECT_EQ(expand("n=1..9999"), "error: range '1..9999' has more than 4096 sizes");
  EXPECT_EQ(expand("a=1..100 b=1..100"), "error: these are more than 4096 graphs");
}

TEST(ShapeSpec, ids) {
  EXPECT_EQ(toValidID("batch size/2"), "batch_size_2");
  EXPECT_TRUE(isValidID("b8.x-y_z"));
  EXPECT_FALSE(isValidID(""));
}

} // namespace
