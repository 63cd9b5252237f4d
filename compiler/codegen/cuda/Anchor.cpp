//===- Anchor.cpp - calls of the hand-written templates -------------------===//
//
// A kernel with an anchor is a configuration (a struct of enum members), an epilogue functor and an entry that calls the template
// with the operands' pointers; see device/README.md.
//
#include "compiler/codegen/cuda/AnchorPrinter.h"
#include "compiler/dialect/kern/RowNorm.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using llvm::divideCeil;

namespace ogc::codegen {

std::optional<Operand> AnchorPrinter::resolve(StridedView view) {
  Operand operand;
  operand.view = std::move(view);
  auto argument = dyn_cast<BlockArgument>(operand.view.root);
  if (!argument || argument.getOwner() != &kernel.getBody().front())
    return std::nullopt;
  operand.argument = argument.getArgNumber();
  operand.bytes = cudaElementBytes(cast<RankedTensorType>(argument.getType()).getElementType());
  return operand;
}

bool AnchorPrinter::isDense(Value value, const Operand &operand) {
  int64_t expected = 1;
  for (auto [extent, stride] : llvm::reverse(llvm::zip_equal(shapeOf(value), operand.view.strides))) {
    if (extent != 1 && stride != expected)
      return false;
    expected *= extent;
  }
  return operand.view.offset * operand.bytes % 16 == 0;
}

void AnchorPrinter::setTile(Config &out, const TileProblem &problem, const TileChoice &tile) {
  int64_t sharedBytes = tile.sharedBytes(problem);
  for (auto [name, value] : {std::pair<StringRef, int64_t>{"BM", tile.bm},
                             {"BN", tile.bn},
                             {"BK", tile.bk},
                             {"WM", tile.warpsM},
                             {"WN", tile.warpsN},
                             {"WK", tile.warpsK},
                             {"Engine", int64_t(tile.engine)},
                             {"Stages", tile.stages},
                             {"Split", tile.split},
                             {"SharedBytes", sharedBytes},
                             {"V", epilogue.lanes},
                             {"Trigger", int64_t(tile.trigger)}})
    out.set(name, value);
  setLaunch(int64_t(tile.split) * divideCeil(problem.n, tile.bn) * divideCeil(problem.m, tile.bm) * problem.batch, tile.threads(),
            tile.split, sharedBytes, tile);
}

/// True for a right operand whose elements lie along k, not n.
static bool isTransposed(kern::MatmulOp op, const Operand &b) {
  return !op.getPacked() && b.view.strides[op.getTransposeRhs() ? 2 : 1] == 1 &&
         b.view.strides[op.getTransposeRhs() ? 1 : 2] != 1;
}

TileProblem AnchorPrinter::problemOf(kern::MatmulOp op, const Operand &a, const Operand &b) {
  ArrayRef<int64_t> lhs = shapeOf(op.getLhs()), s = a.view.strides;
  int vecA = a.vector(s[2], {lhs[0] == 1 ? 0 : s[0], s[1]});
  TileProblem problem{lhs[0], lhs[1], shapeOf(op.getResult())[2], lhs[2], a.bytes, isTransposed(op, b), vecA * a.bytes < 4};
  std::optional<kern::RowNorm> norm = kern::rowNormOf(op);
  problem.rowSums = norm ? norm->kind : 0;
  return problem;
}

TileProblem AnchorPrinter::problemOf(kern::ConvOp op, const Operand &x) {
  ArrayRef<int64_t> in = shapeOf(op.getInput()), result = shapeOf(op.getResult()), s = x.view.strides;
  int vecA = x.vector(1, {in[0] == 1 ? 0 : s[0], s[1], s[2]}, in[3]);
  return {in[0],
          result[1] * result[2],
          result[3],
          op.getKernel()[0] * op.getKernel()[1] * in[3],
          x.bytes,
          /*transposed=*/false,
          /*isNarrow=*/vecA * x.bytes < 4,
          /*isScaled=*/op.getScale() != nullptr};
}

/// One pixel of a pooled image: a row by a matrix.
bool AnchorPrinter::isGemv(kern::ConvOp op, const TileProblem &problem) const {
  ArrayRef<int64_t> in = shapeOf(op.getInput());
  return in[1] * in[2] * problem.m == 1 && !op.getScale() && problem.k == in[3] && takesGemv(problem, in[0], arch);
}

int AnchorPrinter::mostLanes(Operation *anchor) {
  auto elementsOf16Bytes = [](Value value) { return std::min(8, 16 / elementBytes(value)); };
  // A thread sums the accumulators of a streamed product over all warps, so it gets as few as it can.
  if (auto op = dyn_cast<kern::MatmulOp>(anchor)) {
    std::optional<Operand> a = resolve(op.getLhs()), b = resolve(op.getRhs());
    TileProblem problem = a && b ? problemOf(op, *a, *b) : TileProblem();
    return a && b && takesGemv(problem, problem.m, arch) ? 1 : elementsOf16Bytes(op.getLhs());
  }
  if (auto op = dyn_cast<kern::ConvOp>(anchor)) {
    std::optional<Operand> x = resolve(op.getInput());
    return x && isGemv(op, problemOf(op, *x)) ? 1 : elementsOf16Bytes(op.getInput());
  }
  // Few results of few query rows: two each keep more threads busy.
  if (auto op = dyn_cast<kern::AttentionOp>(anchor))
    return takesDecode(problemOf(op), newRowsOf(op), arch) ? 2 : 8;
  auto depthwise = dyn_cast<kern::DepthwiseConvOp>(anchor);
  return depthwise ? channelLanes(depthwise) : 8;
}

int AnchorPrinter::vectorOfB(kern::MatmulOp op, const Operand &b) {
  if (op.getPacked())
    return 16 / b.bytes;
  int64_t sb = shapeOf(op.getRhs())[0] == 1 ? 0 : b.view.strides[0];
  int64_t sk = b.view.strides[op.getTransposeRhs() ? 2 : 1], sn = b.view.strides[op.getTransposeRhs() ? 1 : 2];
  return isTransposed(op, b) ? b.vector(sk, {sb, sn}) : b.vector(sn, {sb, sk});
}

void AnchorPrinter::setB(Config &out, kern::MatmulOp op, const Operand &b) {
  out.set("WeightsConstant", constant[b.argument]);
  if (op.getPacked()) {
    out.set("BLayout", 0);
    out.set("P", shapeOf(op.getRhs())[2]);
    out.set("VecB", vectorOfB(op, b));
    return;
  }
  int64_t sb = shapeOf(op.getRhs())[0] == 1 ? 0 : b.view.strides[0];
  int64_t sk = b.view.strides[op.getTransposeRhs() ? 2 : 1], sn = b.view.strides[op.getTransposeRhs() ? 1 : 2];
  out.set("BLayout", isTransposed(op, b) ? 2 : 1);
  out.set("BSb", sb);
  out.set("BSk", sk);
  out.set("BSn", sn);
  out.set("VecB", vectorOfB(op, b));
}

/// Sets what the rows are divided by, if anything.
static void setNorm(Config &out, kern::MatmulOp op) {
  std::optional<kern::RowNorm> norm = kern::rowNormOf(op);
  if (!norm)
    return;
  out.set("Norm", norm->kind);
  out.set("Epsilon", int32_t(norm->epsilon.getValue().bitcastToAPInt().getZExtValue())); // a struct's enum has no floats
}

LogicalResult AnchorPrinter::printMatmul(kern::MatmulOp op) {
  std::optional<Operand> a = resolve(op.getLhs()), b = resolve(op.getRhs());
  if (!a || !b || (op.getPacked() && !isDense(op.getRhs(), *b)))
    return unfit();
  TileProblem problem = problemOf(op, *a, *b);
  auto [batch, m, n, k] = std::array{problem.batch, problem.m, problem.n, problem.k};
  ArrayRef<int64_t> s = a->view.strides;
  int64_t sb = batch == 1 ? 0 : s[0];
  int vecA = a->vector(s[2], {sb, s[1]});
  problem.rowBytes = epilogue.rowBytes, problem.wholeColumns = epilogue.wholeColumns;
  problem.isMappable = op.getPacked() && takesBoxes(op.getLhs(), op.getMath(), shapeOf(op.getRhs())[2]) &&
                       a->isMappable(s[2], a->movingStrides(shapeOf(op.getLhs())));
  if (takesGemv(problem, m, arch))
    return printGemv(
        op.getLhs(), *a, {sb, s[1], s[2]}, *b,
        op.getPacked() ? "panels" + std::to_string(shapeOf(op.getRhs())[2]) : std::string("rows"),
        [&](Config &out) {
          setB(out, op, *b);
          setNorm(out, op);
        },
        vectorOfB(op, *b), op.getPacked() ? shapeOf(op.getRhs())[2] : 64, problem);
  if (kern::rowNormOf(op)) // kern::canNormalizeRows keeps it from this
    return unfit();
  StringRef layout = op.getPacked() ? "panels" : problem.transposed ? "transposed" : "rows";
  std::string name = "gemm " + productName(op.getLhs(), op.getMath()) + " " + join({batch, m, n, k}) + " " + layout.str() + " a" +
                     std::to_string(vecA);
  TileChoice tile = chooseTile(problem, arch, name, tuning);
  if (tile.engine == Engine::TensorMaps) {
    printMapped(op.getLhs(), *a, {sb, s[1]}, *b, shapeOf(op.getRhs())[2], problem, tile);
    return success();
  }
  Config out(kernel.getSymName().str() + "_Config", "GemmDefaults", elementName(op.getLhs()));
  for (auto [name, value] : {std::pair<StringRef, int64_t>{"Batch", batch},
                             {"M", m},
                             {"N", n},
                             {"K", k},
                             {"ASb", sb},
                             {"ASm", s[1]},
                             {"ASk", s[2]},
                             {"VecA", vecA}})
    out.set(name, value);
  setB(out, op, *b);
  setProducts(out, *a, op.getMath());
  setTile(out, problem, tile);
  header = "ogc/gemm.cuh";
  config = out.str();
  call = "ogc::gemm<" + kernel.getSymName().str() + "_Config>(" + a->pointer() + ", " + b->pointer() + ", " + epilogue.construct +
         ");";
  return success();
}

void AnchorPrinter::printMapped(Value lhs, const Operand &rows, std::array<int64_t, 2> strides, const Operand &panels,
                                int64_t panel, const TileProblem &problem, const TileChoice &tile) {
  auto [batch, m, n, k] = std::array{problem.batch, problem.m, problem.n, problem.k};
  Config out(kernel.getSymName().str() + "_Config", "GemmDefaults", elementName(lhs));
  for (auto [name, value] : {std::pair<StringRef, int64_t>{"Batch", batch},
                             {"M", m},
                             {"N", n},
                             {"K", k},
                             {"P", panel},
                             {"WeightsConstant", constant[panels.argument]}})
    out.set(name, value);
  setTile(out, problem, tile);
  // One box takes the rows of a stage, of as many lines of k as it has. A line that is not full is cut short.
  Type element = cast<RankedTensorType>(lhs.getType()).getElementType();
  int64_t line = mappedLine(rows.bytes);
  bool isWhole = k % line == 0;
  maps.push_back({rows.argument,
                  element,
                  rows.view.offset,
                  {isWhole ? line : k, m, isWhole ? k / line : 1, batch},
                  {strides[1], line, batch == 1 ? strides[1] * m : strides[0]},
                  {line, tile.bm, isWhole ? tile.bk / line : 1, 1}});
  maps.push_back({panels.argument,
                  element,
                  panels.view.offset,
                  {panel, k, int64_t(divideCeil(n, panel))},
                  {panel, panel * k},
                  {line, tile.bk, 1}});
  header = "ogc/gemm.cuh";
  config = out.str();
  call = "ogc::gemm<" + kernel.getSymName().str() + "_Config>(m0, m1, " + epilogue.construct + ");";
  if (!epilogue.aheadFunctor.empty())
    epilogue.functor = epilogue.aheadFunctor;
}

LogicalResult AnchorPrinter::printGemv(Value lhs, const Operand &a, std::array<int64_t, 3> strides, const Operand &b,
                                       StringRef layout, llvm::function_ref<void(Config &)> setB, int vecB, int64_t panel,
                                       const TileProblem &problem) {
  auto [batch, m, n, k] = std::array{problem.batch, problem.m, problem.n, problem.k};
  std::string name = "gemv " + plainName(lhs) + " " + join({batch, m, n, k}) + " " + layout.str();
  GemvChoice choice = chooseGemv(problem, vecB, panel, arch, name, tuning);
  int64_t sharedBytes = choice.sharedBytes(problem);
  Config out(kernel.getSymName().str() + "_Config", "GemvDefaults", elementName(lhs));
  for (auto [name, value] : {std::pair<StringRef, int64_t>{"Batch", batch},
                             {"M", m},
                             {"N", n},
                             {"K", k},
                             {"ASb", strides[0]},
                             {"ASm", strides[1]},
                             {"ASk", strides[2]},
                             {"BN", choice.bn},
                             {"Warps", choice.warps},
                             {"Depth", choice.depth},
                             {"Split", choice.split},
                             {"V", epilogue.lanes},
                             {"SharedBytes", sharedBytes},
                             {"Trigger", int64_t(choice.trigger)}})
    out.set(name, value);
  setB(out);
  header = "ogc/gemv.cuh";
  config = out.str();
  call = "ogc::gemv<" + kernel.getSymName().str() + "_Config>(" + a.pointer() + ", " + b.pointer() + ", " + epilogue.construct +
         ");";
  if (!epilogue.aheadFunctor.empty())
    epilogue.functor = epilogue.aheadFunctor;
  setLaunch(choice.split * divideCeil(n, choice.bn) * batch, 32 * choice.warps, choice.split, sharedBytes, choice);
  residentBlocks = choice.residentBlocks(problem);
  return success();
}

/// "1x56x56x64>1x56x56x64 k3x3 s1x1 d1x1": the name of a convolution's problem.
static std::string windowName(ArrayRef<int64_t> in, ArrayRef<int64_t> result, ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides,
                              ArrayRef<int64_t> dilations) {
  return join(in) + ">" + join(result) + " k" + join(kernel) + " s" + join(strides) + " d" + join(dilations);
}

/// The members that convolutions of both kinds share.
static void setImage(Config &out, ArrayRef<int64_t> in, ArrayRef<int64_t> result, ArrayRef<int64_t> kernel,
                     ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations, ArrayRef<int64_t> pads, const Operand &x) {
  ArrayRef<int64_t> s = x.view.strides;
  for (auto [name, value] : {std::pair<StringRef, int64_t>{"Batch", in[0]},
                             {"H", in[1]},
                             {"W", in[2]},
                             {"C", in[3]},
                             {"OH", result[1]},
                             {"OW", result[2]},
                             {"KH", kernel[0]},
                             {"KW", kernel[1]},
                             {"StrideH", strides[0]},
                             {"StrideW", strides[1]},
                             {"DilationH", dilations[0]},
                             {"DilationW", dilations[1]},
                             {"PadTop", pads[0]},
                             {"PadLeft", pads[1]},
                             {"XSb", in[0] == 1 ? 0 : s[0]},
                             {"XSh", s[1]},
                             {"XSw", s[2]}})
    out.set(name, value);
}

LogicalResult AnchorPrinter::printConv(kern::ConvOp op) {
  std::optional<Operand> x = resolve(op.getInput()), filter = resolve(op.getFilter());
  ArrayRef<int64_t> in = shapeOf(op.getInput()), result = shapeOf(op.getResult());
  if (!x || !filter || !isDense(op.getFilter(), *filter) || (in[3] != 1 && x->view.strides[3] != 1))
    return unfit();
  ArrayRef<int64_t> s = x->view.strides;
  int vecA = x->vector(1, {in[0] == 1 ? 0 : s[0], s[1], s[2]}, in[3]);
  std::optional<Operand> scale = op.getScale() ? resolve(op.getScale()) : Operand();
  if (!scale || (op.getScale() && in[3] != 1 && scale->view.strides[3] != 1))
    return unfit();
  TileProblem problem = problemOf(op, *x);
  auto setPanels = [&](Config &out) {
    out.set("P", shapeOf(op.getFilter())[2]);
    out.set("WeightsConstant", constant[filter->argument]);
  };
  if (isGemv(op, problem))
    return printGemv(
        op.getInput(), *x, {in[0] == 1 ? 0 : s[0], 0, 1}, *filter, "panels" + std::to_string(shapeOf(op.getFilter())[2]),
        [&](Config &out) {
          out.set("BLayout", 0);
          out.set("VecB", 16 / filter->bytes);
          setPanels(out);
        },
        16 / filter->bytes, shapeOf(op.getFilter())[2], problem);
  std::string name = "conv " + productName(op.getInput(), op.getMath()) + " " +
                     windowName(in, result, op.getKernel(), op.getStrides(), op.getDilations()) + " a" + std::to_string(vecA);
  // A filter of one tap that meets every pixel: the pixels are rows of a matrix.
  int64_t panel = shapeOf(op.getFilter())[2], sb = in[0] == 1 ? 0 : s[0];
  auto isOne = [](int64_t x) { return x == 1; };
  auto isZero = [](int64_t x) { return x == 0; };
  bool isPixelwise = !op.getScale() && problem.k == in[3] && llvm::all_of(op.getStrides(), isOne) &&
                     llvm::all_of(op.getPads(), isZero) && s[1] == s[2] * in[2];
  problem.isMappable = isPixelwise && takesBoxes(op.getInput(), op.getMath(), panel) && x->isMappable(s[3], x->movingStrides(in));
  problem.boxes = boxProblemOf(op, *x);
  problem.rowBytes = epilogue.rowBytes;
  TileChoice tile = chooseTile(problem, arch, name, tuning);
  if (tile.engine == Engine::Boxes) {
    printBoxes(op, *x, *filter, *problem.boxes, tile);
    return success();
  }
  if (tile.engine == Engine::TensorMaps) {
    printMapped(op.getInput(), *x, {sb, s[2]}, *filter, panel, problem, tile);
    return success();
  }
  Config out(kernel.getSymName().str() + "_Config", "ConvDefaults", elementName(op.getInput()));
  setImage(out, in, result, op.getKernel(), op.getStrides(), op.getDilations(), op.getPads(), *x);
  out.set("F", result[3]);
  setPanels(out);
  out.set("VecA", vecA);
  setProducts(out, *x, op.getMath());
  if (op.getScale()) {
    out.set("Scaled", 1);
    out.set("SSb", in[0] == 1 ? 0 : scale->view.strides[0]);
  }
  setTile(out, problem, tile);
  header = "ogc/conv.cuh";
  config = out.str();
  call = "ogc::conv<" + kernel.getSymName().str() + "_Config>(" + x->pointer() + ", " + filter->pointer() + ", " +
         epilogue.construct + (op.getScale() ? ", " + scale->pointer() : "") + ");";
  return success();
}

int AnchorPrinter::channelLanes(kern::DepthwiseConvOp op) {
  std::optional<Operand> x = resolve(op.getInput()), filter = resolve(op.getFilter());
  if (!x || !filter)
    return 1;
  ArrayRef<int64_t> in = shapeOf(op.getInput()), s = x->view.strides;
  int width = x->vector(1, {in[0] == 1 ? 0 : s[0], s[1], s[2]}, in[3]);
  while (filter->view.offset % width != 0)
    width /= 2;
  // Large filters are bound by latency: rather more threads than wider loads.
  ArrayRef<int64_t> result = shapeOf(op.getResult()), taps = shapeOf(op.getFilter());
  auto blocks = [&] { return divideCeil(result[0] * result[1] * result[2] * (result[3] / width), DepthwiseChoice().threads); };
  while (width > 2 && taps[0] * taps[1] > 9 && blocks() < 132)
    width /= 2;
  return width;
}

LogicalResult AnchorPrinter::printDepthwise(kern::DepthwiseConvOp op) {
  std::optional<Operand> x = resolve(op.getInput()), filter = resolve(op.getFilter());
  ArrayRef<int64_t> in = shapeOf(op.getInput()), result = shapeOf(op.getResult());
  if (!x || !filter || !isDense(op.getFilter(), *filter) || (in[3] != 1 && x->view.strides[3] != 1))
    return unfit();
  Config out(kernel.getSymName().str() + "_Config", "DepthwiseDefaults", elementName(op.getInput()));
  setImage(out, in, result, shapeOf(op.getFilter()).take_front(2), op.getStrides(), op.getDilations(), op.getPads(), *x);
  std::string name = "depthwise " + plainName(op.getInput()) + " " +
                     windowName(in, result, shapeOf(op.getFilter()).take_front(2), op.getStrides(), op.getDilations()) + " v" +
                     std::to_string(epilogue.lanes);
  DepthwiseChoice choice = chooseDepthwise(name, tuning);
  out.set("V", epilogue.lanes);
  out.set("Threads", choice.threads);
  out.set("WeightsConstant", constant[filter->argument]);
  out.set("Trigger", int64_t(choice.trigger));
  header = "ogc/depthwise.cuh";
  config = out.str();
  call = "ogc::depthwise<" + kernel.getSymName().str() + "_Config>(" + x->pointer() + ", " + filter->pointer() + ", " +
         epilogue.construct + ");";
  int64_t work = result[0] * result[1] * result[2] * (result[3] / epilogue.lanes);
  setLaunch(divideCeil(work, choice.threads), choice.threads, 1, 0, choice);
  return success();
}

FailureOr<KernelText> AnchorPrinter::print(Operation *anchor) {
  bool merged = isa<kern::ConvOp, kern::DepthwiseConvOp>(anchor);
  FailureOr<Epilogue> printed = printEpilogue(kernel, anchor, merged, mostLanes(anchor), fits);
  if (failed(printed))
    return failure();
  epilogue = std::move(*printed);
  LogicalResult done = TypeSwitch<Operation *, LogicalResult>(anchor)
                           .Case([&](kern::MatmulOp op) { return printMatmul(op); })
                           .Case([&](kern::ConvOp op) { return printConv(op); })
                           .Case([&](kern::DepthwiseConvOp op) { return printDepthwise(op); })
                           .Case([&](kern::AttentionOp op) { return printAttention(op); })
                           .Default([&](Operation *) { return unfit(); });
  FailureOr<std::string> parameters = failed(done) ? FailureOr<std::string>(failure()) : parameterList(kernel, types);
  if (failed(parameters))
    return failure();
  KernelText text = startText(kernel);
  text.headers = {"ogc/memory.cuh", "ogc/scalar.cuh", header};
  text.launch = launch;
  text.tensorMaps = std::move(maps);
  for (size_t i = 0; i < text.tensorMaps.size(); ++i)
    *parameters += ", const __grid_constant__ ogc::TensorMap m" + std::to_string(i);
  text.cost = 4;
  std::string cluster = launch.cluster > 1 ? "__cluster_dims__(" + std::to_string(launch.cluster) + ", 1, 1) " : "";
  text.source = config + operands + epilogue.functor + "extern \"C\" __global__ void " + cluster + "__launch_bounds__(" +
                std::to_string(launch.block) + (residentBlocks > 1 ? ", " + std::to_string(residentBlocks) : "") + ") " +
                text.name + "(" + *parameters + ") {\n  " + call + "\n}\n";
  return text;
}

FailureOr<KernelText> printAnchor(kern::KernelOp kernel, CudaArch arch, Tuning &tuning, bool &fits) {
  Operation *anchor = kern::findAnchor(kernel.getBody().front());
  // Tensor core instructions and asynchronous copies as the templates use them begin with sm_80; no element, no template.
  fits = anchor && arch.major >= 8;
  for (Value value : fits ? ValueRange(anchor->getOperands()) : ValueRange())
    fits &= !llvm::is_contained(shapeOf(value), 0);
  if (!fits)
    return failure();
  FailureOr<KernelText> text = AnchorPrinter(kernel, arch, tuning, fits).print(anchor);
  if (!fits)
    mlir::emitWarning(kernel.getLoc()) << "kernel '" << kernel.getSymName() << "': operands or results of '" << anchor->getName()
                                       << "' do not fit the template, it becomes scalar code (ONNX node "
                                       << nodeNames(kernel.getLoc()) << ")";
  return text;
}

} // namespace ogc::codegen
