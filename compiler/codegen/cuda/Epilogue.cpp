//===- Epilogue.cpp - what follows an anchor, as a functor ----------------===//
#include "compiler/codegen/cuda/Epilogue.h"

#include "compiler/codegen/cuda/Lanes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::codegen {

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Extra arguments of the element function: the template's indices, then one accumulator a lane.
static SmallVector<Type> extraTypes(MLIRContext *context, unsigned indices, int lanes) {
  SmallVector<Type> types(indices, IndexType::get(context));
  types.append(lanes, Float32Type::get(context));
  return types;
}

/// The code of one element at the template's indices.
static LogicalResult emitElement(kern::KernelOp kernel, Operation *anchor, bool merged, unsigned numIndices, KernelBody &body,
                                 bool &fits) {
  Location loc = kernel.getLoc();
  IndexMath &math = body.getEmitter().indices();
  ArrayRef<int64_t> shape = tensorType(anchor->getResult(0)).getShape();
  SmallVector<Value> indices;
  for (unsigned i = 0; i < numIndices; ++i) {
    if (merged && i == 1)
      indices.append(math.delinearize(loc, body.extra(1), shape.slice(1, 2)));
    else
      indices.push_back(body.extra(i));
  }
  body.getEmitter().bindScalar(anchor->getResult(0), body.extra(numIndices));
  Operation *yield = kernel.getBody().front().getTerminator();
  SmallVector<Value> values;
  SmallVector<SmallVector<Value>> positions;
  for (Value result : yield->getOperands()) {
    if (tensorType(result).getNumElements() != tensorType(anchor->getResult(0)).getNumElements()) {
      fits = false;
      return failure();
    }
    bool sameShape = tensorType(result).getShape() == shape;
    positions.push_back(sameShape ? indices
                                  : math.delinearize(loc, math.linearize(loc, indices, shape), tensorType(result).getShape()));
    values.push_back(body.getEmitter().emit(result, positions.back()));
    if (!values.back())
      return failure();
  }
  for (auto [number, value] : llvm::enumerate(values))
    memref::StoreOp::create(body.getBuilder(), loc, value, body.output(number), positions[number]);
  body.finish();
  return success();
}

/// True if everything computed from `value` takes its elements at the position of the result: element-wise operations with
/// identity maps and reshapes.
static bool staysInPlace(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<kern::YieldOp>(user))
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(user);
    bool inPlace = isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user) ||
                   (generic && generic.getNumReductionLoops() == 0 && generic.getMatchingIndexingMap(&use).isIdentity() &&
                    llvm::all_of(generic.getDpsInitsMutable(),
                                 [&](OpOperand &init) { return generic.getMatchingIndexingMap(&init).isIdentity(); }));
    if (!inPlace || !llvm::all_of(user->getResults(), staysInPlace))
      return false;
  }
  return true;
}

FailureOr<Epilogue> printEpilogue(kern::KernelOp kernel, Operation *anchor, bool merged, int mostLanes, bool &fits) {
  ArrayRef<int64_t> shape = tensorType(anchor->getResult(0)).getShape();
  unsigned numIndices = merged ? shape.size() - 1 : shape.size();
  fits = staysInPlace(anchor->getResult(0));
  if (!fits)
    return failure();
  KernelBody element(kernel, extraTypes(kernel.getContext(), numIndices, 1));
  if (failed(emitElement(kernel, anchor, merged, numIndices, element, fits)))
    return failure();

  Value innermost = element.extra(numIndices - 1), accumulator = element.extra(numIndices);
  Epilogue epilogue;
  for (epilogue.lanes = mostLanes; epilogue.lanes > 1; epilogue.lanes /= 2)
    if (shape.back() % epilogue.lanes == 0 && LaneAnalysis(element.getBlock(), innermost, accumulator, epilogue.lanes)
                                                  .canWiden(element.getBlock(), /*strictLoads=*/false))
      break;

  KernelBody body(kernel, extraTypes(kernel.getContext(), numIndices, epilogue.lanes));
  OpBuilder &b = body.getBuilder();
  SmallVector<IRMapping> mappings(epilogue.lanes);
  for (int lane = 0; lane < epilogue.lanes; ++lane) {
    mappings[lane].map(element.buffers(), body.buffers());
    for (unsigned i = 0; i + 1 < numIndices; ++i)
      mappings[lane].map(element.extra(i), body.extra(i));
    Value inner = body.extra(numIndices - 1);
    if (lane)
      inner = arith::AddIOp::create(b, kernel.getLoc(), inner, arith::ConstantIndexOp::create(b, kernel.getLoc(), lane));
    mappings[lane].map(innermost, inner);
    mappings[lane].map(accumulator, body.extra(numIndices + lane));
  }
  cloneLanes(b, element.getBlock(), LaneAnalysis(element.getBlock(), innermost, accumulator, epilogue.lanes), mappings);
  body.finish();

  CudaTypes types(needsWideIndex(kernel));
  std::string name = kernel.getSymName().str() + "_Epilogue", index = types.name(b.getIndexType()), members, parameters;
  epilogue.construct = name + "{";
  std::string text;
  llvm::raw_string_ostream os(text);
  CudaPrinter printer(os, types, 2);
  bool isFirst = true;
  for (auto [i, buffer] : llvm::enumerate(body.buffers())) {
    bool isInput = i < body.numInputs();
    if (isInput)
      printer.markReadOnly(buffer);
    if (buffer.use_empty())
      continue;
    std::string pointer = "p" + std::to_string(i);
    printer.bind(buffer, pointer);
    members += std::string("  ") + (isInput ? "const " : "") + types.name(cast<MemRefType>(buffer.getType()).getElementType()) +
               " *__restrict__ " + pointer + ";\n";
    epilogue.construct += (isFirst ? "" : ", ") + pointer;
    isFirst = false;
  }
  epilogue.construct += "}";
  for (unsigned i = 0; i < numIndices; ++i) {
    printer.bind(body.extra(i), "i" + std::to_string(i));
    parameters += index + " i" + std::to_string(i) + ", ";
  }
  for (int lane = 0; lane < epilogue.lanes; ++lane)
    printer.bind(body.extra(numIndices + lane), "acc[" + std::to_string(lane) + "]");
  if (failed(printer.printBlock(body.getBlock())))
    return failure();
  epilogue.functor = "struct " + name + " {\n" + members + "  __device__ __forceinline__ void operator()(" + parameters +
                     "const float (&acc)[" + std::to_string(epilogue.lanes) + "]) const {\n" + text + "  }\n};\n";
  return epilogue;
}

} // namespace ogc::codegen
