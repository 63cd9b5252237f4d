//===- DependentLaunchCheckTest.cpp - kernels wait before the arena -------===//
#include "compiler/codegen/cuda/DependentLaunchCheck.h"

#include <gtest/gtest.h>

using namespace ogc::codegen;

namespace {

/// A kernel of three parameters, of which the second is a weight.
std::vector<std::string> check(const std::string &body) {
  return checkDependentLaunch(".version 8.7\n.visible .entry k(\n\t.param .u64 k_param_0,\n\t.param .u64 k_param_1\n)\n{\n" +
                                  body + "\n}\n",
                              {{"k", {false, true, false}}});
}

const std::string load = "\t.reg .b64 %rd<9>;\n\tld.param.u64 %rd1, [k_param_0];\n\tld.param.u64 %rd2, [k_param_1];\n"
                         "\tcvta.to.global.u64 %rd3, %rd1;\n\tcvta.to.global.u64 %rd4, %rd2;\n";
const std::string wait = "\t// begin inline asm\n\tgriddepcontrol.wait;\n\t// end inline asm\n";
const std::string trigger = "\tgriddepcontrol.launch_dependents;\n";

TEST(DependentLaunchCheckTest, WeightsBeforeTheWaitAreRight) {
  EXPECT_EQ(check(load + "\tld.global.nc.f32 %f1, [%rd4+16];\n" + wait + trigger + "\tld.global.f32 %f2, [%rd3];\n\tret;\n"),
            std::vector<std::string>{});
}

TEST(DependentLaunchCheckTest, AccessBeforeTheWait) {
  EXPECT_EQ(
      check(load + "\tadd.s64 %rd5, %rd3, 4;\n\tld.global.v2.f32 {%f1, %f2}, [%rd5];\n" + wait + trigger + "\tret;\n"),
      std::vector<std::string>{"k(ptx): may access the arena before griddepcontrol.wait: ld.global.v2.f32 {%f1, %f2}, [%rd5]"});
}

TEST(DependentLaunchCheckTest, ReadOnlyPathToTheArena) {
  EXPECT_EQ(
      check(load + wait + trigger + "\tadd.s64 %rd5, %rd3, 4;\n\tld.global.nc.f32 %f1, [%rd5];\n\tret;\n"),
      std::vector<std::string>{"k(ptx): reads the arena by the read-only path, which is not ordered behind griddepcontrol.wait: "
                               "ld.global.nc.f32 %f1, [%rd5]"});
}

TEST(DependentLaunchCheckTest, BulkCopyBeforeTheWait) {
  std::string copy = "\tcp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd";
  EXPECT_EQ(check(load + copy + "4], 128, [%r2];\n" + wait + trigger + "\tret;\n").size(), 0u);
  EXPECT_EQ(check(load + copy + "3], 128, [%r2];\n" + wait + trigger + "\tret;\n").size(), 1u);
}

/// A tensor map is a parameter whose own address leads to memory: the copy of the arena waits, that of weights need not.
TEST(DependentLaunchCheckTest, TensorMapBeforeTheWait) {
  auto checkCopies = [](const std::string &before) {
    std::string body =
        "\tmov.b64 %rd1, k_param_3;\n\tmov.b64 %rd2, k_param_4;\n\tcvta.param.u64 %rd3, %rd1;\n\tcvta.param.u64 %rd4, "
        "%rd2;\n\tprefetch.tensormap [%rd3];\n" +
        before + wait + trigger + "\tret;\n";
    return checkDependentLaunch(".visible .entry k(\n)\n{\n" + body + "}\n", {{"k", {false, true, false, false, true}, 3}})
        .size();
  };
  std::string copy = "\tcp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd";
  EXPECT_EQ(checkCopies(copy + "4, {%r2, %r3, %r4}], [%r5];\n"), 0u);
  EXPECT_EQ(checkCopies(copy + "3, {%r2, %r3, %r4}], [%r5];\n"), 1u);
}

TEST(DependentLaunchCheckTest, WaitThatOneBranchMisses) {
  std::string body = load + "\tsetp.eq.s32 %p1, %r1, 0;\n\t@%p1 bra $L__BB0_2;\n" + wait + "$L__BB0_2:\n" + trigger;
  EXPECT_EQ(check(body + "\tst.global.f32 [%rd3], %f1;\n\tret;\n").size(), 2u); // the store, and the end
  EXPECT_EQ(check(body + wait + "\tst.global.f32 [%rd3], %f1;\n\tret;\n").size(), 0u);
}

TEST(DependentLaunchCheckTest, PredicatedWaitDoesNotCount) {
  EXPECT_EQ(check(load + "\t@%p1 griddepcontrol.wait;\n" + trigger + "\tret;\n"),
            std::vector<std::string>{"k(ptx): may end without griddepcontrol.wait"});
}

TEST(DependentLaunchCheckTest, NoTrigger) {
  EXPECT_EQ(check(load + wait + "\tret;\n"), std::vector<std::string>{"k(ptx): has no griddepcontrol.launch_dependents"});
}

/// Inline assembly brings labels of its own, which may be the same in every copy.
TEST(DependentLaunchCheckTest, LabelsInBraces) {
  std::string spin =
      "\t{\n.reg .pred P;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 P, [%r3], %r4;\n@P bra DONE;\nbra AGAIN;\nDONE:\n}\n";
  EXPECT_EQ(check(load + spin + wait + spin + trigger + "\tst.global.f32 [%rd3], %f1;\n\tret;\n").size(), 0u);
  EXPECT_EQ(check(load + spin + spin + "\tst.global.f32 [%rd3], %f1;\n" + wait + trigger + "\tret;\n").size(), 1u);
}

TEST(DependentLaunchCheckTest, AddressThroughLocalMemory) {
  EXPECT_EQ(check(load + "\tst.local.u64 [%rd7], %rd3;\n\tld.local.u64 %rd8, [%rd7];\n\tld.global.f32 %f1, [%rd8];\n" + wait +
                  trigger + "\tret;\n")
                .size(),
            1u);
}

TEST(DependentLaunchCheckTest, MissingEntry) {
  EXPECT_EQ(checkDependentLaunch("", {{"k", {}}}), std::vector<std::string>{"k(ptx): is not in the text"});
}

} // namespace
