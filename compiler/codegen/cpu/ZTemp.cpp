#include "compiler/codegen/cpu/KernelFunction.h"
namespace ogc::codegen {
Emitted emitMatmul(KernelFunction &) { return Emitted::NotApplicable; }
Emitted emitConv(KernelFunction &) { return Emitted::NotApplicable; }
Emitted emitDepthwiseConv(KernelFunction &) { return Emitted::NotApplicable; }
Emitted emitAttention(KernelFunction &) { return Emitted::NotApplicable; }
}
