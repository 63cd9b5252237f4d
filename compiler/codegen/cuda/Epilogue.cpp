//===- Epilogue.cpp - what follows an anchor, as a functor ----------------===//
#include "compiler/codegen/cuda/Epilogue.h"

#include "compiler/analysis/InterleavedParts.h"
#include "compiler/codegen/cuda/Lanes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

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
  SmallVector<unsigned> numbers;
  SmallVector<SmallVector<Value>> positions;
  for (auto [number, result] : llvm::enumerate(yield->getOperands())) {
    if (!kern::dependsOn(result, domain.result.getDefiningOp()))
      continue; // the template's operands store it
    numbers.push_back(static_cast<unsigned>(number));
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
  for (auto [number, value, position] : llvm::zip_equal(numbers, values, positions))
    memref::StoreOp::create(body.getBuilder(), loc, value, body.output(number), position);
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

namespace {

/// The text of a functor whose body is complete.
class FunctorPrinter {
public:
  FunctorPrinter(kern::KernelOp kernel, KernelBody &body, unsigned numIndices, int lanes, int parts)
      : kernel(kernel), body(body), numIndices(numIndices), lanes(lanes), parts(parts), types(needsWideIndex(kernel)),
        constant(constantArguments(kernel)), name(kernel.getSymName().str() + "_Epilogue") {}

  /// The functor, and the expression that makes one.
  FailureOr<std::string> print(std::string &construct);
  /// The functor in two parts: what it loads, then the rest. Takes the loads out of the body. Empty where it loads nothing.
  FailureOr<std::string> printAhead(bool &readsInputs);

private:
  std::string indexParameters();
  /// Binds the buffers that `of` uses to the functor's members, the indices to its parameters.
  void bind(CudaPrinter &printer, KernelBody &of) const;
  /// Loads from buffers at places that do not depend on an accumulator. A result is only read where it overwrites an input, and
  /// then each element by the thread that writes it.
  SmallVector<Operation *> independentLoads();
  /// A struct `type` with what `loads` read, and the function `method` that makes one.
  FailureOr<std::string> printLoads(StringRef type, StringRef method, ArrayRef<Operation *> loads);
  /// The call; the values of `loaded` are found in what is named beside them.
  FailureOr<std::string> printCall(StringRef extra, ArrayRef<std::pair<Value, std::string>> loaded);
  bool isConstant(Operation *load) const {
    unsigned number = cast<BlockArgument>(load->getOperand(0)).getArgNumber();
    return number < constant.size() && constant[number];
  }
  std::string open() const { return "struct " + name + " {\n" + members; }

  kern::KernelOp kernel;
  KernelBody &body;
  unsigned numIndices;
  int lanes, parts;
  CudaTypes types;
  SmallVector<bool> constant;
  std::string name, members;
};

} // namespace

std::string FunctorPrinter::indexParameters() {
  std::string index = types.name(IndexType::get(kernel.getContext())), text;
  for (unsigned i = 0; i < numIndices; ++i)
    text += (i ? ", " : "") + index + " i" + std::to_string(i);
  return text;
}

void FunctorPrinter::bind(CudaPrinter &printer, KernelBody &of) const {
  for (auto [i, buffer] : llvm::enumerate(of.buffers())) {
    if (i < of.numInputs())
      printer.markReadOnly(buffer);
    printer.bind(buffer, "p" + std::to_string(i));
  }
  for (unsigned i = 0; i < numIndices; ++i) {
    std::string index = "i" + std::to_string(i);
    // Columns are counted within a part.
    printer.bind(of.extra(i), i + 1 == numIndices && parts > 1 ? "(" + index + " / " + std::to_string(parts) + ")" : index);
  }
}

FailureOr<std::string> FunctorPrinter::printCall(StringRef extra, ArrayRef<std::pair<Value, std::string>> loaded) {
  std::string text;
  llvm::raw_string_ostream os(text);
  CudaPrinter printer(os, types, 2);
  bind(printer, body);
  for (int lane = 0; lane < lanes; ++lane)
    printer.bind(body.extra(numIndices + lane), "acc[" + std::to_string(lane) + "]");
  for (const auto &[value, text] : loaded)
    printer.bind(value, text);
  if (failed(printer.printBlock(body.getBlock())))
    return failure();
  return "  __device__ __forceinline__ void operator()(" + indexParameters() + ", const float (&acc)[" + std::to_string(lanes) +
         "]" + extra.str() + ") const {\n" + text + "  }\n};\n";
}

FailureOr<std::string> FunctorPrinter::print(std::string &construct) {
  construct = name + "{";
  bool isFirst = true;
  for (auto [i, buffer] : llvm::enumerate(body.buffers())) {
    if (buffer.use_empty())
      continue;
    std::string pointer = "p" + std::to_string(i);
    members += std::string("  ") + (i < body.numInputs() ? "const " : "") +
               types.name(cast<MemRefType>(buffer.getType()).getElementType()) + " *" + pointer + ";\n";
    construct += (isFirst ? "" : ", ") + pointer;
    isFirst = false;
  }
  construct += "}";
  FailureOr<std::string> call = printCall("", {});
  if (failed(call))
    return failure();
  return open() + *call;
}

SmallVector<Operation *> FunctorPrinter::independentLoads() {
  DenseSet<Value> dependent;
  for (int lane = 0; lane < lanes; ++lane)
    dependent.insert(body.extra(numIndices + lane));
  SmallVector<Operation *> loads;
  for (Operation &op : body.getBlock().without_terminator()) {
    bool isLoad = isa<memref::LoadOp, vector::LoadOp>(op);
    auto buffer = isLoad ? dyn_cast<BlockArgument>(op.getOperand(0)) : BlockArgument();
    if (llvm::any_of(op.getOperands(), [&](Value v) { return dependent.contains(v); }) || op.getNumRegions() != 0 ||
        (isLoad && !buffer))
      dependent.insert_range(op.getResults());
    else if (isLoad)
      loads.push_back(&op);
  }
  return loads;
}

FailureOr<std::string> FunctorPrinter::printLoads(StringRef type, StringRef method, ArrayRef<Operation *> loads) {
  KernelBody ahead(kernel, extraTypes(kernel.getContext(), numIndices, 0));
  DenseSet<Operation *> needed(loads.begin(), loads.end());
  for (Operation &op : llvm::reverse(body.getBlock()))
    if (needed.contains(&op))
      for (Value operand : op.getOperands())
        if (Operation *producer = operand.getDefiningOp())
          needed.insert(producer);
  IRMapping mapping;
  mapping.map(body.buffers(), ahead.buffers());
  for (unsigned i = 0; i < numIndices; ++i)
    mapping.map(body.extra(i), ahead.extra(i));
  for (Operation &op : body.getBlock())
    if (needed.contains(&op))
      ahead.getBuilder().clone(op, mapping);
  func::ReturnOp::create(ahead.getBuilder(), kernel.getLoc());

  std::string text, fields, values;
  llvm::raw_string_ostream os(text);
  CudaPrinter printer(os, types, 2);
  bind(printer, ahead);
  for (auto [i, buffer] : llvm::enumerate(ahead.buffers()))
    if (!(i < constant.size() && constant[i]) && !buffer.use_empty()) {
      std::string number = std::to_string(i);
      os << (i < ahead.numInputs() ? "    const " : "    ") << types.name(cast<MemRefType>(buffer.getType()).getElementType())
         << " *const a" << number << " = ogc::afterWait(p" << number << ");\n";
      printer.bind(buffer, "a" + number);
    }
  if (failed(printer.printBlock(ahead.getBlock())))
    return failure();
  for (auto [i, load] : llvm::enumerate(loads)) {
    fields += "    " + types.name(load->getResult(0).getType()) + " v" + std::to_string(i) + ";\n";
    values += (i ? ", " : "") + printer.nameOf(mapping.lookup(load->getResult(0)));
  }
  return ("  struct " + type + " {\n" + fields + "  };\n  __device__ __forceinline__ " + type + " " + method + "(" +
          indexParameters() + ") const {\n" + text + "    return {" + values + "};\n  }\n")
      .str();
}

FailureOr<std::string> FunctorPrinter::printAhead(bool &readsInputs) {
  SmallVector<Operation *> loads = independentLoads();
  readsInputs = !llvm::all_of(loads, [&](Operation *load) { return isConstant(load); });
  if (loads.empty())
    return std::string();
  std::string text = open();
  for (bool isConstants : {true, false}) {
    SmallVector<Operation *> some;
    llvm::copy_if(loads, std::back_inserter(some), [&](Operation *load) { return isConstant(load) == isConstants; });
    FailureOr<std::string> part = printLoads(isConstants ? "Constants" : "Inputs", isConstants ? "constants" : "inputs", some);
    if (failed(part))
      return failure();
    text += *part;
  }
  SmallVector<std::pair<Value, std::string>> loaded;
  unsigned counts[2] = {};
  for (Operation *load : loads) {
    BlockArgument value = body.getBlock().addArgument(load->getResult(0).getType(), load->getLoc());
    bool isConstants = isConstant(load);
    loaded.emplace_back(value, (isConstants ? "constants.v" : "inputs.v") + std::to_string(counts[isConstants]++));
    load->getResult(0).replaceAllUsesWith(value);
    load->erase();
  }
  FailureOr<std::string> call = printCall(", const Constants &constants, const Inputs &inputs", loaded);
  if (failed(call))
    return failure();
  return text + *call;
}

FailureOr<Epilogue> printEpilogue(kern::KernelOp kernel, Operation *anchor, bool merged, int mostLanes, bool &fits) {
  Domain domain(anchor);
  int parts = static_cast<int>(domain.split.count);
  unsigned numIndices = merged ? domain.shape.size() - 1 : domain.shape.size();
  fits = (parts == 1 ? staysInPlace(domain.result)
                     : llvm::all_of(domain.split.parts, [](const auto &part) { return staysInPlace(part.value); }));
  if (!fits)
    return failure();
  KernelBody element(kernel, extraTypes(kernel.getContext(), numIndices, parts));
  if (failed(emitElement(kernel, domain, merged, numIndices, element, fits)))
    return failure();

  Value innermost = element.extra(numIndices - 1);
  ValueRange accumulators = element.extras(numIndices, parts);
  int lanes = std::max(1, mostLanes / parts);
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

  FunctorPrinter printer(kernel, body, numIndices, epilogue.lanes, parts);
  FailureOr<std::string> functor = printer.print(epilogue.construct);
  if (failed(functor))
    return failure();
  epilogue.functor = *functor;
  FailureOr<std::string> ahead = printer.printAhead(epilogue.readsInputs);
  if (failed(ahead))
    return failure();
  epilogue.aheadFunctor = *ahead;
  return epilogue;
}

} // namespace ogc::codegen
