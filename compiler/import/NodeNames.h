//===- NodeNames.h - how messages and locations name a node ---------------===//
#ifndef OGC_IMPORT_NODENAMES_H
#define OGC_IMPORT_NODENAMES_H

#include "mlir/IR/Location.h"
#include "onnx/onnx_pb.h"
#include <string>

namespace ogc {

/// "" for the domain that has two names.
std::string canonicalDomain(const std::string &domain);

/// Names of nodes are repeated for everything inside of them: long ones lose their middle.
std::string shorten(std::string name);

/// How messages name a node: "Conv node 'conv1'". `prefix` names the calls around it.
std::string describe(const ::onnx::NodeProto &proto, const std::string &prefix);

/// "conv1 (Conv)"
mlir::Location nodeLocation(mlir::MLIRContext *context, const ::onnx::NodeProto &proto, const std::string &prefix);

} // namespace ogc

#endif
