//===- VerifyGraphTest.cpp - every edge that is taken away is missed ------===//
#include "compiler/dialect/cg/Cg.h"
#include "compiler/dialect/kern/Kern.h"
#include "compiler/passes/plan/Passes.h"
#include "compiler/passes/verify/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;

namespace {

class VerifyGraphTest : public ::testing::Test {
protected:
  VerifyGraphTest() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<ogc::cg::CgDialect, ogc::kern::KernDialect>();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      messages += diagnostic.getSeverity() == DiagnosticSeverity::Error ? diagnostic.str() + "\n" : "";
    });
  }

  /// A graph of `count` nodes that each write a buffer and read some earlier ones; every fourth updates a state as well.
  OwningOpRef<ModuleOp> randomGraph(std::mt19937 &random, unsigned count) {
    std::vector<int64_t> size;
    std::string text = "cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {\n";
    auto slice = [&](unsigned buffer, const char *access) {
      return "#cg.slice<scratch, " + std::to_string(int64_t(buffer) << 20) + ", " + std::to_string(size[buffer]) + ", " + access +
             ">";
    };
    for (unsigned node = 0; node < count; ++node) {
      size.push_back(256 * static_cast<int64_t>(1 + random() % 64));
      text += "  %" + std::to_string(node) + " = cg.kernel @k [";
      for (unsigned reads = random() % 4, i = 0; node && i < reads; ++i)
        text += slice(node - 1 - random() % std::min(node, 8u), "read") + ", ";
      if (random() % 4 == 0)
        text += "#cg.slice<state, " + std::to_string(256 * (random() % 3)) + ", 256, readwrite>, ";
      text += slice(node, "write") + "]\n";
    }
    return parseSourceString<ModuleOp>(text + "}\n", &context);
  }

  bool run(ModuleOp module, bool plans) {
    PassManager manager(&context);
    if (plans) {
      manager.addPass(ogc::createPlanArena());
      manager.addPass(ogc::createDeriveEdges());
    }
    manager.addPass(ogc::createVerifyGraph());
    messages.clear();
    return succeeded(manager.run(module));
  }

  MLIRContext context;
  std::string messages;
};

TEST_F(VerifyGraphTest, EveryEdgeTakenAwayIsMissed) {
  std::mt19937 random(17);
  unsigned edges = 0;
  for (int round = 0; round < 30; ++round) {
    OwningOpRef<ModuleOp> module = randomGraph(random, 2 + random() % 40);
    ASSERT_TRUE(run(*module, true)) << messages;
    auto graph = *module->getOps<ogc::cg::GraphOp>().begin();
    for (Operation &node : graph.getBody().front()) {
      SmallVector<Value> all(node.getOperands());
      for (size_t i = 0; i < all.size(); ++i, ++edges) {
        SmallVector<Value> fewer(all);
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
        node.setOperands(fewer);
        EXPECT_FALSE(run(*module, false)) << "edge " << i << " of " << all.size() << " in round " << round;
        EXPECT_NE(messages.find("no edge orders node"), std::string::npos) << messages;
        node.setOperands(all);
      }
    }
    EXPECT_TRUE(run(*module, false));
  }
  EXPECT_GT(edges, 300u);
}

/// Bytes that two unordered nodes share are found wherever they are moved to.
TEST_F(VerifyGraphTest, BufferMovedOntoAnotherIsMissed) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
    cg.graph @g inputs [] outputs [] attributes {scratch_bytes = 0 : i64, scratch_bound_bytes = 0 : i64} {
      %0 = cg.kernel @k [#cg.slice<scratch, 0, 256, write>]
      %1 = cg.kernel @k [#cg.slice<scratch, 0, 256, read>, #cg.slice<scratch, 1024, 256, write>]
      %2 = cg.kernel @k [#cg.slice<scratch, 0, 256, read>, #cg.slice<scratch, 2048, 256, write>]
      %3 = cg.kernel @k [#cg.slice<scratch, 1024, 256, read>, #cg.slice<scratch, 2048, 256, read>, #cg.slice<outputs, 0, 8, write>]
    })",
                                                             &context);
  ASSERT_TRUE(run(*module, true)) << messages;
  auto graph = *module->getOps<ogc::cg::GraphOp>().begin();
  auto second = cast<ogc::cg::KernelOp>(*std::next(graph.getBody().front().begin(), 2));
  auto first = cast<ogc::cg::KernelOp>(*std::next(graph.getBody().front().begin(), 1));
  second.setArgsAttr(ArrayAttr::get(&context, {second.getArgs()[0], first.getArgs()[1]}));
  EXPECT_FALSE(run(*module, false));
}

} // namespace
