//===- Node.h - one operator while it is lowered; the table of lowerings --===//
#ifndef OGC_PASSES_LOWER_NODE_H
#define OGC_PASSES_LOWER_NODE_H

#include "compiler/dialect/kern/Kern.h"
#include "compiler/dialect/onnx/OnnxOps.h"
#include "compiler/passes/lower/Structured.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace ogc::lower {

/// Values of one function while it is lowered.
struct Values {
  llvm::DenseMap<mlir::Value, mlir::Value> lowered; ///< of the onnx dialect -> signless structured value
  llvm::DenseSet<mlir::Value> constants;            ///< onnx values computed from constants only
};

/// Choices that hold for the whole module.
struct LoweringOptions {
  kern::MathMode math = kern::MathMode::IEEE;
  bool packWeights = true; ///< constant right operands of products in panels
};

/// An operator being lowered: reads operands (lowered) and attributes, builds operations at the operator's place with its
/// location, and takes the results in order.
class Node {
public:
  Node(onnx::OnnxOp &op, const Values &values, const LoweringOptions &options)
      : op(op), b(op.getLoc(), op.getOperation()), math(options.math), packWeights(options.packWeights), values(values) {}

  onnx::OnnxOp &op;
  Builder b;
  const kern::MathMode math;
  const bool packWeights;

  /// The i-th operand, or null when absent.
  mlir::Value in(int i) const;
  /// The lowered value of an operand of another operator, which is lowered already.
  mlir::Value lowered(mlir::Value v) const { return values.lowered.lookup(v); }
  bool has(int i) const { return op.hasInput(i); }
  int numInputs() const { return op.numInputs(); }
  llvm::ArrayRef<int64_t> inShape(int i) const { return shapeOf(in(i)); }
  mlir::Type inElement(int i) const { return elementOf(in(i)); }
  int64_t inRank(int i) const { return static_cast<int64_t>(inShape(i).size()); }
  bool isUnsignedIn(int i) const;
  /// The element types of the model, of which inElement and outElement are the storage; null when absent.
  mlir::Type declaredIn(int i) const;
  mlir::Type declaredOut(int i = 0) const;
  bool isConstantIn(int i) const { return op.hasInput(i) && values.constants.contains(op.input(i)); }
  std::optional<Shape> constInts(int i) const;

  /// Type of the i-th result with signless elements.
  mlir::RankedTensorType outType(int i = 0) const;
  llvm::ArrayRef<int64_t> outShape(int i = 0) const { return outType(i).getShape(); }
  mlir::Type outElement(int i = 0) const { return outType(i).getElementType(); }
  bool isUnsignedOut(int i = 0) const;

  /// Takes the next result; its type must be that of the operator's result.
  llvm::LogicalResult result(mlir::Value v);
  /// Records why the operator cannot be lowered. Always fails.
  llvm::LogicalResult fail(const llvm::Twine &reason);

  llvm::SmallVector<mlir::Value> results;
  std::string reason;

private:
  const Values &values;
};

using LowerFn = llvm::LogicalResult (*)(Node &);

/// Operator types and their lowerings.
class Table {
public:
  void add(llvm::StringRef opType, LowerFn fn) { table[opType] = fn; }
  LowerFn find(llvm::StringRef opType) const { return table.lookup(opType); }

private:
  llvm::StringMap<LowerFn> table;
};

/// All lowerings.
const Table &lowerings();

/// Type with the elements' storage type: signless, small types as bytes.
mlir::RankedTensorType signless(mlir::RankedTensorType type);

// One function for each family file.
void registerElementwise(Table &table);
void registerDataMovement(Table &table);
void registerIndexing(Table &table);
void registerReductions(Table &table);
void registerScan(Table &table);
void registerSort(Table &table);
void registerScatter(Table &table);
void registerSelection(Table &table);
void registerSuppression(Table &table);
void registerEinsum(Table &table);
void registerRecurrent(Table &table);
void registerDeterminant(Table &table);
void registerNormalization(Table &table);
void registerMatMul(Table &table);
void registerConvolution(Table &table);
void registerPooling(Table &table);
void registerAttention(Table &table);
void registerResize(Table &table);
void registerQuantization(Table &table);
void registerGridSample(Table &table);
void registerDeformConv(Table &table);
void registerRegions(Table &table);
void registerSignal(Table &table);
void registerRandom(Table &table);
void registerIntegerProducts(Table &table);
void registerBlockQuantized(Table &table);
void registerTensorScatter(Table &table);
void registerRegionPrograms(Table &table);
void registerLinearAttention(Table &table);

} // namespace ogc::lower

#endif
