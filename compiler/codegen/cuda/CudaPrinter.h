//===- CudaPrinter.h - scalar IR as CUDA C++ text -------------------------===//
//
// Prints the operations of a block (arith, math, scf, memref, vector, gpu) as statements. What a kernel is, its signature and its
// launch shape, is the matter of the schedules that call it.
//
#ifndef OGC_CODEGEN_CUDA_CUDAPRINTER_H
#define OGC_CODEGEN_CUDA_CUDAPRINTER_H

#include "compiler/codegen/cuda/CudaTypes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::scf {
class ForOp;
class IfOp;
class WhileOp;
} // namespace mlir::scf

namespace ogc::codegen {

class CudaPrinter {
public:
  CudaPrinter(llvm::raw_ostream &os, CudaTypes types, unsigned indent = 1) : os(os), types(types), indent(indent) {}

  /// Binds a value defined outside the printed block (an argument, a buffer) to a C++ expression.
  void bind(mlir::Value value, llvm::StringRef text) { names[value] = text.str(); }

  /// Loads from `buffer` go through the read-only path: the kernel must not write it.
  void markReadOnly(mlir::Value buffer) { readOnly.insert(buffer); }

  /// The C++ expression of a value printed or bound before.
  std::string nameOf(mlir::Value value);

  /// Prints all operations of the block but its terminator. Emits an error that names the operation and its ONNX node for each
  /// operation without a CUDA form, and goes on to find them all.
  llvm::LogicalResult printBlock(mlir::Block &block);

  /// The address expression `buffer + offset` of an element of a memref with static strides.
  std::string address(mlir::Value buffer, mlir::ValueRange indices);

  const CudaTypes &getTypes() const { return types; }

private:
  llvm::LogicalResult printOp(mlir::Operation *op);
  llvm::LogicalResult printConstant(mlir::Operation *op);
  llvm::LogicalResult printFor(mlir::scf::ForOp op);
  llvm::LogicalResult printIf(mlir::scf::IfOp op);
  llvm::LogicalResult printWhile(mlir::scf::WhileOp op);
  llvm::LogicalResult printLoad(mlir::Operation *op, mlir::Value buffer, mlir::ValueRange indices);
  llvm::LogicalResult printStore(mlir::Value value, mlir::Value buffer, mlir::ValueRange indices);
  llvm::LogicalResult printAlloca(mlir::Operation *op);
  llvm::LogicalResult printVectorElements(mlir::Operation *op);
  llvm::LogicalResult printStoreStatistics(mlir::Operation *store);
  llvm::LogicalResult printShuffle(mlir::Operation *op);

  llvm::raw_ostream &line() { return os.indent(2 * indent); }
  llvm::LogicalResult define(mlir::Value result, const std::string &expression);
  /// Declares a variable for each value, assigned from `inits` (none: not initialised).
  llvm::LogicalResult declare(mlir::ValueRange variables, mlir::ValueRange inits);
  /// Assigns the values in parallel: a value that is itself one of the variables is copied first.
  void assign(mlir::ValueRange variables, mlir::ValueRange values);
  llvm::LogicalResult unsupported(mlir::Operation *op, llvm::StringRef why = "");
  std::string fresh() { return "v" + std::to_string(counter++); }

  llvm::raw_ostream &os;
  CudaTypes types;
  unsigned indent;
  unsigned counter = 0;
  llvm::DenseMap<mlir::Value, std::string> names;
  llvm::DenseSet<mlir::Value> readOnly;
};

/// The C++ expression of a scalar arith or math operation with one result, given the expressions of its operands. Empty when the
/// operation, or its types, have no CUDA form.
std::string scalarExpression(mlir::Operation *op, llvm::ArrayRef<std::string> operands, const CudaTypes &types);

} // namespace ogc::codegen

#endif
