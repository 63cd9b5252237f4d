//===- Carveout.h - how first-level memory is divided ---------------------===//
#ifndef OGC_RUNTIME_CUDA_CARVEOUT_H
#define OGC_RUNTIME_CUDA_CARVEOUT_H

#include <cstdint>
#include <span>

namespace ogc::cuda {

/// What a launch needs of the multiprocessors.
struct KernelNeeds {
  int64_t blocks, threads, sharedBytes; ///< shared memory of a block
};
struct Multiprocessors {
  int count, threads, sharedBytes; ///< threads and shared memory of each
};

/// The part of first-level memory that all kernels of a bundle ask for as shared memory, in percent of the most there is. It is
/// one for all, since a change between neighbours keeps them from overlapping. The rest is the cache through which loads come,
/// also those that are on their way before a kernel may go on: where two neighbours together need little, they get no more. On an
/// H200 a decode step of streamed products takes 543 us with 14 or 35 percent, 581 with 50 and 573 with all.
int carveoutPercent(std::span<const KernelNeeds> kernels, const Multiprocessors &device);

} // namespace ogc::cuda

#endif
