//===- Lanes.h - several neighbouring elements in one thread --------------===//
//
// A body written for one element is widened to V neighbours: accesses that run along the lanes become vector accesses, what all
// lanes share is computed once, loops and branches that all lanes take together are kept as one.
//
#ifndef OGC_CODEGEN_CUDA_LANES_H
#define OGC_CODEGEN_CUDA_LANES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"

namespace ogc::codegen {

/// How a value differs between the lanes: all the same, lane v holds the value of lane 0 plus v, or anything.
struct Lane {
  enum Kind { Uniform, Consecutive, Varying };
  Kind kind = Varying;
  /// A power of two that divides the value of lane 0.
  int64_t divisor = 1;
  bool operator==(const Lane &other) const = default;
};

class LaneAnalysis {
public:
  /// `root` is consecutive over `width` lanes (a power of two) and a multiple of it in lane 0; `varying` are different in each
  /// lane. Everything else defined outside `block` is uniform.
  LaneAnalysis(mlir::Block &block, mlir::Value root, mlir::ValueRange varying, int64_t width);

  Lane of(mlir::Value value) const;

  /// True if the access at `indices` of `buffer` is `width` elements in a row, aligned to their size.
  bool isVectorAccess(mlir::Value buffer, mlir::ValueRange indices) const;

  /// True if every store is a vector access and, with `strictLoads`, every load is one or the same for all lanes; and no branch
  /// or loop bound differs between the lanes.
  bool canWiden(mlir::Block &block, bool strictLoads) const;

  /// True if no lane needs a copy of its own.
  bool isUniform(mlir::Operation *op) const;

  int64_t getWidth() const { return width; }

private:
  bool visit(mlir::Block &block);
  Lane transfer(mlir::Operation *op) const;
  bool update(mlir::Value value, Lane lane);

  int64_t width;
  llvm::DenseMap<mlir::Value, Lane> lanes;
};

/// Clones the operations of `block` but its terminator for all lanes at the insertion point. `mappings` has one mapping a lane,
/// which holds the values of lane-dependent arguments; `canWiden` must hold.
void cloneLanes(mlir::OpBuilder &builder, mlir::Block &block, const LaneAnalysis &analysis,
                llvm::MutableArrayRef<mlir::IRMapping> mappings);

/// Joins loads (and stores) of one buffer in one block whose last indices are `lanes`, neighbouring and aligned to their number,
/// into vector accesses of at most 16 bytes. The innermost extent of the buffers is a multiple of the number of lanes.
void groupAccesses(mlir::Block &block, llvm::ArrayRef<mlir::Value> lanes);

} // namespace ogc::codegen

#endif
