//===- Grouping.h - which operations become one kernel region -------------===//
//
// The working state of ogc-fuse-regions: facts about the operations of one function body and the groups formed so far. The rules
// that form groups are in GrowVectorChains.cpp, GrowAnchors.cpp, GrowRows.cpp and GroupPointwise.cpp, in the order in which they
// run; BuildRegions.cpp makes regions of the groups.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_PASSES_FUSE_GROUPING_H
#define OGC_PASSES_FUSE_GROUPING_H

#include "compiler/analysis/StridedView.h"
#include "compiler/dialect/kern/Kern.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace ogc::fuse {

enum class GroupKind { Pointwise, Row, Anchor };

/// Operations that become one region.
struct Group {
  GroupKind kind;
  bool isConstant;                          ///< all operands are constants: evaluated at compile time, never mixed with others
  llvm::SmallVector<mlir::Operation *> ops; ///< members, not sorted
  unsigned minIndex, maxIndex;              ///< positions of the first and last member in the block
};

/// What is known of one operation of the block.
struct OpInfo {
  unsigned index = 0;           ///< position in the block
  int group = -1;               ///< the group it belongs to
  bool isConstant = false;      ///< computed from constants only
  bool isDemanded = false;      ///< something returned depends on it
  bool isInlined = false;       ///< belongs to no group: cloned into the regions of its users
  llvm::SmallVector<int> homes; ///< of an inlined operation: the groups it is cloned into
  int64_t budget = 0;           ///< scalar operations that producers may still add for each element, when computed more than once
  bool isRepeated = false;      ///< its elements are computed more than once in its region
  bool isInPlace = false; ///< in a pointwise region: element i is computed for element i of the result, and for nothing else
};

/// A use of a value, seen through reshapes.
struct Use {
  mlir::Operation *user;    ///< in the block of the function
  mlir::OpOperand *operand; ///< of `user` or of an operation nested in it
  bool isCaptured;          ///< used inside the body of `user`
  bool isReshaped;          ///< a reshape lies between
};

class Grouping {
public:
  Grouping(mlir::func::FuncOp function, bool emitRemarks);

  mlir::Block &getBlock() { return block; }
  OpInfo &info(mlir::Operation *op) { return infos[op]; }
  std::vector<Group> &getGroups() { return groups; }
  Group &group(int id) { return groups[id]; }

  /// Opens a group of one operation; returns its number.
  int addGroup(GroupKind kind, mlir::Operation *op);
  void addToGroup(int id, mlir::Operation *op);

  /// True when `op` can be given a group: it computes a tensor, is needed and has none yet.
  bool isFree(mlir::Operation *op);

  /// True for values that every region makes for itself: scalar and splat constants, `tensor.empty`, fills with a constant, and
  /// their reshapes.
  bool isCheapConstant(mlir::Value value);

  /// Uses of `value` through reshapes, including anchors that read a strided view of it; uses by operations that are not demanded
  /// are left out.
  llvm::SmallVector<Use> usesOf(mlir::Value value);

  /// All values that `op` reads: operands and captured values; for an anchor, the roots of the views that it takes in.
  llvm::SmallVector<mlir::Value> inputsOf(mlir::Operation *op);

  /// The view that an anchor's operand takes into its region; null when the operand is read as it is.
  const StridedView *absorbedView(mlir::OpOperand &operand);

  /// True when group `id` together with `op` would depend on itself through something outside.
  bool wouldFormCycle(int id, mlir::Operation *op);

  /// Notes why `op` did not join group `id` (-1: any group of its readers).
  void noteMiss(mlir::Operation *op, int id, const llvm::Twine &reason);

  /// Emits a remark for each operation that stayed out of a group in the end, when remarks are asked for.
  void emitMisses();

  /// Operations of the block in order, without the return.
  llvm::ArrayRef<mlir::Operation *> getOps() const { return ops; }

private:
  void absorbViews(mlir::Operation *anchor);
  void markDemanded();

  mlir::Block &block;
  bool emitRemarks;
  std::vector<mlir::Operation *> ops;
  std::vector<Group> groups;
  llvm::DenseMap<mlir::Operation *, OpInfo> infos;
  llvm::MapVector<std::pair<mlir::Operation *, int>, std::string> misses; ///< the last reason for each operation and group
  llvm::DenseMap<mlir::OpOperand *, StridedView> views;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::OpOperand *>> viewUses;
};

/// True for `tensor.expand_shape` and `tensor.collapse_shape`.
bool isReshapeOp(mlir::Operation *op);

/// `value` with the reshapes above it removed.
mlir::Value stripReshapes(mlir::Value value);

/// The type of a tensor.
inline mlir::RankedTensorType typeOf(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }

/// The number of elements of a static tensor.
int64_t elementsOf(mlir::Value value);

/// True for a generic without reductions whose results are written through identity maps.
bool isElementwise(mlir::linalg::GenericOp op);

/// True for an operation that reduces over some of its loops.
bool isReduction(mlir::Operation *op);

/// Scalar operations for one element of the result: one each, eight for transcendental functions and divisions.
int64_t scalarCost(mlir::Operation *op);
/// Scalar operations that may be done again for each element of a reader instead of loading their result.
constexpr int64_t repeatBudget = 8;

/// True when `op` computes what an anchor asks for element by element (`kern::isPulledOperand`), directly or by others that do
/// nothing else: it will become part of that anchor's region. `depth` bounds how far the search goes.
bool servesPulledOperand(mlir::Operation *op, unsigned depth = 16);

/// The map through which a generic reads `operand`.
mlir::AffineMap mapOf(mlir::OpOperand &operand);

/// Null when `generic` computes element i of its results from element i of all values of group `id` that it reads; else the
/// reason.
const char *whyNotEpilogue(Grouping &grouping, int id, mlir::linalg::GenericOp generic);

/// Takes the element-wise operations that follow the members of group `id` into it, as long as there are any.
void growEpilogue(Grouping &grouping, int id);

// The rules, in order. Each gives groups to operations that have none.
void growVectorChains(Grouping &grouping, bool epilogues);
void growAnchors(Grouping &grouping, bool epilogues);
void growRows(Grouping &grouping);
void groupPointwise(Grouping &grouping);

/// Replaces the function's operations by one region a group. The function is left as it was when this fails.
mlir::LogicalResult buildRegions(Grouping &grouping);

} // namespace ogc::fuse

#endif
