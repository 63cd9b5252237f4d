//===- Epilogue.h - what follows an anchor, as a functor ------------------===//
#ifndef OGC_CODEGEN_CUDA_EPILOGUE_H
#define OGC_CODEGEN_CUDA_EPILOGUE_H

#include "compiler/codegen/cuda/Schedules.h"

namespace ogc::codegen {

/// The functor that a template calls with V neighbouring accumulators of a row (device/README.md, "Epilogue protocol").
struct Epilogue {
  int lanes = 1;         ///< V
  std::string functor;   ///< definition of `struct NAME_Epilogue`
  std::string construct; ///< `NAME_Epilogue{p2, p3}`
  /// The same functor with its loads apart, so that a template can have them made early; empty where it loads nothing.
  std::string aheadFunctor;
  bool readsInputs = false; ///< loads what is no constant of the model
  /// Of what `aheadFunctor` computes of a row alone, which a template may keep for all columns.
  int rowBytes = 0;
  int wholeColumns = 1; ///< a multiple of so many columns must lie in one tile
};

/// Prints everything between the result of `anchor` and the yielded values. `merged` says that the template numbers dimensions 1
/// and 2 of the result by one index (convolutions: pixels); `mostLanes` bounds V. Failure without a message when `fits` is false:
/// a yielded value is not computed element by element from the result.
mlir::FailureOr<Epilogue> printEpilogue(kern::KernelOp kernel, mlir::Operation *anchor, bool merged, int mostLanes, bool &fits);

} // namespace ogc::codegen

#endif
