//===- Schemas.h - the operator schemas of the onnx package ---------------===//
//
// Only this folder and compiler/import include headers of the onnx package.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DIALECT_ONNX_SCHEMAS_H
#define OGC_DIALECT_ONNX_SCHEMAS_H

#include "onnx/defs/schema.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace ogc::onnx {

/// The newest schema of every operator of ai.onnx and com.microsoft that is not deprecated, ordered by name.
const std::vector<const ::onnx::OpSchema *> &newestSchemas();

/// The name of an operator in the dialect: "Conv", "com.microsoft.FusedConv".
std::string qualifiedName(const ::onnx::OpSchema &schema);
std::string qualifiedName(llvm::StringRef opType, llvm::StringRef domain);

/// The newest schema of an operator named as in the dialect, or null. Deprecated operators have none.
const ::onnx::OpSchema *findNewestSchema(llvm::StringRef opType);

/// The schema that a model of the given opset version means, or null. The ai.onnx domain is "".
const ::onnx::OpSchema *findSchema(llvm::StringRef opType, llvm::StringRef domain, int64_t version);

/// The newest opset version that the onnx package knows for the ai.onnx domain.
int64_t newestOpset();

/// True when the operator draws random numbers.
bool isRandom(const ::onnx::OpSchema &schema);
/// The graph attributes that a node must have; they become regions. Optional ones (the modifiers of FlexAttention) are not
/// supported.
unsigned countBodies(const ::onnx::OpSchema &schema);

} // namespace ogc::onnx

#endif
