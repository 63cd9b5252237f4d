//===- Effort.h - how hard LLVM works on a kernel -------------------------===//
#ifndef OGC_CODEGEN_CPU_EFFORT_H
#define OGC_CODEGEN_CPU_EFFORT_H

namespace ogc::codegen {

enum class Effort {
  Small,   ///< no loop optimizations: kernels of so few operations that a run takes less than a microsecond or two
  Plain,   ///< loops are vectorized where they are plain, and nests left as they are, which register tiles want
  Thorough ///< all of O3
};

} // namespace ogc::codegen

#endif
