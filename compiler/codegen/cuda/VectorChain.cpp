//===- VectorChain.cpp - vectors of an image, one cluster an image --------===//
//
// Prints a kernel that calls the stages of device/chain.cuh one after the other. What lies between them is element-wise, so each
// stage gets a lambda that takes one element of its result and computes from it what later stages, and the results, need.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/VectorChain.h"
#include "compiler/analysis/Combiner.h"
#include "compiler/codegen/cuda/ChainLayout.h"
#include "compiler/codegen/cuda/Schedules.h"
#include "compiler/codegen/scalar/RowPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace ogc::codegen {

namespace {

class ChainPrinter {
public:
  ChainPrinter(kern::KernelOp kernel, const VectorChain &chain, const ChainChoice &choice, const ChainLayout &layout)
      : kernel(kernel), chain(chain), choice(choice), layout(layout), types(needsWideIndex(kernel)),
        constant(constantArguments(kernel)) {}

  FailureOr<KernelText> print();

private:
  std::string at(int64_t offset) const { return "shared + " + std::to_string(offset); }
  std::string floats(int64_t offset) const { return "reinterpret_cast<float *>(" + at(offset) + ")"; }
  std::string config(unsigned stage) { return kernel.getSymName().str() + "_Stage" + std::to_string(stage); }
  std::string printConfig(unsigned stage);
  void printRequests(llvm::raw_ostream &os, bool areConstant);
  LogicalResult printReduction(unsigned stage, llvm::raw_ostream &os);
  LogicalResult printProduct(unsigned stage, llvm::raw_ostream &os);
  LogicalResult printOutsideVector(unsigned stage, llvm::raw_ostream &os);
  LogicalResult printResult(unsigned stage, llvm::raw_ostream &os);
  LogicalResult printStep(unsigned stage, bool combines, llvm::raw_ostream &os);
  LogicalResult printBody(KernelBody &body, llvm::raw_ostream &os, ArrayRef<std::string> extras);
  SmallVector<Value> positionOf(KernelBody &body, Value value);

  kern::KernelOp kernel;
  const VectorChain &chain;
  const ChainChoice &choice;
  const ChainLayout &layout;
  CudaTypes types;
  SmallVector<bool> constant;
  llvm::SetVector<unsigned> lateInputs; ///< arguments that are read after the wait
};

} // namespace

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

static int64_t bytesOf(Value value) {
  return tensorType(value).getNumElements() * cudaElementBytes(tensorType(value).getElementType());
}

static unsigned argumentOf(Value value) { return cast<BlockArgument>(value).getArgNumber(); }

std::string ChainPrinter::printConfig(unsigned number) {
  const VectorStage &stage = chain.stages[number];
  std::string element = types.name(tensorType(stage.input()).getElementType()), text;
  llvm::raw_string_ostream os(text);
  os << "struct " << config(number) << " : ogc::ChainDefaults {\n  using Element = " << element
     << ";\n  enum { Ranks = " << choice.ranks << ", Threads = " << choice.threads;
  if (stage.isProduct) {
    os << ", K = " << stage.depth << ", N = " << stage.length << ", P = " << tensorType(stage.weights()).getDimSize(2)
       << ", Spread = " << layout.stages[number].isSpread << ", Resident = " << layout.stages[number].isResident;
  } else {
    os << ", Pixels = " << stage.depth << ", Channels = " << stage.length << ", V = " << loadWidth(stage);
  }
  os << " };\n};\nstatic_assert(ogc::" << (stage.isProduct ? "Product" : "Reduction") << "Shape<" << config(number)
     << ">::PartialBytes <= " << layout.stages[number].partialBytes;
  if (stage.isProduct)
    os << " && ogc::ProductShape<" << config(number) << ">::WeightBytes <= " << layout.stages[number].weightBytes;
  os << ", \"the stage needs more shared memory\");\n";
  return text;
}

/// Requests the weights and constants that are (or are not) constants of the model.
void ChainPrinter::printRequests(llvm::raw_ostream &os, bool areConstant) {
  for (auto [i, stage] : llvm::enumerate(chain.stages)) {
    if (!stage.isProduct || !layout.stages[i].isResident || constant[argumentOf(stage.weights())] != areConstant)
      continue;
    os << "  ogc::loadProduct<" << config(i) << ">(" << at(layout.stages[i].weightsAt) << ", " << (areConstant ? "p" : "a")
       << argumentOf(stage.weights()) << ", rank);\n";
    if (!areConstant)
      lateInputs.insert(argumentOf(stage.weights()));
  }
  if (areConstant)
    for (auto [argument, offset] : layout.constantsAt)
      os << "  ogc::loadConstants<" << bytesOf(kernel.getBody().getArgument(argument)) << ", " << choice.threads << ">("
         << at(offset) << ", p" << argument << ");\n";
}

/// The indices of element n of the image's part of `value`; the body's first two extra arguments are image and n.
SmallVector<Value> ChainPrinter::positionOf(KernelBody &body, Value value) {
  IndexMath &math = body.getEmitter().indices();
  Location loc = kernel.getLoc();
  int64_t length = tensorType(value).getNumElements() / chain.images;
  Value position = body.extra(1);
  if (chain.images > 1)
    position = math.linearize(loc, {body.extra(0), position}, {chain.images, length});
  return math.delinearize(loc, position, tensorType(value).getShape());
}

/// Prints a complete body; `extras` are the names of its extra arguments.
LogicalResult ChainPrinter::printBody(KernelBody &body, llvm::raw_ostream &os, ArrayRef<std::string> extras) {
  body.finish();
  CudaPrinter printer(os, types, 2);
  for (auto [i, buffer] : llvm::enumerate(body.buffers())) {
    if (buffer.use_empty())
      continue;
    std::string number = std::to_string(i);
    if (i >= body.numInputs()) {
      printer.bind(buffer, "p" + number);
    } else if (layout.constantsAt.contains(i)) {
      printer.bind(buffer, "c" + number);
    } else {
      printer.markReadOnly(buffer);
      printer.bind(buffer, (constant[i] ? "p" : "a") + number);
      if (!constant[i])
        lateInputs.insert(i);
    }
  }
  for (auto [i, name] : llvm::enumerate(extras))
    printer.bind(body.extra(i), name);
  return printer.printBlock(body.getBlock());
}

/// The lambda body of one step of a reduction: `next[0]` is the accumulator `a` with the element (or accumulator) `b`.
LogicalResult ChainPrinter::printStep(unsigned number, bool combines, llvm::raw_ostream &os) {
  auto op = cast<linalg::LinalgOp>(chain.stages[number].op);
  Builder types(kernel.getContext());
  Type f32 = types.getF32Type(), element = combines ? f32 : tensorType(chain.stages[number].input()).getElementType();
  KernelBody body(kernel, {f32, element, MemRefType::get({1}, f32)});
  OpBuilder &b = body.getBuilder();
  Value zero = arith::ConstantIndexOp::create(b, kernel.getLoc(), 0), next;
  if (combines) {
    next = RowPlan::combine(b, {op, {findCombiner(op, 0)}}, 0, body.extra(0), body.extra(1));
  } else {
    SmallVector<Value> loops(op.getNumLoops(), zero),
        values = body.getEmitter().emitBody(op, loops, {body.extra(1)}, {body.extra(0)});
    if (values.empty())
      return failure();
    next = values.front();
  }
  memref::StoreOp::create(b, kernel.getLoc(), next, body.extra(2), ValueRange{zero});
  os << "    float next[1];\n";
  if (failed(printBody(body, os, {"a", "b", "next"})))
    return failure();
  os << "    return next[0];\n";
  return success();
}

/// The lambda body that takes element `n` of a stage's result.
LogicalResult ChainPrinter::printResult(unsigned number, llvm::raw_ostream &os) {
  SmallVector<std::pair<const ChainValue *, int>> values; // with the position among the vectors, -1 for a result
  llvm::SetVector<unsigned> needed;
  auto collect = [&](const ChainValue &value, int vector) {
    if (value.lastStage() != number)
      return;
    values.push_back({&value, vector});
    needed.insert(value.stages.begin(), value.stages.end());
  };
  for (auto [i, value] : llvm::enumerate(chain.vectors))
    collect(value, static_cast<int>(i));
  for (const ChainValue &value : chain.results)
    collect(value, -1);
  if (layout.stages[number].isKept)
    os << "    kept" << number << "[n] = sum;\n";

  MLIRContext *context = kernel.getContext();
  Type f32 = Float32Type::get(context), index = IndexType::get(context);
  SmallVector<Type> extra{index, index, IntegerType::get(context, 1)};
  SmallVector<std::string> names{"image", "n", "owned"};
  for (unsigned stage : needed) {
    extra.push_back(f32);
    names.push_back(stage == number ? "sum" : "kept" + std::to_string(stage) + "[n]");
  }
  for (auto [value, vector] : values)
    if (vector >= 0) {
      extra.push_back(MemRefType::get({chain.stages[number].length}, f32));
      names.push_back("vector" + std::to_string(vector));
    }
  KernelBody body(kernel, extra);
  OpBuilder &b = body.getBuilder();
  Location loc = kernel.getLoc();
  unsigned next = 3;
  for (unsigned stage : needed) {
    auto op = chain.stages[stage].op;
    Value sum = body.extra(next++);
    if (auto reduction = dyn_cast<linalg::LinalgOp>(op)) { // what the sum starts from
      Value start = body.getEmitter().emitOperand(reduction, *reduction.getDpsInitOperand(0),
                                                  SmallVector<Value>(reduction.getNumLoops(), body.extra(1)));
      if (!start)
        return failure();
      sum = RowPlan::combine(b, {reduction, {findCombiner(reduction, 0)}}, 0, start, sum);
    }
    body.getEmitter().bindScalar(op->getResult(0), sum);
  }
  SmallVector<Value> elements;
  for (auto [value, vector] : values) {
    elements.push_back(body.getEmitter().emit(value->value, positionOf(body, value->value)));
    if (!elements.back())
      return failure();
  }
  for (auto [entry, element] : llvm::zip_equal(values, elements)) {
    OpBuilder::InsertionGuard guard(b);
    auto [value, vector] = entry;
    if (vector >= 0) {
      Value wide = element.getType() == f32 ? element : arith::ExtFOp::create(b, loc, f32, element).getResult();
      memref::StoreOp::create(b, loc, wide, body.extra(next++), ValueRange{body.extra(1)});
      continue;
    }
    SmallVector<Value> indices = positionOf(body, value->value);
    if (layout.stages[number].isInAll && choice.ranks > 1) // one of the blocks stores
      b.setInsertionPointToStart(scf::IfOp::create(b, loc, body.extra(2), /*withElseRegion=*/false).thenBlock());
    memref::StoreOp::create(b, loc, element, body.output(value->number), indices);
  }
  if (!body.extra(2).use_empty())
    os << "    bool owned = ogc::Shard<" << chain.stages[number].length << ", " << choice.ranks << ">::owns(rank, n);\n";
  return printBody(body, os, names);
}

LogicalResult ChainPrinter::printReduction(unsigned number, llvm::raw_ostream &os) {
  const VectorStage &stage = chain.stages[number];
  std::string element = types.name(tensorType(stage.input()).getElementType()),
              argument = std::to_string(argumentOf(stage.input()));
  std::optional<TypedAttr> neutral = arith::getNeutralElement(findCombiner(cast<linalg::LinalgOp>(stage.op), 0));
  bool isConstant = constant[argumentOf(stage.input())];
  if (!isConstant)
    lateInputs.insert(argumentOf(stage.input()));
  os << "  ogc::reducePixels<" << config(number) << ">(" << (isConstant ? "p" : "a") << argument << " + image * "
     << stage.length * stage.depth << "ll, partial, rank, " << types.literal(*neutral) << ", [&](float a, " << element
     << " b) {\n";
  LogicalResult fold = printStep(number, /*combines=*/false, os);
  os << "  }, [&](float a, float b) {\n";
  LogicalResult combine = printStep(number, /*combines=*/true, os);
  os << "  }, [&](int n, float sum) {\n";
  LogicalResult result = printResult(number, os);
  os << "  });\n";
  return success(succeeded(fold) && succeeded(combine) && succeeded(result));
}

/// Brings the row of a product that comes from outside to every block.
LogicalResult ChainPrinter::printOutsideVector(unsigned number, llvm::raw_ostream &os) {
  const VectorStage &stage = chain.stages[number];
  MLIRContext *context = kernel.getContext();
  Type f32 = Float32Type::get(context), index = IndexType::get(context);
  KernelBody body(kernel, {index, index, MemRefType::get({stage.depth}, f32)});
  OpBuilder &b = body.getBuilder();
  Value element = body.getEmitter().emit(stage.input(), positionOf(body, stage.input()));
  if (!element)
    return failure();
  Value wide = element.getType() == f32 ? element : arith::ExtFOp::create(b, kernel.getLoc(), f32, element).getResult();
  memref::StoreOp::create(b, kernel.getLoc(), wide, body.extra(2), ValueRange{body.extra(1)});
  os << "  for (int n = threadIdx.x; n < " << stage.depth << "; n += " << choice.threads << ") {\n";
  LogicalResult printed = printBody(body, os, {"image", "n", "outside" + std::to_string(number)});
  os << "  }\n";
  return printed;
}

LogicalResult ChainPrinter::printProduct(unsigned number, llvm::raw_ostream &os) {
  const VectorStage &stage = chain.stages[number];
  int vector = chain.vectorOf[number];
  unsigned weights = argumentOf(stage.weights());
  if (!constant[weights])
    lateInputs.insert(weights);
  if (vector < 0 && failed(printOutsideVector(number, os)))
    return failure();
  os << "  ogc::multiply<" << config(number) << ">("
     << (vector < 0 ? "outside" + std::to_string(number) : "vector" + std::to_string(vector)) << ", "
     << at(layout.stages[number].weightsAt) << ", " << (constant[weights] ? "p" : "a") << weights << ", partial, rank);\n";
  if (choice.trigger == Trigger::AfterMainLoop && number + 1 == chain.stages.size())
    os << "  ogc::launchDependents();\n";
  os << "  ogc::finishProduct<" << config(number) << ">(partial, " << floats(layout.stages[number].receiveAt)
     << ", rank, [&](int n, float sum) {\n";
  LogicalResult result = printResult(number, os);
  os << "  });\n";
  return result;
}

FailureOr<KernelText> ChainPrinter::print() {
  FailureOr<std::string> parameters = parameterList(kernel, types);
  if (failed(parameters))
    return failure();
  std::string stages, early, late;
  llvm::raw_string_ostream stagesOs(stages), earlyOs(early), lateOs(late);
  printRequests(earlyOs, /*areConstant=*/true);
  printRequests(lateOs, /*areConstant=*/false);
  for (unsigned i = 0; i < chain.stages.size(); ++i)
    if (failed(chain.stages[i].isProduct ? printProduct(i, stagesOs) : printReduction(i, stagesOs)))
      return failure();

  KernelText text = startText(kernel);
  text.headers = {"ogc/memory.cuh", "ogc/scalar.cuh", "ogc/chain.cuh"};
  bool exchanges = llvm::any_of(layout.stages, [](const ChainLayout::Stage &stage) { return stage.isSpread; });
  text.launch = {uint32_t(chain.images * choice.ranks), choice.threads, exchanges ? choice.ranks : 1,
                 uint32_t(std::max(layout.sharedBytes, choice.reservedBytes))};
  text.cost = 4;
  llvm::raw_string_ostream os(text.source);
  for (unsigned i = 0; i < chain.stages.size(); ++i)
    os << printConfig(i);
  os << "extern \"C\" __global__ void " << (exchanges ? "__cluster_dims__(" + std::to_string(choice.ranks) + ", 1, 1) " : "")
     << "__launch_bounds__(" << choice.threads << ") " << text.name << "(" << *parameters << ") {\n"
     << "  unsigned char *shared = ogc::sharedBase();\n"
     << "  const int rank = blockIdx.x % " << choice.ranks << ", image = blockIdx.x / " << choice.ranks << ";\n"
     << "  float *partial = " << floats(layout.partialAt) << ";\n";
  for (size_t i = 0; i < layout.vectorAt.size(); ++i)
    os << "  float *vector" << i << " = " << floats(layout.vectorAt[i]) << ";\n";
  for (auto [i, stage] : llvm::enumerate(chain.stages)) {
    if (layout.stages[i].isKept)
      os << "  float *kept" << i << " = " << floats(layout.stages[i].keptAt) << ";\n";
    if (stage.isProduct && chain.vectorOf[i] < 0)
      os << "  float *outside" << i << " = " << floats(layout.stages[i].outsideAt) << ";\n";
  }
  for (auto [argument, offset] : layout.constantsAt)
    os << "  const " << types.name(tensorType(kernel.getBody().getArgument(argument)).getElementType()) << " *c" << argument
       << " = reinterpret_cast<decltype(c" << argument << ")>(" << at(offset) << ");\n";
  if (choice.trigger == Trigger::Start)
    os << "  ogc::launchDependents();\n";
  if (exchanges)
    os << "  ogc::clusterArriveRelaxed();\n";
  os << early << "  ogc::wait();\n";
  if (choice.trigger == Trigger::AfterWait)
    os << "  ogc::launchDependents();\n";
  for (unsigned argument : lateInputs)
    os << "  const " << types.name(tensorType(kernel.getBody().getArgument(argument)).getElementType()) << " *const a" << argument
       << " = ogc::afterWait(p" << argument << ");\n";
  os << late;
  if (exchanges) // all blocks have started before one writes into another
    os << "  ogc::clusterWait();\n";
  os << stages;
  if (choice.trigger == Trigger::AfterMainLoop && !chain.stages.back().isProduct)
    os << "  ogc::launchDependents();\n";
  os << "}\n";
  return text;
}

FailureOr<KernelText> printVectorChain(kern::KernelOp kernel, CudaArch arch, Tuning &tuning) {
  FailureOr<VectorChain> chain = VectorChain::analyze(kernel.getBody().front());
  if (failed(chain))
    return kernel.emitOpError("has schedule vector_chain, but no stages of vectors");
  ChainChoice choice = chooseChain(kernel, *chain, arch, tuning);
  ChainLayout layout(kernel, *chain, arch, choice);
  if (layout.sharedBytes > chainSharedLimit(arch))
    return kernel.emitOpError() << "needs " << layout.sharedBytes << " bytes of shared memory on " << arch.name()
                                << ", expected at most " << chainSharedLimit(arch) << " (ONNX node " << nodeNames(kernel.getLoc())
                                << ")";
  return ChainPrinter(kernel, *chain, choice, layout).print();
}

} // namespace ogc::codegen
