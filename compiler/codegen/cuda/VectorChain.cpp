//===- VectorChain.cpp - vectors of an image, one cluster an image --------===//
//
// Prints a kernel that calls the stages of device/chain.cuh one after the other. What lies between them is element-wise, so each
// stage gets a lambda that takes one element of its result and computes from it what later stages, and the results, need.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/VectorChain.h"
#include "compiler/analysis/Combiner.h"
#include "compiler/codegen/cuda/AnchorChoice.h"
#include "compiler/codegen/scalar/RowPlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using llvm::alignTo;
using llvm::divideCeil;

namespace ogc::codegen {

namespace {

/// The numbers that are chosen.
struct ChainChoice : LaunchPolicy {
  unsigned ranks = 8; ///< blocks of a cluster, one cluster an image
  unsigned threads = 256;

  template <typename Visitor> void visit(Visitor &&visit) {
    visit("ranks", ranks), visit("threads", threads);
    visitPolicy(visit);
  }
};

/// Constants of element-wise work (biases) up to this size come to shared memory before the wait.
constexpr int64_t mostConstantBytes = 16 * 1024;

class ChainPrinter {
public:
  ChainPrinter(kern::KernelOp kernel, const VectorChain &chain, CudaArch arch, ChainChoice choice)
      : kernel(kernel), chain(chain), arch(arch), choice(choice), types(needsWideIndex(kernel)),
        constant(constantArguments(kernel)) {
    chooseForms();
  }

  FailureOr<KernelText> print();
  /// Shared memory of a block.
  int64_t sharedBytes() const { return used; }
  /// True when no thread waits for pixels more than once.
  bool loadsPixelsAtOnce() const;

private:
  /// Reserves shared memory.
  int64_t take(int64_t bytes) {
    int64_t offset = used;
    used += alignTo(bytes, 16);
    return offset;
  }
  std::string at(int64_t offset) const { return "shared + " + std::to_string(offset); }
  std::string floats(int64_t offset) const { return "reinterpret_cast<float *>(" + at(offset) + ")"; }
  std::string config(unsigned stage) { return kernel.getSymName().str() + "_Stage" + std::to_string(stage); }
  std::string lengthOf(const ChainValue &value) const { return std::to_string(chain.stages[value.lastStage()].length); }
  int64_t shard(int64_t length) const { return alignTo(divideCeil(length, choice.ranks), 8); }

  void chooseForms();
  int64_t partialBytes(unsigned stage) const;
  int64_t columnsOf(unsigned stage) const {
    int64_t length = chain.stages[stage].length;
    return spread[stage] ? int64_t(alignTo(length, 8)) : shard(length);
  }
  bool isSpread(const ChainValue &value) const {
    return llvm::any_of(value.stages, [&](unsigned stage) { return !inAll[stage]; });
  }
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
  CudaArch arch;
  ChainChoice choice;
  CudaTypes types;
  SmallVector<bool> constant;
  int64_t used = 0;
  // Of stages.
  SmallVector<bool> spread, inAll, resident, kept; ///< see chooseForms
  SmallVector<int64_t> weightsAt, weightBytes, receiveAt, keptAt, outsideAt;
  SmallVector<int64_t> vectorAt; ///< of `chain.vectors`
  int64_t partialAt = 0;
  llvm::MapVector<unsigned, int64_t> constantsAt; ///< of kernel arguments
  llvm::SetVector<unsigned> lateInputs;           ///< arguments that are read after the wait
};

} // namespace

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

static int64_t bytesOf(Value value) {
  return tensorType(value).getNumElements() * cudaElementBytes(tensorType(value).getElementType());
}

/// Shared memory that a block may have; sm_75 has the least.
static int64_t sharedLimit(CudaArch arch) { return arch.major < 8 ? 48 * 1024 : mostSharedBytes(arch); }

static unsigned argumentOf(Value value) { return cast<BlockArgument>(value).getArgNumber(); }

/// Channels that one load of a reduction takes.
static int64_t loadWidth(const VectorStage &stage) {
  int64_t width = 16 / cudaElementBytes(tensorType(stage.input()).getElementType());
  while (stage.length % width != 0)
    width /= 2;
  return width;
}

namespace {

/// As `BlockGrid` of device/chain.cuh.
struct BlockGrid {
  int64_t lanes, down;

  BlockGrid(int64_t columns, unsigned threads) : lanes(std::min<int64_t>(32, llvm::PowerOf2Ceil(columns))) {
    int64_t parts = divideCeil(columns, lanes), warps = threads / 32;
    down = warps / std::min({warps, int64_t(16), int64_t(llvm::bit_floor(uint64_t(parts)))});
  }
  int64_t rows() const { return 32 / lanes * down; }
};

} // namespace

/// One sum a column for each row of warps.
int64_t ChainPrinter::partialBytes(unsigned number) const {
  const VectorStage &stage = chain.stages[number];
  int64_t width = stage.isProduct ? 16 / cudaElementBytes(tensorType(stage.input()).getElementType()) : loadWidth(stage);
  return BlockGrid(columnsOf(number) / width, choice.threads).down * columnsOf(number) * 4;
}

bool ChainPrinter::loadsPixelsAtOnce() const {
  constexpr int64_t atOnce = 8; // loads of a thread before it needs the first
  return llvm::all_of(llvm::enumerate(chain.stages), [&](const auto &entry) {
    const VectorStage &stage = entry.value();
    return stage.isProduct ||
           stage.depth <= atOnce * BlockGrid(columnsOf(entry.index()) / loadWidth(stage), choice.threads).rows();
  });
}

/// Decides how each product meets its row, which results all blocks have, what is kept for later stages, and where everything
/// lies.
void ChainPrinter::chooseForms() {
  size_t count = chain.stages.size();
  spread.assign(count, false), inAll.assign(count, false), resident.assign(count, false), kept.assign(count, false);
  weightsAt.assign(count, 0), weightBytes.assign(count, 0), receiveAt.assign(count, 0), keptAt.assign(count, 0),
      outsideAt.assign(count, 0);
  int64_t partial = 0;
  for (auto [i, stage] : llvm::enumerate(chain.stages)) {
    int vector = chain.vectorOf[i];
    spread[i] = stage.isProduct && choice.ranks > 1 && vector >= 0 && isSpread(chain.vectors[vector]);
    inAll[i] = spread[i] || choice.ranks == 1;
    partial = std::max(partial, partialBytes(i));
    if (spread[i])
      receiveAt[i] = take(choice.ranks * stage.length * 4);
    if (stage.isProduct && vector < 0)
      outsideAt[i] = take(stage.depth * 4);
  }
  auto keep = [&](const ChainValue &value) {
    for (unsigned stage : ArrayRef(value.stages).drop_back())
      kept[stage] = true;
  };
  for (const ChainValue &value : chain.vectors) {
    keep(value);
    vectorAt.push_back(take(chain.stages[value.lastStage()].length * 4));
  }
  llvm::for_each(chain.results, keep);
  for (auto [i, stage] : llvm::enumerate(chain.stages))
    if (kept[i])
      keptAt[i] = take(stage.length * 4);
  partialAt = take(partial);
  // Constants come first when weights do not all fit.
  int64_t limit = sharedLimit(arch);
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    bool isWeight = llvm::any_of(chain.stages, [&](const VectorStage &stage) { return stage.weights() == argument; });
    if (constant[argument.getArgNumber()] && !isWeight && bytesOf(argument) <= mostConstantBytes &&
        used + bytesOf(argument) <= limit)
      constantsAt[argument.getArgNumber()] = take(bytesOf(argument));
  }
  for (auto [i, stage] : llvm::enumerate(chain.stages)) {
    if (!stage.isProduct)
      continue;
    int64_t rows = spread[i] ? shard(stage.depth) : stage.depth,
            bytes = rows * columnsOf(i) * cudaElementBytes(tensorType(stage.weights()).getElementType());
    resident[i] = used + bytes <= limit;
    if (!resident[i])
      continue;
    weightsAt[i] = take(bytes);
    weightBytes[i] = bytes;
  }
}

std::string ChainPrinter::printConfig(unsigned number) {
  const VectorStage &stage = chain.stages[number];
  std::string element = types.name(tensorType(stage.input()).getElementType()), text;
  llvm::raw_string_ostream os(text);
  os << "struct " << config(number) << " : ogc::ChainDefaults {\n  using Element = " << element
     << ";\n  enum { Ranks = " << choice.ranks << ", Threads = " << choice.threads;
  if (stage.isProduct) {
    os << ", K = " << stage.depth << ", N = " << stage.length << ", P = " << tensorType(stage.weights()).getDimSize(2)
       << ", Spread = " << spread[number] << ", Resident = " << resident[number];
  } else {
    os << ", Pixels = " << stage.depth << ", Channels = " << stage.length << ", V = " << loadWidth(stage);
  }
  os << " };\n};\nstatic_assert(ogc::" << (stage.isProduct ? "Product" : "Reduction") << "Shape<" << config(number)
     << ">::PartialBytes <= " << partialBytes(number);
  if (stage.isProduct)
    os << " && ogc::ProductShape<" << config(number) << ">::WeightBytes <= " << (resident[number] ? weightBytes[number] : 0);
  os << ", \"the stage needs more shared memory\");\n";
  return text;
}

/// Requests the weights and constants that are (or are not) constants of the model.
void ChainPrinter::printRequests(llvm::raw_ostream &os, bool areConstant) {
  for (auto [i, stage] : llvm::enumerate(chain.stages)) {
    if (!stage.isProduct || !resident[i] || constant[argumentOf(stage.weights())] != areConstant)
      continue;
    os << "  ogc::loadProduct<" << config(i) << ">(" << at(weightsAt[i]) << ", " << (areConstant ? "p" : "a")
       << argumentOf(stage.weights()) << ", rank);\n";
    if (!areConstant)
      lateInputs.insert(argumentOf(stage.weights()));
  }
  if (areConstant)
    for (auto [argument, offset] : constantsAt)
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
    } else if (constantsAt.contains(i)) {
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
  if (kept[number])
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
    if (inAll[number] && choice.ranks > 1) // one of the blocks stores
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
     << (vector < 0 ? "outside" + std::to_string(number) : "vector" + std::to_string(vector)) << ", " << at(weightsAt[number])
     << ", " << (constant[weights] ? "p" : "a") << weights << ", partial, rank);\n";
  if (choice.trigger == Trigger::AfterMainLoop && number + 1 == chain.stages.size())
    os << "  ogc::launchDependents();\n";
  os << "  ogc::finishProduct<" << config(number) << ">(partial, " << floats(receiveAt[number])
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
  bool exchanges = llvm::is_contained(spread, true);
  text.launch = {uint32_t(chain.images * choice.ranks), choice.threads, exchanges ? choice.ranks : 1,
                 uint32_t(std::max(used, choice.reservedBytes))};
  text.cost = 4;
  llvm::raw_string_ostream os(text.source);
  for (unsigned i = 0; i < chain.stages.size(); ++i)
    os << printConfig(i);
  os << "extern \"C\" __global__ void " << (exchanges ? "__cluster_dims__(" + std::to_string(choice.ranks) + ", 1, 1) " : "")
     << "__launch_bounds__(" << choice.threads << ") " << text.name << "(" << *parameters << ") {\n"
     << "  unsigned char *shared = ogc::sharedBase();\n"
     << "  const int rank = blockIdx.x % " << choice.ranks << ", image = blockIdx.x / " << choice.ranks << ";\n"
     << "  float *partial = " << floats(partialAt) << ";\n";
  for (size_t i = 0; i < vectorAt.size(); ++i)
    os << "  float *vector" << i << " = " << floats(vectorAt[i]) << ";\n";
  for (auto [i, stage] : llvm::enumerate(chain.stages)) {
    if (kept[i])
      os << "  float *kept" << i << " = " << floats(keptAt[i]) << ";\n";
    if (stage.isProduct && chain.vectorOf[i] < 0)
      os << "  float *outside" << i << " = " << floats(outsideAt[i]) << ";\n";
  }
  for (auto [argument, offset] : constantsAt)
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

/// "chain f16 1 r784x72 p72x24 p24x72": element, images, reductions and products in order.
static std::string problemName(const VectorChain &chain, const CudaTypes &types) {
  std::string element = types.name(tensorType(chain.stages.front().input()).getElementType());
  std::string name = "chain " + (element.starts_with("ogc::") ? element.substr(5) : element) + " " + std::to_string(chain.images);
  for (const VectorStage &stage : chain.stages)
    name += (stage.isProduct ? " p" : " r") + std::to_string(stage.depth) + "x" + std::to_string(stage.length);
  return name;
}

static ChainChoice chooseChain(kern::KernelOp kernel, const VectorChain &chain, CudaArch arch, Tuning &tuning) {
  // Sums alone exchange nothing: any number of blocks, of some channels each.
  bool exchanges = chain.hasProduct();
  int64_t length = chain.stages.front().length, mostRanks = !exchanges ? divideCeil(length, 8) : arch.hasClusters() ? 8 : 1;
  auto isLegal = [&](const ChainChoice &c) {
    return c.ranks >= 1 && c.ranks <= mostRanks && (!exchanges || llvm::isPowerOf2_32(c.ranks)) && c.threads >= 128 &&
           c.threads <= 512 && llvm::isPowerOf2_32(c.threads) && c.reservedBytes <= sharedLimit(arch) &&
           ChainPrinter(kernel, chain, arch, c).sharedBytes() <= sharedLimit(arch);
  };
  std::vector<ChainChoice> all; // the rule first, then by falling need of shared memory
  auto add = [&](unsigned ranks, unsigned threads) {
    ChainChoice choice{{}, ranks, threads};
    if (!exchanges)
      choice.trigger = Trigger::Start; // as rows
    if (isLegal(choice))
      all.push_back(choice);
  };
  if (exchanges) {
    // Fewer threads meet sooner at the barriers between stages.
    bool isLarge = !ChainPrinter(kernel, chain, arch, {{}, static_cast<unsigned>(mostRanks), 256}).loadsPixelsAtOnce();
    for (unsigned ranks : {8u, 4u, 2u, 1u})
      for (unsigned threads : {isLarge ? 512u : 256u, isLarge ? 256u : 512u, 128u})
        add(ranks, threads);
  } else {
    for (int64_t channels : {32, 16, 64, 128})
      for (unsigned threads : {256u, 128u, 512u})
        add(static_cast<unsigned>(divideCeil(length, channels)), threads);
  }
  return choose(tuning, problemName(chain, CudaTypes(false)), all.empty() ? ChainChoice{{}, 1, 128} : all.front(), isLegal,
                [&] { return all; });
}

FailureOr<KernelText> printVectorChain(kern::KernelOp kernel, CudaArch arch, Tuning &tuning) {
  FailureOr<VectorChain> chain = VectorChain::analyze(kernel.getBody().front());
  if (failed(chain))
    return kernel.emitOpError("has schedule vector_chain, but no stages of vectors");
  ChainPrinter printer(kernel, *chain, arch, chooseChain(kernel, *chain, arch, tuning));
  if (printer.sharedBytes() > sharedLimit(arch))
    return kernel.emitOpError() << "needs " << printer.sharedBytes() << " bytes of shared memory on " << arch.name()
                                << ", expected at most " << sharedLimit(arch) << " (ONNX node " << nodeNames(kernel.getLoc())
                                << ")";
  return printer.print();
}

} // namespace ogc::codegen
