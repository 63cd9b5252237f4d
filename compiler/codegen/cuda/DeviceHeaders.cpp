//===- DeviceHeaders.cpp - the device headers as text ---------------------===//
#include "compiler/codegen/cuda/DeviceHeaders.h"

namespace ogc::codegen {

llvm::ArrayRef<DeviceHeader> deviceHeaders() {
  static const DeviceHeader headers[] = {
#include "compiler/codegen/cuda/DeviceHeaders.inc"
  };
  return headers;
}

} // namespace ogc::codegen
