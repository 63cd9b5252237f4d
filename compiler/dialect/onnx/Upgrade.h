//===- Upgrade.h - from older operator versions to the newest -------------===//
#ifndef OGC_DIALECT_ONNX_UPGRADE_H
#define OGC_DIALECT_ONNX_UPGRADE_H

#include "compiler/dialect/onnx/NodeBuilder.h"
#include <functional>

namespace ogc::onnx {

/// What a rule works on. A rule edits `node`; when it has built the outputs itself it puts them into `outputs`.
struct Upgrade {
  mlir::OpBuilder &builder;
  Node &node;
  std::string &reason;
  llvm::SmallVector<mlir::Value> outputs;

  /// Records why the node cannot be upgraded.
  mlir::LogicalResult fail(const llvm::Twine &why) {
    reason = why.str();
    return mlir::failure();
  }
  /// Builds a further operator with inferred types; null and a reason when its operands do not fit.
  mlir::Value build(llvm::StringRef opType, mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  /// Attributes of the node; `take` also removes them.
  mlir::Attribute take(llvm::StringRef name) { return node.attributes.erase(name); }
  std::optional<int64_t> takeI64(llvm::StringRef name);
  std::optional<llvm::SmallVector<int64_t>> takeI64s(llvm::StringRef name);
  std::optional<float> takeF32(llvm::StringRef name);
  /// The type of an input; null when absent.
  mlir::TensorType inputType(unsigned i) const;
  /// Sets an input, filling the ones before it with onnx.absent.
  void setInput(unsigned i, mlir::Value value);
};

/// Applies all rules for the node's operator that its version is below, oldest first. The defaults of the node's own version are
/// filled in already. A rule of a rename (Upsample → Resize) goes on with the rules of the new operator.
mlir::LogicalResult upgradeNode(Upgrade &upgrade);

} // namespace ogc::onnx

#endif
