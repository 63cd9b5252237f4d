//===- Window.cpp ---------------------------------------------------------===//
#include "compiler/passes/lower/Window.h"

using namespace mlir;

namespace ogc::lower {

/// SAME_UPPER and SAME_LOWER: out = ceil(in / stride); an odd padding has its larger half at the end or at the beginning.
static void samePadding(Window &w, bool upper) {
  for (size_t d = 0; d < w.rank(); ++d) {
    int64_t out = (w.in[d] + w.strides[d] - 1) / w.strides[d];
    int64_t total = std::max<int64_t>((out - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1 - w.in[d], 0);
    w.padBegin[d] = upper ? total / 2 : total - total / 2;
    w.padEnd[d] = total - w.padBegin[d];
  }
}

LogicalResult checkBias(Node &n, int i, int64_t filters) {
  if (!n.has(i) || n.inShape(i) == ArrayRef<int64_t>(filters))
    return success();
  return n.fail("bias has " + Twine(numElements(n.inShape(i))) + " elements, expected one for each of " + Twine(filters) +
                " filters");
}

FailureOr<Window> readWindow(Node &n, ArrayRef<int64_t> kernel, ArrayRef<int64_t> spatialIn, ArrayRef<int64_t> spatialOut) {
  size_t rank = spatialIn.size();
  Shape ones(rank, 1), zeros(2 * rank, 0);
  Window w;
  w.in.assign(spatialIn.begin(), spatialIn.end());
  w.out.assign(spatialOut.begin(), spatialOut.end());
  w.kernel = n.op.getI64s("kernel_shape", kernel);
  w.strides = n.op.getI64s("strides", ones);
  w.dilations = n.op.getI64s("dilations", ones);
  Shape pads = n.op.getI64s("pads", zeros);
  // The importer may fill in empty lists for attributes without a default.
  for (Shape *list : {&w.strides, &w.dilations})
    if (list->empty())
      *list = ones;
  if (pads.empty())
    pads = zeros;
  // Inference leaves spatial dimensions out where a ConvTranspose asks for less than its input has.
  if (spatialOut.size() != rank)
    return n.fail("the result has " + Twine(spatialOut.size()) + " spatial dimensions, expected " + Twine(rank) +
                  (n.op.findI64s("output_shape") ? ": output_shape must not be less than the input's" : ""));
  if (w.kernel.size() != rank || w.strides.size() != rank || w.dilations.size() != rank || pads.size() != 2 * rank)
    return n.fail("kernel_shape, strides, dilations or pads do not fit " + Twine(rank) + " spatial dimensions");
  for (size_t d = 0; d < rank; ++d)
    if (w.kernel[d] < 1 || w.strides[d] < 1 || w.dilations[d] < 1)
      return n.fail("kernel_shape, strides and dilations must be positive");
  if (llvm::any_of(pads, [](int64_t p) { return p < 0; }))
    return n.fail("pads must not be negative");
  w.padBegin.assign(pads.begin(), pads.begin() + rank);
  w.padEnd.assign(pads.begin() + rank, pads.end());
  StringRef autoPad = n.op.getStr("auto_pad", "NOTSET");
  if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER")
    samePadding(w, autoPad == "SAME_UPPER");
  else if (autoPad == "VALID")
    w.padBegin.assign(rank, 0), w.padEnd.assign(rank, 0);
  else if (autoPad != "NOTSET" && !autoPad.empty())
    return n.fail("auto_pad is '" + autoPad + "', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  return w;
}

Value padWindow(Node &n, Value v, const Window &window, size_t leading, Value scalar) {
  Shape low(leading, 0), high(leading, 0);
  for (size_t d = 0; d < window.rank(); ++d) {
    low.push_back(window.padBegin[d]);
    high.push_back(window.neededEnd(d));
  }
  return pad(n.b, v, low, high, scalar);
}

SmallVector<AffineExpr> windowExprs(MLIRContext *context, const Window &window, unsigned firstOut, unsigned firstKernel) {
  SmallVector<AffineExpr> exprs;
  for (unsigned d = 0; d < window.rank(); ++d) {
    AffineExpr o = getAffineDimExpr(firstOut + d, context), k = getAffineDimExpr(firstKernel + d, context);
    exprs.push_back(o * window.strides[d] + k * window.dilations[d]);
  }
  return exprs;
}

} // namespace ogc::lower
