//===- RegionText.cpp - what tells kernel regions apart -------------------===//
#include "compiler/dialect/kern/RegionText.h"

#include "mlir/IR/AsmState.h"
#include <limits>

using namespace mlir;

namespace ogc::kern {

std::string textOf(RegionOp region) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << (region.getSchedule() ? stringifySchedule(*region.getSchedule()) : "") << ' ';
  for (Type type : region.getInputs().getTypes())
    os << type << ',';
  // Whatever the command line says about printing, the text must be whole and without locations.
  OpPrintingFlags flags;
  flags.useLocalScope().printGenericOpForm().skipRegions(false).enableDebugInfo(false);
  flags.elideLargeElementsAttrs(std::numeric_limits<int64_t>::max());
  AsmState state(region, flags);
  for (Operation &op : region.getBody().front()) {
    os << '\n';
    op.print(os, state);
  }
  return text;
}

} // namespace ogc::kern
