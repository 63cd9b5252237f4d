//===- DeviceHeaders.h - the device headers as text -----------------------===//
#ifndef OGC_CODEGEN_CUDA_DEVICEHEADERS_H
#define OGC_CODEGEN_CUDA_DEVICEHEADERS_H

#include "llvm/ADT/ArrayRef.h"

namespace ogc::codegen {

struct DeviceHeader {
  const char *name; ///< as it is included, "ogc/types.cuh"
  const char *text;
};

/// The files of compiler/codegen/cuda/device, sorted by name.
llvm::ArrayRef<DeviceHeader> deviceHeaders();

} // namespace ogc::codegen

#endif
