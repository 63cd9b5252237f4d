//===- ResultBuffer.h - where a kernel writes its results -----------------===//
#ifndef OGC_CODEGEN_SCALAR_RESULTBUFFER_H
#define OGC_CODEGEN_SCALAR_RESULTBUFFER_H

#include "compiler/dialect/kern/Kern.h"

namespace ogc::codegen {

/// The tensor whose memory result `number` is written to: the result's own type, or one with more elements along an axis
/// (`ogc.result_extent`), of which the result is the first part.
mlir::RankedTensorType resultBuffer(kern::KernelOp kernel, unsigned number);

/// The argument of the kernel whose bytes its only result takes (`ogc.in_place`), or nothing.
std::optional<unsigned> inPlaceArgument(kern::KernelOp kernel);

} // namespace ogc::codegen

#endif
