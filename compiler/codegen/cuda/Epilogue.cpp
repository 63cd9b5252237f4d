//===- Epilogue.cpp - what follows an anchor, as a functor ----------------===//
#include "compiler/codegen/cuda/Epilogue.h"

#include "compiler/analysis/InterleavedParts.h"
#include "compiler/codegen/cuda/Lanes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
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

/// Adds the element of the domain at `indices` to the statistics of its row.
static LogicalResult emitStatistics(kern::RowStatisticsOp op, ArrayRef<Value> indices, ArrayRef<int64_t> shape, KernelBody &body,
                                    bool &fits) {
  Location loc = op.getLoc();
  IndexMath &math = body.getEmitter().indices();
  ValueRange yields = op->getBlock()->getTerminator()->getOperands();
  auto means = llvm::find(yields, op.getMeans()), squares = llvm::find(yields, op.getSquares());
  ArrayRef<int64_t> rows = tensorType(op.getInput()).getShape();
  if (means == yields.end() || squares == yields.end() || rows.back() != shape.back()) {
    fits = false;
    return failure();
  }
  SmallVector<Value> at =
      rows == shape ? SmallVector<Value>(indices) : math.delinearize(loc, math.linearize(loc, indices, shape), rows);
  Value element = body.getEmitter().emit(op.getInput(), at);
  if (!element)
    return failure();
  if (!element.getType().isF32())
    element = arith::ExtFOp::create(body.getBuilder(), loc, body.getBuilder().getF32Type(), element);
  at.back() = math.div(loc, at.back(), op.width);
  kern::StoreStatisticsOp::create(body.getBuilder(), loc, element, body.output(std::distance(yields.begin(), means)),
                                  body.output(std::distance(yields.begin(), squares)), at);
  return success();
}

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
    if (result.getDefiningOp<kern::RowStatisticsOp>())
      continue; // stored with the elements that they are taken of
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
  for (auto statistics : kernel.getBody().front().getOps<kern::RowStatisticsOp>())
    if (failed(emitStatistics(statistics, indices, shape, body, fits)))
      return failure();
  body.finish();
  return success();
}

/// True if everything computed from `value` takes its elements at the position of the result: element-wise operations with
/// identity maps and reshapes.
static bool staysInPlace(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<kern::YieldOp, kern::RowStatisticsOp>(user))
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
  FailureOr<std::string> printAhead(Epilogue &epilogue);

private:
  std::string indexParameters(unsigned count);
  /// Binds the buffers that `of` uses to the functor's members, the indices to its parameters.
  void bind(CudaPrinter &printer, KernelBody &of) const;
  /// Loads from buffers at places that do not depend on an accumulator. A result is only read where it overwrites an input, and
  /// then each element by the thread that writes it.
  SmallVector<Operation *> independentLoads();
  /// What is dear and computed of the row alone, as far as anything else needs it.
  SmallVector<Value> rowValues();
  /// A struct `type` with `made`, and the function of the first `indices` indices that makes one, `method`.
  FailureOr<std::string> printMade(StringRef type, StringRef method, ArrayRef<Value> made, unsigned indices);
  /// Lets the call take `values` from its parameter `parameter`.
  void replace(ArrayRef<Value> values, StringRef parameter, SmallVectorImpl<std::pair<Value, std::string>> &given);
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

std::string FunctorPrinter::indexParameters(unsigned count) {
  std::string index = types.name(IndexType::get(kernel.getContext())), text;
  for (unsigned i = 0; i < count; ++i)
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
  return "  __device__ __forceinline__ void operator()(" + indexParameters(numIndices) + ", const float (&acc)[" +
         std::to_string(lanes) + "]" + extra.str() + ") const {\n" + text + "  }\n};\n";
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

/// Calls `visit` for all values from outside that `op` and what is nested in it read.
static void forEachInput(Operation *op, function_ref<void(Value)> visit) {
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (operand.getParentRegion()->isAncestor(op->getParentRegion()))
        visit(operand);
  });
}

SmallVector<Value> FunctorPrinter::rowValues() {
  DenseSet<Value> varies{body.extra(numIndices - 1)}, dear;
  for (int lane = 0; lane < lanes; ++lane)
    varies.insert(body.extra(numIndices + lane));
  llvm::SetVector<Value> made;
  for (Operation &op : body.getBlock().without_terminator()) {
    bool isOfRow = !isa<memref::StoreOp, vector::StoreOp, kern::StoreStatisticsOp>(op),
         isDear = isa<scf::ForOp, math::SqrtOp>(op);
    forEachInput(&op, [&](Value input) {
      isOfRow &= !varies.contains(input);
      isDear |= dear.contains(input);
    });
    if (!isOfRow) {
      forEachInput(&op, [&](Value input) {
        if (dear.contains(input))
          made.insert(input);
      });
      varies.insert_range(op.getResults());
    } else if (isDear) {
      dear.insert_range(op.getResults());
    }
  }
  return made.takeVector();
}

FailureOr<std::string> FunctorPrinter::printMade(StringRef type, StringRef method, ArrayRef<Value> made, unsigned indices) {
  KernelBody ahead(kernel, extraTypes(kernel.getContext(), numIndices, 0));
  DenseSet<Operation *> needed;
  for (Value value : made)
    needed.insert(value.getDefiningOp());
  for (Operation &op : llvm::reverse(body.getBlock()))
    if (needed.contains(&op))
      forEachInput(&op, [&](Value input) {
        if (Operation *producer = input.getDefiningOp())
          needed.insert(producer);
      });
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
  for (auto [i, value] : llvm::enumerate(made)) {
    fields += "    " + types.name(value.getType()) + " v" + std::to_string(i) + ";\n";
    values += (i ? ", " : "") + printer.nameOf(mapping.lookup(value));
  }
  return ("  struct " + type + " {\n" + fields + "  };\n  __device__ __forceinline__ " + type + " " + method + "(" +
          indexParameters(indices) + ") const {\n" + text + "    return {" + values + "};\n  }\n")
      .str();
}

void FunctorPrinter::replace(ArrayRef<Value> values, StringRef parameter, SmallVectorImpl<std::pair<Value, std::string>> &given) {
  for (auto [i, each] : llvm::enumerate(values)) {
    Value value = each;
    BlockArgument argument = body.getBlock().addArgument(value.getType(), value.getLoc());
    given.emplace_back(argument, (parameter + ".v" + Twine(i)).str());
    value.replaceAllUsesWith(argument);
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body.getBlock())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

FailureOr<std::string> FunctorPrinter::printAhead(Epilogue &epilogue) {
  SmallVector<std::pair<Value, std::string>> given;
  std::string row;
  SmallVector<Value> ofRow = rowValues();
  if (!ofRow.empty()) {
    FailureOr<std::string> made = printMade("Row", "row", ofRow, numIndices - 1);
    if (failed(made))
      return failure();
    row = *made;
    epilogue.rowBytes = 8 * static_cast<int>(ofRow.size()); // no element type is larger
    replace(ofRow, "row", given);
  }
  SmallVector<Operation *> loads = independentLoads();
  epilogue.readsInputs = !ofRow.empty() || !llvm::all_of(loads, [&](Operation *load) { return isConstant(load); });
  if (loads.empty() && ofRow.empty())
    return std::string();
  SmallVector<Value> constants, inputs;
  for (Operation *load : loads)
    (isConstant(load) ? constants : inputs).push_back(load->getResult(0));
  FailureOr<std::string> makesConstants = printMade("Constants", "constants", constants, numIndices),
                         makesInputs = printMade("Inputs", "inputs", inputs, numIndices);
  if (failed(makesConstants) || failed(makesInputs))
    return failure();
  replace(constants, "constants", given);
  replace(inputs, "inputs", given);
  FailureOr<std::string> call = printCall(
      std::string(", const Constants &constants, const Inputs &inputs") + (ofRow.empty() ? "" : ", const Row &row"), given);
  if (failed(call))
    return failure();
  return open() + row + *makesConstants + *makesInputs + *call;
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
  if (!kernel.getBody().front().getOps<kern::RowStatisticsOp>().empty()) {
    epilogue.wholeColumns = kern::RowStatisticsOp::width;
    fits = epilogue.wholeColumns / lanes <= 32; // the threads of a warp
    if (!fits)
      return failure();
  }

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
  FailureOr<std::string> ahead = printer.printAhead(epilogue);
  if (failed(ahead))
    return failure();
  epilogue.aheadFunctor = *ahead;
  return epilogue;
}

} // namespace ogc::codegen
