//===- KernelWork.h - what a launch of a kernel has to do ------------------===//
#ifndef OGC_ANALYSIS_KERNELWORK_H
#define OGC_ANALYSIS_KERNELWORK_H

#include "compiler/dialect/kern/Kern.h"

namespace ogc {

/// Counts of one launch that no schedule can go below, as far as the body says.
struct KernelWork {
  /// Of the anchor, 2 for each multiply-add of a matrix product, convolution or attention, and the type that it multiplies in.
  double productOperations = 0;
  mlir::Type productType;
  bool tf32 = false;
  /// Everything else: `arith` and `math` operations for each point of their loops, and depthwise convolutions, which no matrix
  /// unit does. Those of a `kern.program` are not counted.
  double otherOperations = 0;
  /// Most bytes of each argument that are read or written, the block arguments before the results: less than the argument has
  /// where only slices of it or elements at computed positions are read.
  llvm::SmallVector<int64_t> argumentBytes;
};

KernelWork countWork(kern::KernelOp kernel);

} // namespace ogc

#endif
