//===- GraphImporter.h - graphs, their scopes and their nodes --------------===//
#ifndef OGC_IMPORT_GRAPHIMPORTER_H
#define OGC_IMPORT_GRAPHIMPORTER_H

#include "compiler/dialect/onnx/NodeBuilder.h"
#include "compiler/import/ModelFile.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#include <set>

namespace ogc {

/// Problems found while importing, in the order of the file; equal ones are counted once.
class Problems {
public:
  void add(llvm::Twine text);
  bool empty() const { return texts.empty(); }
  llvm::ArrayRef<std::string> list() const { return texts; }

private:
  std::vector<std::string> texts;
  llvm::StringMap<bool> seen;
};

/// The names of one graph or function, and of the graphs around it. A value that could not be made is bound to null: what uses it
/// is skipped silently, because the cause is reported already.
class Scope {
public:
  explicit Scope(const Scope *parent = nullptr) : parent(parent) {}
  /// Binds a name; false when this very scope has it already.
  bool bind(llvm::StringRef name, mlir::Value value) { return values.try_emplace(name, value).second; }
  /// The names of this very scope.
  llvm::StringSet<> names() const {
    llvm::StringSet<> set;
    for (const auto &entry : values)
      set.insert(entry.getKey());
    return set;
  }
  bool has(llvm::StringRef name) const { return values.contains(name) || (parent && parent->has(name)); }
  mlir::Value lookup(llvm::StringRef name) const;

private:
  const Scope *parent;
  llvm::StringMap<mlir::Value> values;
};

/// Imports graphs and nodes of one model.
class GraphImporter {
public:
  GraphImporter(std::shared_ptr<const ::onnx::ModelProto> model, ExternalData &external, Problems &problems);

  /// Opset versions by domain.
  using Opsets = std::map<std::string, int64_t>;
  /// What a node's names mean besides values: the opsets of the model or function it is in, and the call's attributes in a
  /// function.
  struct Frame {
    Opsets opsets;
    /// Attribute parameters of the function being inlined; null outside of functions.
    const std::map<std::string, mlir::Attribute> *parameters = nullptr;
    /// Names of the calls around, as a prefix of node names: "layer1/".
    std::string prefix;
  };

  const Frame &modelFrame() const { return frame; }

  /// Emits the initializers of a graph as constants and binds them, but for those named in `given`.
  void importInitializers(mlir::OpBuilder &builder, const ::onnx::GraphProto &graph, Scope &scope,
                          const llvm::StringSet<> &given = {});
  void importNodes(mlir::OpBuilder &builder, const google::protobuf::RepeatedPtrField<::onnx::NodeProto> &nodes, Scope &scope,
                   const Frame &frame);
  /// The values a graph gives; null for those that could not be made.
  llvm::SmallVector<mlir::Value> outputsOf(const ::onnx::GraphProto &graph, const Scope &scope, llvm::StringRef where);

private:
  void importNode(mlir::OpBuilder &builder, const ::onnx::NodeProto &proto, Scope &scope, const Frame &frame);
  void inlineCall(mlir::OpBuilder &builder, const ::onnx::NodeProto &proto, const ::onnx::FunctionProto &function, Scope &scope,
                  const Frame &frame);
  void importBodies(mlir::OpBuilder &builder, const ::onnx::NodeProto &proto, const Scope &scope, const Frame &frame,
                    onnx::Node &node, llvm::StringRef where, bool &isComplete);
  std::unique_ptr<mlir::Region> importBody(mlir::OpBuilder &builder, const ::onnx::GraphProto &graph, const Scope &outer,
                                           const Frame &frame, const onnx::Node &node, llvm::StringRef where, bool &isComplete);
  /// Reads a node's inputs; false when one is missing or could not be made.
  bool importInputs(mlir::OpBuilder &builder, const ::onnx::NodeProto &proto, const Scope &scope, llvm::StringRef where,
                    mlir::Location loc, llvm::SmallVectorImpl<mlir::Value> &inputs);
  /// Attributes that are no graphs, with those of the surrounding call resolved; false after a problem.
  bool importAttributes(mlir::MLIRContext *context, const ::onnx::NodeProto &proto, const Frame &frame, llvm::StringRef where,
                        mlir::NamedAttrList &attributes);
  mlir::FailureOr<mlir::ElementsAttr> importInitializer(mlir::MLIRContext *context, const ::onnx::TensorProto &tensor,
                                                        std::string &reason);
  /// Imports the nodes of a function with its inputs bound to those of the call; its outputs.
  llvm::SmallVector<mlir::Value> importFunction(mlir::OpBuilder &builder, const ::onnx::FunctionProto &function,
                                                llvm::ArrayRef<mlir::Value> inputs, const mlir::NamedAttrList &attributes,
                                                const std::string &prefix, mlir::Location loc, llvm::StringRef where);
  /// Says why a call does not fit a function; true when it does.
  bool checkCall(const ::onnx::NodeProto &proto, const ::onnx::FunctionProto &function, const mlir::NamedAttrList &attributes,
                 llvm::StringRef where);
  /// True, with a problem reported, when graphs and calls are nested too deeply to go on.
  bool isTooDeep();
  void bindOutputs(const ::onnx::NodeProto &proto, llvm::ArrayRef<mlir::Value> values, Scope &scope, llvm::StringRef where);
  Opsets readOpsets(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> &list, llvm::StringRef where);

  std::shared_ptr<const ::onnx::ModelProto> model;
  ExternalData &external;
  Problems &problems;
  Frame frame;
  /// By domain, name and overload.
  std::map<std::tuple<std::string, std::string, std::string>, const ::onnx::FunctionProto *> functions;
  std::set<const ::onnx::FunctionProto *> active; ///< functions being inlined
  int64_t numNodes = 0, depth = 0;                ///< depth: of bodies and calls around the node being imported
};

} // namespace ogc

#endif
