//===- ChainLayout.h - the form of a vector chain's kernel ----------------===//
#ifndef OGC_CODEGEN_CUDA_CHAINLAYOUT_H
#define OGC_CODEGEN_CUDA_CHAINLAYOUT_H

#include "compiler/analysis/VectorChain.h"
#include "compiler/codegen/cuda/AnchorChoice.h"
#include "compiler/dialect/kern/Kern.h"
#include "llvm/ADT/MapVector.h"

namespace ogc::codegen {

/// The numbers that are chosen.
struct ChainChoice : LaunchPolicy {
  unsigned ranks = 8; ///< blocks of a cluster, one cluster an image
  unsigned threads = 256;

  template <typename Visitor> void visit(Visitor &&visit) {
    visit("ranks", ranks), visit("threads", threads);
    visitPolicy(visit);
  }
};

/// How each product meets its row, which results all blocks have, what is kept for later stages, and where everything lies in the
/// shared memory of a block.
class ChainLayout {
public:
  struct Stage {
    bool isSpread = false;   ///< a product whose row is spread over the blocks, so that each has a part of every column
    bool isInAll = false;    ///< all blocks have the result
    bool isKept = false;     ///< later stages need the sums
    bool isResident = false; ///< the weights come to shared memory as a whole
    int64_t columns = 0;     ///< that a block computes
    int64_t partialBytes = 0;
    int64_t receiveAt = 0, keptAt = 0, outsideAt = 0, weightsAt = 0, weightBytes = 0; ///< as far as the stage has it
  };

  ChainLayout(kern::KernelOp kernel, const VectorChain &chain, CudaArch arch, const ChainChoice &choice);

  llvm::SmallVector<Stage> stages;
  llvm::SmallVector<int64_t> vectorAt; ///< of `chain.vectors`
  int64_t partialAt = 0;
  llvm::MapVector<unsigned, int64_t> constantsAt; ///< of kernel arguments
  int64_t sharedBytes = 0;

private:
  int64_t take(int64_t bytes);
  void placeVectors(const VectorChain &chain, const ChainChoice &choice);
  void placeConstants(kern::KernelOp kernel, const VectorChain &chain, int64_t limit);
  void placeWeights(const VectorChain &chain, const ChainChoice &choice, int64_t limit);
};

/// Channels that one load of a reduction takes.
int64_t loadWidth(const VectorStage &stage);

/// Shared memory that a block of a chain may have.
int64_t chainSharedLimit(CudaArch arch);

ChainChoice chooseChain(kern::KernelOp kernel, const VectorChain &chain, CudaArch arch, Tuning &tuning);

} // namespace ogc::codegen

#endif
