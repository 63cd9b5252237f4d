//===- BlockProduct.cpp - products with packed weights of few bits --------===//
//
// A row kernel whose reduction is marked `ogc.block_product` by the lowering is a call of device/nbits.cuh, when its operands lie
// in their buffers as the template reads them.
//
#include "compiler/analysis/StridedView.h"
#include "compiler/codegen/cuda/Epilogue.h"
#include "compiler/dialect/kern/Kern.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ogc::codegen {

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

namespace {

/// An operand in its buffer: rows of elements that follow each other.
struct Matrix {
  unsigned argument = 0;
  int64_t rowStride = 0;
  Type element;

  std::string pointer() const { return "p" + std::to_string(argument); }
};

/// The operand as a matrix at the begin of a kernel argument; nothing when it lies otherwise.
std::optional<Matrix> matrixOf(kern::KernelOp kernel, Value value) {
  StridedView view = resolveStridedView(value);
  auto argument = dyn_cast<BlockArgument>(view.root);
  if (!argument || argument.getOwner() != &kernel.getBody().front() || view.offset != 0 || view.strides.size() != 2)
    return std::nullopt;
  ArrayRef<int64_t> shape = shapeOf(value);
  if (shape[1] != 1 && view.strides[1] != 1)
    return std::nullopt;
  return Matrix{argument.getArgNumber(), shape[0] == 1 ? shape[1] : view.strides[0],
                cast<RankedTensorType>(value.getType()).getElementType()};
}

linalg::GenericOp findProduct(kern::KernelOp kernel) {
  linalg::GenericOp found;
  for (auto generic : kernel.getBody().front().getOps<linalg::GenericOp>()) {
    if (generic.getNumReductionLoops() == 0)
      continue;
    if (found)
      return {}; // another reduction: a row kernel
    found = generic;
  }
  return found && found->hasAttr("ogc.block_product") ? found : linalg::GenericOp();
}

} // namespace

FailureOr<KernelText> printBlockProduct(kern::KernelOp kernel, CudaArch arch, bool &fits) {
  fits = false;
  linalg::GenericOp product = findProduct(kernel);
  auto numbers = product ? product->getAttrOfType<DenseI64ArrayAttr>("ogc.block_product") : DenseI64ArrayAttr();
  if (!numbers || numbers.size() != 3 || arch.major < 8)
    return failure();
  int64_t bits = numbers[0], block = numbers[1], hasZeros = numbers[2], perByte = 8 / bits;
  SmallVector<Value> operands(product.getDpsInputs());
  if (static_cast<int64_t>(operands.size()) != 2 + hasZeros + perByte)
    return failure();
  std::optional<Matrix> weights = matrixOf(kernel, operands[0]), scales = matrixOf(kernel, operands[1]),
                        zeros = hasZeros ? matrixOf(kernel, operands[2]) : scales, x = matrixOf(kernel, operands[2 + hasZeros]);
  if (!weights || !scales || !zeros || !x)
    return failure();
  int64_t m = shapeOf(product.getResult(0))[0], n = shapeOf(product.getResult(0))[1], k = shapeOf(operands[2 + hasZeros])[1];
  int64_t rowBytes = k / perByte, blocks = k / block;
  bool isDense = weights->rowStride == rowBytes && scales->rowStride == blocks && zeros->rowStride == blocks;
  if (!isDense || rowBytes % 4 != 0 || block % (4 * perByte) != 0 || m * n == 0)
    return failure();
  FailureOr<Epilogue> epilogue = printEpilogue(kernel, product, /*merged=*/false, /*mostLanes=*/1, fits);
  if (failed(epilogue))
    return failure();
  CudaTypes types(needsWideIndex(kernel));
  FailureOr<std::string> parameters = parameterList(kernel, types);
  if (failed(parameters))
    return failure();

  // Rows share the loads of weights, columns those of x.
  int64_t rows = std::min<int64_t>(m, 8), columns = rows <= 2 && n >= 4096 ? 2 : 1, warps = 4;
  int64_t elementBytes = cudaElementBytes(x->element), vector = std::min<int64_t>(8, 16 / elementBytes);
  SmallVector<bool> constant = constantArguments(kernel);
  std::string name = kernel.getSymName().str() + "_Config",
              text = "struct " + name + " : ogc::NBitsDefaults {\n  using Element = " + types.name(x->element) + ";\n  enum { ";
  auto set = [&](StringRef member, int64_t value) { text += (member + " = " + Twine(value) + ", ").str(); };
  set("M", m), set("N", n), set("K", k), set("Bits", bits), set("Block", block), set("HasZeros", hasZeros);
  set("DefaultZero", int64_t(1) << (bits - 1)), set("Rows", rows), set("Columns", columns), set("Warps", warps);
  set("XSm", x->rowStride), set("VecX", x->rowStride % vector == 0 ? 8 : 1), set("WeightsConstant", constant[weights->argument]);
  text += "};\n};\n";
  int64_t grid = llvm::divideCeil(n, columns * warps) * llvm::divideCeil(m, rows);
  KernelText result = startText(kernel);
  result.headers = {"ogc/memory.cuh", "ogc/scalar.cuh", "ogc/nbits.cuh"};
  result.launch = {uint32_t(grid), uint32_t(32 * warps), 1, 0};
  result.cost = 3;
  result.source = text + epilogue->functor + "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(32 * warps) +
                  ") " + result.name + "(" + *parameters + ") {\n  ogc::nbits<" + name + ">(" + x->pointer() + ", " +
                  weights->pointer() + ", " + scales->pointer() + ", " + zeros->pointer() + ", " + epilogue->construct +
                  ");\n}\n";
  return result;
}

} // namespace ogc::codegen
