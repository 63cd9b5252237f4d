//===- OnnxOps.h - reading and building operations of the onnx dialect ----===//
//
// Operators are registered from schemas, so there is no class for each. OnnxOp is a view of any of them: operands by index,
// attributes by name and type. It remembers which attributes were read: an attribute that no code read is an error at lowering
// (`checkConsumed`).
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DIALECT_ONNX_ONNXOPS_H
#define OGC_DIALECT_ONNX_ONNXOPS_H

#include "compiler/dialect/onnx/OnnxDialect.h"
#include "mlir/IR/Builders.h"
#include <optional>
#include <string>

namespace ogc::onnx {

/// True for an operation made from an ONNX operator: of the onnx dialect, but none of onnx.absent, onnx.constant, onnx.yield.
bool isOperator(mlir::Operation *op);

/// The operator's type: "Conv", or "com.microsoft.MatMulNBits". Empty for an operation of another dialect.
llvm::StringRef getOpType(mlir::Operation *op);

/// True for an operation that is the operator `type`, as in isOp(op, "Conv"). Null is no operator.
bool isOp(mlir::Operation *op, llvm::StringRef type);

/// The name of the ONNX node an operation comes from (the first name of its location), or "" when it has none.
std::string getNodeName(mlir::Location loc);

/// True for a null value and for the result of onnx.absent.
bool isAbsent(mlir::Value value);

/// An axis (negative: from the end) as a dimension number. Not checked.
inline int64_t wrapAxis(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

/// The value of a constant (onnx.constant), or null.
mlir::ElementsAttr getConstant(mlir::Value value);

/// The elements of a constant of any integer or boolean type, or nothing when the value is not such a constant. Works on dense
/// and on mapped (resource) values.
std::optional<llvm::SmallVector<int64_t>> getConstantInts(mlir::Value value);

/// The elements of a constant of any float type, or nothing.
std::optional<llvm::SmallVector<double>> getConstantFloats(mlir::Value value);

/// The same for attributes.
std::optional<llvm::SmallVector<int64_t>> getInts(mlir::ElementsAttr attr);
std::optional<llvm::SmallVector<double>> getFloats(mlir::ElementsAttr attr);

/// A reading view of an operator. Cheap to copy by reference; it is not owned by the operation.
class OnnxOp {
public:
  explicit OnnxOp(mlir::Operation *op) : op(op) {}

  mlir::Operation *getOperation() const { return op; }
  mlir::Operation *operator->() const { return op; }
  mlir::Location getLoc() const { return op->getLoc(); }
  llvm::StringRef opType() const { return getOpType(op); }
  std::string nodeName() const { return getNodeName(op->getLoc()); }

  int numInputs() const { return static_cast<int>(op->getNumOperands()); }
  int numOutputs() const { return static_cast<int>(op->getNumResults()); }

  /// The i-th operand, or null when it is absent or past the end.
  mlir::Value input(int i) const;
  bool hasInput(int i) const { return static_cast<bool>(input(i)); }
  /// The i-th result, or null past the end.
  mlir::Value output(int i) const;
  /// True when the i-th output exists and something reads it.
  bool isOutputUsed(int i) const { return output(i) && !output(i).use_empty(); }
  /// The type of the i-th operand or result; null when absent or not a ranked tensor.
  mlir::RankedTensorType inputType(int i) const;
  mlir::RankedTensorType outputType(int i) const;

  /// True when the attribute is there. Counts as a read.
  bool has(llvm::StringRef name) const { return static_cast<bool>(get(name)); }
  /// The attribute, or null. Counts as a read.
  mlir::Attribute get(llvm::StringRef name) const;

  /// Attributes by type; the default is returned when the attribute is missing or of another type. The importer writes the
  /// defaults of the schema, so a default here is only needed where the schema has none.
  int64_t getI64(llvm::StringRef name, int64_t orElse = 0) const;
  std::optional<int64_t> findI64(llvm::StringRef name) const;
  llvm::SmallVector<int64_t> getI64s(llvm::StringRef name, llvm::ArrayRef<int64_t> orElse = {}) const;
  std::optional<llvm::SmallVector<int64_t>> findI64s(llvm::StringRef name) const;
  float getF32(llvm::StringRef name, float orElse = 0.0f) const;
  std::optional<float> findF32(llvm::StringRef name) const;
  llvm::SmallVector<float> getF32s(llvm::StringRef name) const;
  llvm::StringRef getStr(llvm::StringRef name, llvm::StringRef orElse = "") const;
  llvm::SmallVector<llvm::StringRef> getStrs(llvm::StringRef name) const;
  mlir::ElementsAttr getTensor(llvm::StringRef name) const;

  /// Marks an attribute as read without reading it: for one that provably has no meaning here.
  void ignore(llvm::StringRef name) const { (void)get(name); }

  /// Names of the attributes that nothing has read through this view, in the order of the dictionary.
  llvm::SmallVector<llvm::StringRef> unreadAttributes() const;
  /// Fails with an error on the operation when an attribute was not read.
  mlir::LogicalResult checkConsumed() const;

  /// An error at the operation: "Conv node 'conv1': ". Callers append the reason, lower case, without a period.
  mlir::InFlightDiagnostic emitError() const;

private:
  mlir::Operation *op;
  mutable llvm::SmallVector<llvm::StringRef, 8> consumed;
};

/// Starts an error at an operator that names it: "Conv node 'conv1': ".
mlir::InFlightDiagnostic emitNodeError(mlir::Operation *op);

/// Builds an operator with given result types. `attributes` are taken as they are: no defaults are filled in.
mlir::Operation *createOp(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef opType, mlir::TypeRange results,
                          mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes = {});

/// Builds an onnx.constant; the type is the attribute's.
mlir::Value createConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::ElementsAttr value, llvm::StringRef name = "");
/// Builds a rank-1 i64 constant.
mlir::Value createI64s(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> values);
/// Builds a scalar (rank 0) constant of a float type.
mlir::Value createScalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::FloatType type, double value);
mlir::Value createAbsent(mlir::OpBuilder &builder, mlir::Location loc);

} // namespace ogc::onnx

#endif
