//===- ProvePadding.cpp - may a named dimension be padded? ----------------===//
#include "compiler/analysis/PaddingSafety.h"
#include "compiler/passes/specialize/Passes.h"
#include "compiler/passes/specialize/ShapeSpec.h"

using namespace mlir;

namespace ogc::specialize {

#define GEN_PASS_DEF_PROVEPADDING
#include "compiler/passes/specialize/Passes.h.inc"

namespace {

struct ProvePaddingPass : impl::ProvePaddingBase<ProvePaddingPass> {
  using ProvePaddingBase::ProvePaddingBase;

  void runOnOperation() override {
    std::optional<SizePair> pair = sizePair(getOperation(), symbol);
    if (!pair || pair->small < 2) {
      getOperation().emitError() << "expected two functions of sizes 2 <= a < b of symbol '" << symbol << "'";
      return signalPassFailure();
    }
    PaddingSafety safety = analyzePadding(pair->first, pair->second, symbol, pair->small, pair->large);
    Builder builder(&getContext());
    SmallVector<Attribute> cuts;
    for (const PaddingSafety::Cut &cut : safety.cuts)
      cuts.push_back(builder.getDenseI64ArrayAttr({cut.output, cut.dim, cut.inner}));
    getOperation()->setAttr("ogc.padding", builder.getDictionaryAttr({
                                               builder.getNamedAttr("symbol", builder.getStringAttr(symbol)),
                                               builder.getNamedAttr("safe", builder.getBoolAttr(safety.isSafe)),
                                               builder.getNamedAttr("cuts", builder.getArrayAttr(cuts)),
                                               builder.getNamedAttr("operator", builder.getStringAttr(safety.operatorType)),
                                               builder.getNamedAttr("node", builder.getStringAttr(safety.node)),
                                               builder.getNamedAttr("reason", builder.getStringAttr(safety.reason)),
                                           }));
  }
};

} // namespace
} // namespace ogc::specialize
