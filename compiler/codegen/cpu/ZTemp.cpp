#include "compiler/codegen/cpu/KernelFunction.h"
namespace ogc::codegen {
Emitted emitDepthwiseConv(KernelFunction &) { return Emitted::NotApplicable; }
Emitted emitAttention(KernelFunction &) { return Emitted::NotApplicable; }
}
