//===- Epilogue.cpp - what follows an anchor, as a functor ----------------===//
#include "compiler/codegen/cuda/Epilogue.h"

#include "compiler/analysis/InterleavedParts.h"
#include "compiler/codegen/cuda/Lanes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::codegen {

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Extra arguments of the element function: the template's indices, then the accumulators.
static SmallVector<Type> extraTypes(MLIRContext *context, unsigned indices, int64_t accumulators) {
  SmallVector<Type> types(indices, IndexType::get(context));
  types.append(accumulators, Float32Type::get(context));
  return types;
}

namespace {

/// What the elements behind an anchor are counted by: its result, or one of the parts that it is read in.
struct Domain {
  Value result;
  InterleavedParts split;
  SmallVector<int64_t> shape;

  explicit Domain(Operation *anchor) : result(anchor->getResult(0)), split(interleavedParts(result)) {
    llvm::append_range(shape, tensorType(result).getShape());
    shape.back() /= split.count;
  }
  int64_t elements() const { return tensorType(result).getNumElements() / split.count; }
  /// `accumulators`: one for each part, or that of the result.
  void bind(ElementEmitter &emitter, ValueRange accumulators) const {
    if (split.count == 1)
      emitter.bindScalar(result, accumulators.front());
    for (const InterleavedParts::Part &part : split.parts)
      emitter.bindScalar(part.value, accumulators[part.number]);
  }
};

} // namespace

/// The code of one element at the template's indices.
static LogicalResult emitElement(kern::KernelOp kernel, const Domain &domain, bool merged, unsigned numIndices, KernelBody &body,
                                 bool &fits) {
  Location loc = kernel.getLoc();
  IndexMath &math = body.getEmitter().indices();
  ArrayRef<int64_t> shape = domain.shape;
  SmallVector<Value> indices;
  for (unsigned i = 0; i < numIndices; ++i) {
    if (merged && i == 1)
      indices.append(math.delinearize(loc, body.extra(1), shape.slice(1, 2)));
    else
      indices.push_back(body.extra(i));
  }
  domain.bind(body.getEmitter(), body.extras(numIndices, domain.split.count));
  Operation *yield = kernel.getBody().front().getTerminator();
  SmallVector<Value> values;
  SmallVector<SmallVector<Value>> positions;
  for (Value result : yield->getOperands()) {
    if (tensorType(result).getNumElements() != domain.elements()) {
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
  Domain domain(anchor);
  int parts = static_cast<int>(domain.split.count);
  unsigned numIndices = merged ? domain.shape.size() - 1 : domain.shape.size();
  fits = parts <= mostLanes && (parts == 1 ? staysInPlace(domain.result) : llvm::all_of(domain.split.parts, [](const auto &part) {
           return staysInPlace(part.value);
         }));
  if (!fits)
    return failure();
  KernelBody element(kernel, extraTypes(kernel.getContext(), numIndices, parts));
  if (failed(emitElement(kernel, domain, merged, numIndices, element, fits)))
    return failure();

  Value innermost = element.extra(numIndices - 1);
  ValueRange accumulators = element.extras(numIndices, parts);
  int lanes = mostLanes / parts;
  for (; lanes > 1; lanes /= 2)
    if (domain.shape.back() % lanes == 0 &&
        LaneAnalysis(element.getBlock(), innermost, accumulators, lanes).canWiden(element.getBlock(), /*strictLoads=*/false))
      break;
  Epilogue epilogue;
  epilogue.lanes = lanes * parts;

  KernelBody body(kernel, extraTypes(kernel.getContext(), numIndices, epilogue.lanes));
  OpBuilder &b = body.getBuilder();
  SmallVector<IRMapping> mappings(lanes);
  for (int lane = 0; lane < lanes; ++lane) {
    mappings[lane].map(element.buffers(), body.buffers());
    for (unsigned i = 0; i + 1 < numIndices; ++i)
      mappings[lane].map(element.extra(i), body.extra(i));
    Value inner = body.extra(numIndices - 1);
    if (lane)
      inner = arith::AddIOp::create(b, kernel.getLoc(), inner, arith::ConstantIndexOp::create(b, kernel.getLoc(), lane));
    mappings[lane].map(innermost, inner);
    mappings[lane].map(accumulators, body.extras(numIndices + lane * parts, parts));
  }
  cloneLanes(b, element.getBlock(), LaneAnalysis(element.getBlock(), innermost, accumulators, lanes), mappings);
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
    std::string name = "i" + std::to_string(i);
    parameters += index + " " + name + ", ";
    // Columns are counted within a part.
    printer.bind(body.extra(i), i + 1 == numIndices && parts > 1 ? "(" + name + " / " + std::to_string(parts) + ")" : name);
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
