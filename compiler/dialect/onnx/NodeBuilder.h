//===- NodeBuilder.h - one ONNX node → one operation in its newest form ---===//
#ifndef OGC_DIALECT_ONNX_NODEBUILDER_H
#define OGC_DIALECT_ONNX_NODEBUILDER_H

#include "compiler/dialect/onnx/OnnxOps.h"
#include "compiler/dialect/onnx/Schemas.h"
#include <memory>
#include <string>

namespace ogc::onnx {

/// An ONNX node on its way into the dialect. Upgrade rules change it in place.
struct Node {
  std::string opType;
  std::string domain;  ///< "" for ai.onnx
  int64_t version = 0; ///< opset version of the model (or function) for this domain
  mlir::Location loc;
  llvm::SmallVector<mlir::Value> inputs; ///< onnx.absent for absent ones
  mlir::NamedAttrList attributes;
  unsigned numOutputs = 1;
  llvm::SmallVector<bool> usedOutputs; ///< false where the output has no name; empty: all used
  llvm::SmallVector<std::unique_ptr<mlir::Region>> bodies;

  bool isOutputUsed(unsigned i) const { return i < numOutputs && (i >= usedOutputs.size() || usedOutputs[i]); }
};

/// Checks a node against the schema of its own version, brings it to the newest form and builds it at the builder's insertion
/// point with inferred result types; a rule may build more than one operation, or none (Identity, Constant). Returns one value an
/// output. On failure `reason` says why, and nothing refers to what was built.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> buildNode(mlir::OpBuilder &builder, Node node, std::string &reason);

/// Why an operator cannot be imported at all: unknown, or not known at this version. Empty when it can.
std::string whyUnknown(llvm::StringRef opType, llvm::StringRef domain, int64_t version);

/// Graph attributes in the order of the operation's regions: {"then_branch", "else_branch"} for If, {"body"} for Loop and Scan.
llvm::ArrayRef<llvm::StringRef> bodyAttributes(llvm::StringRef opType);

} // namespace ogc::onnx

#endif
