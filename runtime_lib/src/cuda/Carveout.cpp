//===- Carveout.cpp - how first-level memory is divided -------------------===//
#include "runtime_lib/src/cuda/Carveout.h"

#include <algorithm>

namespace ogc::cuda {

int carveoutPercent(std::span<const KernelNeeds> kernels, const Multiprocessors &device) {
  constexpr int64_t reservedBytes = 1024; // of each block, beside its own
  constexpr int mostPercent = 35;         // beyond, products that fill shared memory decide
  int64_t largest = 0, second = 0;
  for (const KernelNeeds &kernel : kernels) {
    int64_t room = device.threads / std::max<int64_t>(kernel.threads, 1);
    int64_t share = (kernel.blocks + device.count - 1) / std::max(device.count, 1);
    int64_t need = std::max<int64_t>(std::min(room, share), 1) * (kernel.sharedBytes + reservedBytes);
    second = std::max(second, std::min(largest, need));
    largest = std::max(largest, need);
  }
  int64_t percent = device.sharedBytes > 0 ? (100 * (largest + second) + device.sharedBytes - 1) / device.sharedBytes : 100;
  return percent <= mostPercent ? static_cast<int>(percent) : 100;
}

} // namespace ogc::cuda
