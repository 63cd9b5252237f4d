//===- VerifyPhase.cpp - check what may not exist any more after a phase --===//
#include "compiler/passes/verify/Passes.h"

#include "compiler/dialect/kern/Kern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace ogc {

#define GEN_PASS_DEF_VERIFYPHASE
#include "compiler/passes/verify/Passes.h.inc"

namespace {

using namespace mlir;

/// What a phase leaves. Dialects are given by their namespace; `inKernels` counts inside kern.region and kern.kernel.
struct Rule {
  StringRef phase;
  std::vector<StringRef> dialects;
  std::vector<StringRef> ops;
  std::vector<StringRef> inKernels;
  bool needsStaticShapes = false;
  bool needsSignlessIntegers = false;
};

const std::vector<Rule> &rules() {
  static const std::vector<Rule> table{
      {"import", {"builtin", "func", "onnx"}, {}, {}},
      {"normalize", {"builtin", "func", "onnx"}, {}, {}},
      {"specialize", {"builtin", "func", "onnx"}, {}, {}, true},
      {"lower",
       {"builtin", "func", "linalg", "tensor", "arith", "math"},
       {"kern.matmul", "kern.conv", "kern.depthwise_conv", "kern.attention", "kern.program"},
       {},
       true,
       true},
      {"fuse",
       {"builtin", "func"},
       {"arith.constant", "tensor.expand_shape", "tensor.collapse_shape", "kern.region", "kern.launch", "kern.kernel"},
       {"linalg", "tensor", "arith", "math", "kern"},
       true,
       true},
      {"plan", {"builtin", "cg"}, {"kern.kernel"}, {"linalg", "tensor", "arith", "math", "kern"}, true, true},
  };
  return table;
}

/// The ONNX node names in a location, for people to read.
std::string nodeNameOf(Location loc) {
  std::string names;
  loc->walk([&](Location part) {
    if (auto name = dyn_cast<NameLoc>(part))
      names += (names.empty() ? "" : ", ") + name.getName().getValue().str();
    return WalkResult::advance();
  });
  return names;
}

class Checker {
public:
  explicit Checker(const Rule &rule) : rule(rule) {}

  /// Number of violations in `module`.
  unsigned run(ModuleOp module) {
    module->walk<WalkOrder::PreOrder>([&](Operation *op) { check(op); });
    return violations;
  }

private:
  InFlightDiagnostic report(Operation *op) {
    ++violations;
    return op->emitOpError();
  }

  /// Appends where the operation comes from.
  void finish(InFlightDiagnostic &diag, Operation *op) {
    std::string node = nodeNameOf(op->getLoc());
    if (!node.empty())
      diag << " [node \"" << node << "\"]";
  }

  static bool isInKernel(Operation *op) {
    Operation *parent = op->getParentOp();
    return parent && (isa<kern::RegionOp, kern::KernelOp>(parent) || parent->getParentOfType<kern::RegionOp>() ||
                      parent->getParentOfType<kern::KernelOp>());
  }

  /// Inside the body of a structured operation arith, math and linalg.index are what it consists of.
  static bool isScalarBody(Operation *op) {
    Operation *parent = op->getParentOp();
    StringRef dialect = parent ? parent->getName().getDialectNamespace() : StringRef();
    return dialect == "linalg" || dialect == "tensor";
  }

  bool isAllowed(Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace(), name = op->getName().getStringRef();
    if (isInKernel(op) || isScalarBody(op))
      return llvm::is_contained(rule.inKernels, dialect) ||
             (rule.inKernels.empty() && llvm::is_contained(rule.dialects, dialect));
    return llvm::is_contained(rule.dialects, dialect) || llvm::is_contained(rule.ops, name);
  }

  void checkType(Operation *op, Type type) {
    auto shaped = dyn_cast<ShapedType>(type);
    // Before specialization even a rank may follow from values that are not known yet.
    if (shaped && rule.needsStaticShapes && !shaped.hasStaticShape()) {
      InFlightDiagnostic diag = report(op);
      diag << "has type " << type << ", expected a static shape after phase " << rule.phase;
      finish(diag, op);
    }
    auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
    if (rule.needsSignlessIntegers && integer && !integer.isSignless()) {
      InFlightDiagnostic diag = report(op);
      diag << "has type " << type << ", expected signless integers after phase " << rule.phase;
      finish(diag, op);
    }
  }

  void check(Operation *op) {
    if (op->getParentOfType<kern::ProgramOp>())
      return; // scalar code, which the verifier of the program knows
    if (!isAllowed(op)) {
      InFlightDiagnostic diag = report(op);
      diag << "may not exist after phase " << rule.phase;
      finish(diag, op);
      return;
    }
    auto constant = dyn_cast<arith::ConstantOp>(op);
    if (rule.phase == "fuse" && constant && !isInKernel(op) && !isa<TensorType>(constant.getType())) {
      InFlightDiagnostic diag = report(op);
      diag << "is a scalar outside of a region, which may not exist after phase fuse";
      finish(diag, op);
    }
    auto region = dyn_cast<kern::RegionOp>(op);
    if (region && !region.getSchedule()) {
      InFlightDiagnostic diag = report(op);
      diag << "has no schedule after phase " << rule.phase;
      finish(diag, op);
    }
    for (Type type : op->getResultTypes())
      checkType(op, type);
    for (Region &body : op->getRegions())
      for (Block &block : body)
        for (Type type : block.getArgumentTypes())
          checkType(op, type);
  }

  const Rule &rule;
  unsigned violations = 0;
};

struct VerifyPhase : impl::VerifyPhaseBase<VerifyPhase> {
  using VerifyPhaseBase::VerifyPhaseBase;

  void runOnOperation() override {
    auto rule = llvm::find_if(rules(), [&](const Rule &entry) { return entry.phase == phase; });
    if (rule == rules().end()) {
      getOperation().emitError() << "ogc-verify-phase: phase is \"" << phase
                                 << "\", expected import, normalize, specialize, lower, fuse or plan";
      return signalPassFailure();
    }
    if (Checker(*rule).run(getOperation()) > 0)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace ogc
