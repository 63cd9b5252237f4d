//===- AnchorBoxes.cpp - convolutions over boxes of pixels ----------------===//
#include "compiler/codegen/cuda/AnchorPrinter.h"
#include "compiler/codegen/cuda/BoxTile.h"

using namespace mlir;
using llvm::divideCeil;

namespace ogc::codegen {

/// Makes the taps of a row of the filter one tap with their channels, where they lie side by side in memory and never outside of
/// the image: a few channels then fill a line of a box.
static void mergeRowTaps(BoxProblem &p, ArrayRef<int64_t> pads) {
  int64_t lineChannels = mappedLine(p.bytes), unit = 16 / p.bytes;
  int64_t step = p.strides[1] * p.pixelStride;
  bool sideBySide = p.dilations[1] == 1 && p.pixelStride == p.channels && pads[1] == 0 && pads[3] == 0;
  if (p.kernel[1] == 1 || p.channels >= lineChannels || !sideBySide || step % unit != 0)
    return;
  p.channels *= p.kernel[1];
  p.pixelStride = step;
  p.inputWidth = p.width;
  p.kernel[1] = p.strides[1] = 1;
}

std::optional<BoxProblem> AnchorPrinter::boxProblemOf(kern::ConvOp op, const Operand &x) const {
  ArrayRef<int64_t> in = shapeOf(op.getInput()), result = shapeOf(op.getResult()), s = x.view.strides;
  int64_t panel = shapeOf(op.getFilter())[2];
  // Maps have the strides of rows and pixels even where there is one; panels divide a tile's filters.
  bool hasPixels = takesBoxes(op.getInput(), op.getMath(), panel) && 64 % panel == 0 &&
                   x.isMappable(s[3], in[0] == 1 ? s.slice(1, 2) : s.take_front(3), in[3]);
  // A phase of the strides is an image of its own, which has at least one row and one pixel.
  bool hasPhases = in[1] >= op.getStrides()[0] && in[2] >= op.getStrides()[1];
  if (!hasPixels || !hasPhases || op.getScale())
    return std::nullopt;
  BoxProblem problem;
  problem.bytes = x.bytes;
  problem.images = in[0], problem.height = result[1], problem.width = result[2];
  problem.inputHeight = in[1], problem.inputWidth = in[2];
  problem.channels = in[3], problem.filters = result[3];
  problem.kernel = {op.getKernel()[0], op.getKernel()[1]};
  problem.strides = {op.getStrides()[0], op.getStrides()[1]};
  problem.dilations = {op.getDilations()[0], op.getDilations()[1]};
  problem.pads = {op.getPads()[0], op.getPads()[1]};
  problem.imageStride = in[0] == 1 ? s[1] * in[1] : s[0], problem.rowStride = s[1], problem.pixelStride = s[2];
  problem.hasInputs = epilogue.readsInputs;
  bool isPixelwise = problem.kernel == std::array<int64_t, 2>{1, 1} && problem.strides == std::array<int64_t, 2>{1, 1} &&
                     llvm::all_of(op.getPads(), [](int64_t pad) { return pad == 0; });
  problem.isFlat = isPixelwise && s[1] == s[2] * in[2] && (in[0] == 1 || s[0] == s[1] * in[1]);
  mergeRowTaps(problem, op.getPads());
  return problem;
}

/// The maps of the input, one for each phase: every stride-th row and pixel, from the first that a tap of the phase meets.
static std::vector<TensorMap> imageMaps(const BoxProblem &p, const BoxGeometry &g, const Operand &x, Type element) {
  SmallVector<int64_t, 5> box{mappedLine(p.bytes), g.pitch, g.rows, 1};
  if (p.isFlat) {
    int64_t pixels = p.images * p.inputHeight * p.inputWidth, all = p.pixelStride * pixels;
    return {{x.argument, element, x.view.offset, {p.channels, pixels, 1, 1}, {p.pixelStride, all, all}, box}};
  }
  auto first = [&](int64_t phase, int d) {
    int64_t at = phase * p.dilations[d] - p.pads[d];
    return (at % p.strides[d] + p.strides[d]) % p.strides[d];
  };
  std::vector<TensorMap> maps;
  for (int64_t py = 0; py < g.tapsY.phases; ++py)
    for (int64_t px = 0; px < g.tapsX.phases; ++px) {
      int64_t top = first(py, 0), left = first(px, 1);
      int64_t height = divideCeil(p.inputHeight - top, p.strides[0]), width = divideCeil(p.inputWidth - left, p.strides[1]);
      maps.push_back({x.argument,
                      element,
                      x.view.offset + top * p.rowStride + left * p.pixelStride,
                      {p.channels, width, height, p.images},
                      {p.pixelStride * p.strides[1], p.rowStride * p.strides[0], p.imageStride},
                      box});
    }
  return maps;
}

void AnchorPrinter::printBoxes(kern::ConvOp op, const Operand &x, const Operand &filter, const BoxProblem &p,
                               const TileChoice &tile) {
  int64_t panel = shapeOf(op.getFilter())[2], taps = p.kernel[0] * p.kernel[1];
  BoxGeometry g(tile, p);
  Type element = cast<RankedTensorType>(op.getInput().getType()).getElementType();
  Config out(kernel.getSymName().str() + "_Config", "BoxConvDefaults", elementName(op.getInput()));
  setMembers(out, {{"Batch", p.images},
                   {"H", p.inputHeight},
                   {"W", p.inputWidth},
                   {"C", p.channels},
                   {"OH", p.height},
                   {"OW", p.width},
                   {"KH", p.kernel[0]},
                   {"KW", p.kernel[1]},
                   {"StrideH", p.strides[0]},
                   {"StrideW", p.strides[1]},
                   {"DilationH", p.dilations[0]},
                   {"DilationW", p.dilations[1]},
                   {"PadTop", p.pads[0]},
                   {"PadLeft", p.pads[1]},
                   {"F", p.filters},
                   {"P", panel},
                   {"Flat", p.isFlat},
                   {"WeightsConstant", constant[filter.argument]}});
  setMembers(out, {{"Engine", int64_t(tile.engine)},
                   {"Halo", tile.box.hasBorder},
                   {"BX", tile.box.x},
                   {"BY", tile.box.y},
                   {"Boxes", tile.box.count},
                   {"WN", tile.warpsN},
                   {"Turns", tile.warpsM},
                   {"AStages", tile.stages},
                   {"BStages", tile.box.filterStages},
                   {"ResidentB", tile.box.keepsFilter},
                   {"Split", tile.split},
                   {"SharedBytes", g.sharedBytes},
                   {"V", epilogue.lanes},
                   {"Trigger", int64_t(tile.trigger)}});
  setLaunch(g.grid(tile), tile.threads(), tile.split, g.sharedBytes, tile);
  residentBlocks = tile.box.blocks;
  maps = imageMaps(p, g, x, element);
  size_t phases = maps.size();
  // Columns of a line, lines of channels, the other columns of a panel, taps, panels: a box is all that a tap and a line need.
  int64_t line = mappedLine(p.bytes), bn = tile.bn;
  maps.push_back({filter.argument,
                  element,
                  filter.view.offset,
                  {line, p.channels, panel / line, taps, int64_t(divideCeil(p.filters, panel))},
                  {panel, line, panel * p.channels, panel * p.channels * taps},
                  {line, line, std::min(panel, bn) / line, 1, std::max<int64_t>(1, bn / panel)}});
  header = "ogc/tma_conv.cuh";
  config = out.str();
  call = "ogc::convBoxes<" + kernel.getSymName().str() + "_Config>(ogc::PhaseMaps{";
  for (size_t phase = 0; phase < 4; ++phase)
    call += (phase ? ", &m" : "&m") + std::to_string(phase < phases ? phase : 0);
  call += "}, m" + std::to_string(phases) + ", " + epilogue.construct + ");";
  if (!epilogue.aheadFunctor.empty())
    epilogue.functor = epilogue.aheadFunctor;
}

} // namespace ogc::codegen
