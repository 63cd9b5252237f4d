//===- ChainLayout.cpp - the form of a vector chain's kernel --------------===//
#include "compiler/codegen/cuda/ChainLayout.h"

#include "compiler/codegen/cuda/Schedules.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using llvm::alignTo;
using llvm::divideCeil;

namespace ogc::codegen {

/// Constants of element-wise work (biases) up to this size come to shared memory before the wait.
static constexpr int64_t mostConstantBytes = 16 * 1024;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }
static int64_t elementBytes(Value value) { return cudaElementBytes(tensorType(value).getElementType()); }

int64_t chainSharedLimit(CudaArch arch) { return arch.major < 8 ? 48 * 1024 : mostSharedBytes(arch); } // sm_75 has the least

int64_t loadWidth(const VectorStage &stage) {
  int64_t width = 16 / elementBytes(stage.input());
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

/// As `Shard` of device/chain.cuh.
static int64_t shardOf(int64_t length, const ChainChoice &choice) { return alignTo(divideCeil(length, choice.ranks), 8); }

/// One sum a column for each row of warps.
static int64_t partialBytesOf(const VectorStage &stage, int64_t columns, const ChainChoice &choice) {
  int64_t width = stage.isProduct ? 16 / elementBytes(stage.input()) : loadWidth(stage);
  return BlockGrid(columns / width, choice.threads).down * columns * 4;
}

ChainLayout::ChainLayout(kern::KernelOp kernel, const VectorChain &chain, CudaArch arch, const ChainChoice &choice)
    : stages(chain.stages.size()) {
  placeVectors(chain, choice);
  // Constants come first when weights do not all fit.
  placeConstants(kernel, chain, chainSharedLimit(arch));
  placeWeights(chain, choice, chainSharedLimit(arch));
}

/// Reserves shared memory.
int64_t ChainLayout::take(int64_t bytes) {
  int64_t offset = sharedBytes;
  sharedBytes += alignTo(bytes, 16);
  return offset;
}

void ChainLayout::placeVectors(const VectorChain &chain, const ChainChoice &choice) {
  auto isInParts = [&](const ChainValue &value) {
    return llvm::any_of(value.stages, [&](unsigned stage) { return !stages[stage].isInAll; });
  };
  int64_t partial = 0;
  for (auto [i, stage] : llvm::enumerate(chain.stages)) {
    Stage &own = stages[i];
    int vector = chain.vectorOf[i];
    own.isSpread = stage.isProduct && choice.ranks > 1 && vector >= 0 && isInParts(chain.vectors[vector]);
    own.isInAll = own.isSpread || choice.ranks == 1;
    own.columns = own.isSpread ? int64_t(alignTo(stage.length, 8)) : shardOf(stage.length, choice);
    own.partialBytes = partialBytesOf(stage, own.columns, choice);
    partial = std::max(partial, own.partialBytes);
    if (own.isSpread)
      own.receiveAt = take(choice.ranks * stage.length * 4);
    if (stage.isProduct && vector < 0)
      own.outsideAt = take(stage.depth * 4);
  }
  auto keep = [&](const ChainValue &value) {
    for (unsigned stage : ArrayRef(value.stages).drop_back())
      stages[stage].isKept = true;
  };
  for (const ChainValue &value : chain.vectors) {
    keep(value);
    vectorAt.push_back(take(chain.stages[value.lastStage()].length * 4));
  }
  llvm::for_each(chain.results, keep);
  for (auto [i, stage] : llvm::enumerate(chain.stages))
    if (stages[i].isKept)
      stages[i].keptAt = take(stage.length * 4);
  partialAt = take(partial);
}

void ChainLayout::placeConstants(kern::KernelOp kernel, const VectorChain &chain, int64_t limit) {
  SmallVector<bool> constant = constantArguments(kernel);
  for (BlockArgument argument : kernel.getBody().getArguments()) {
    int64_t bytes = tensorType(argument).getNumElements() * elementBytes(argument);
    bool isWeight = llvm::any_of(chain.stages, [&](const VectorStage &stage) { return stage.weights() == argument; });
    if (constant[argument.getArgNumber()] && !isWeight && bytes <= mostConstantBytes && sharedBytes + bytes <= limit)
      constantsAt[argument.getArgNumber()] = take(bytes);
  }
}

void ChainLayout::placeWeights(const VectorChain &chain, const ChainChoice &choice, int64_t limit) {
  for (auto [stage, own] : llvm::zip_equal(chain.stages, stages)) {
    if (!stage.isProduct)
      continue;
    int64_t rows = own.isSpread ? shardOf(stage.depth, choice) : stage.depth,
            bytes = rows * own.columns * elementBytes(stage.weights());
    own.isResident = sharedBytes + bytes <= limit;
    if (!own.isResident)
      continue;
    own.weightsAt = take(bytes);
    own.weightBytes = bytes;
  }
}

/// True when no thread waits for pixels more than once.
static bool loadsPixelsAtOnce(const VectorChain &chain, const ChainLayout &layout, const ChainChoice &choice) {
  constexpr int64_t atOnce = 8; // loads of a thread before it needs the first
  return llvm::all_of(llvm::zip_equal(chain.stages, layout.stages), [&](const auto &entry) {
    const auto &[stage, own] = entry;
    return stage.isProduct || stage.depth <= atOnce * BlockGrid(own.columns / loadWidth(stage), choice.threads).rows();
  });
}

/// "chain f16 1 r784x72 p72x24 p24x72": element, images, reductions and products in order.
static std::string problemName(const VectorChain &chain) {
  std::string element = CudaTypes(false).name(tensorType(chain.stages.front().input()).getElementType());
  std::string name = "chain " + (element.starts_with("ogc::") ? element.substr(5) : element) + " " + std::to_string(chain.images);
  for (const VectorStage &stage : chain.stages)
    name += (stage.isProduct ? " p" : " r") + std::to_string(stage.depth) + "x" + std::to_string(stage.length);
  return name;
}

ChainChoice chooseChain(kern::KernelOp kernel, const VectorChain &chain, CudaArch arch, Tuning &tuning) {
  // Sums alone exchange nothing: any number of blocks, of some channels each.
  bool exchanges = chain.hasProduct();
  int64_t length = chain.stages.front().length, mostRanks = !exchanges ? divideCeil(length, 8) : arch.hasClusters() ? 8 : 1;
  int64_t limit = chainSharedLimit(arch);
  auto isLegal = [&](const ChainChoice &c) {
    return c.ranks >= 1 && c.ranks <= mostRanks && (!exchanges || llvm::isPowerOf2_32(c.ranks)) && c.threads >= 128 &&
           c.threads <= 512 && llvm::isPowerOf2_32(c.threads) && c.reservedBytes <= limit &&
           ChainLayout(kernel, chain, arch, c).sharedBytes <= limit;
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
    ChainChoice most{{}, static_cast<unsigned>(mostRanks), 256};
    bool isLarge = !loadsPixelsAtOnce(chain, ChainLayout(kernel, chain, arch, most), most);
    for (unsigned ranks : {8u, 4u, 2u, 1u})
      for (unsigned threads : {isLarge ? 512u : 256u, isLarge ? 256u : 512u, 128u})
        add(ranks, threads);
  } else {
    for (int64_t channels : {32, 16, 64, 128})
      for (unsigned threads : {256u, 128u, 512u})
        add(static_cast<unsigned>(divideCeil(length, channels)), threads);
  }
  return choose(tuning, problemName(chain), all.empty() ? ChainChoice{{}, 1, 128} : all.front(), isLegal, [&] { return all; });
}

} // namespace ogc::codegen
