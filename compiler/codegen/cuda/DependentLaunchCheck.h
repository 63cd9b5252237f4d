//===- DependentLaunchCheck.h - kernels wait before they touch the arena --===//
#ifndef OGC_CODEGEN_CUDA_DEPENDENTLAUNCHCHECK_H
#define OGC_CODEGEN_CUDA_DEPENDENTLAUNCHCHECK_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace ogc::codegen {

/// A kernel and which of its parameters point to weights, which may be read at any time. Parameters from `firstMap` on are tensor
/// maps: their own address leads to memory.
struct EntryPoint {
  std::string name;
  llvm::SmallVector<bool> constant;
  size_t firstMap = SIZE_MAX;
};

/// Checks on the generated PTX what programmatic edges rest on, for each entry point: on no path
///   - is memory accessed through a parameter that is no weight, or
///   - does the kernel end
/// before `griddepcontrol.wait` was executed, and `griddepcontrol.launch_dependents` is there. Nor may a load through such a
/// parameter take the read-only path (`ld.global.nc`) anywhere, since ptxas moves those across the wait. Returns one message a
/// violation, "NAME(ptx): …".
std::vector<std::string> checkDependentLaunch(llvm::StringRef ptx, llvm::ArrayRef<EntryPoint> entries);

} // namespace ogc::codegen

#endif
