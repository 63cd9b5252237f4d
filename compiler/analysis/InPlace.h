//===- InPlace.h - results that may take the bytes of an input ------------===//
#ifndef OGC_ANALYSIS_INPLACE_H
#define OGC_ANALYSIS_INPLACE_H

#include "compiler/dialect/kern/Kern.h"

namespace ogc {

/// Block arguments that the only result of a kernel may overwrite: whatever reads an element of the argument does so for the same
/// element of the result and nothing else. That is the data of a `tensor.scatter` that is yielded, which is then updated in
/// place, or an argument of the result's shape and element type that only element-wise operations with identity maps read.
/// Kernels of several results have none, nor have those that may compute an element twice (`kern::computesElementsOnce`).
llvm::SmallVector<unsigned> inPlaceArguments(kern::KernelOp kernel);

} // namespace ogc

#endif
