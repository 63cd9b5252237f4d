//===- ContributedSchema.h - building schemas of com.microsoft operators --===//
//
// The onnx package knows no operator of com.microsoft. Those that onnxruntime's optimizer and quantizers write are described here
// (files Contributed*.cpp): operands, attributes, inference, and most of them by a body of ai.onnx operators, written for the
// operands they have (ogc-expand-functions runs on static shapes). What a body does not cover it refuses with a reason.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DIALECT_ONNX_CONTRIBUTEDSCHEMA_H
#define OGC_DIALECT_ONNX_CONTRIBUTEDSCHEMA_H

#include "onnx/defs/schema.h"
#include "onnx/defs/shape_inference.h"
#include "onnx/defs/tensor_proto_util.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <functional>
#include <string>
#include <vector>

namespace ogc::onnx::contributed {

using Dims = std::vector<int64_t>;

/// What a body is written for; also shows constant operands.
class BodyContext : public ::onnx::FunctionBodyBuildContext {
public:
  virtual const ::onnx::TensorProto *getInputData(int input) const = 0;
  virtual int numInputs() const = 0;
};

/// A function body being written: what the operator looks like here, and its nodes as text in the onnx package's syntax.
/// Operands and results have the names of the schema.
class Body {
public:
  Body(const BodyContext &context, const ::onnx::OpSchema &schema, ::onnx::FunctionProto &proto)
      : context(context), schema(schema), proto(proto) {}

  bool has(llvm::StringRef input) const;
  bool hasOutput(llvm::StringRef output) const;
  /// Operands of a variadic parameter, which must be the last: how many, and the name of the i-th.
  int variadicCount(llvm::StringRef input) const;
  std::string variadicName(llvm::StringRef input, int i) const;
  /// The static shape of an operand.
  Dims shape(llvm::StringRef input) const;
  int64_t rank(llvm::StringRef input) const { return static_cast<int64_t>(shape(input).size()); }
  /// TensorProto.DataType of an operand.
  int32_t type(llvm::StringRef input) const;
  /// The value of an operand that is a constant of one int32 element.
  int64_t constantInteger(llvm::StringRef input, int64_t otherwise) const;
  /// An attribute; the schema's default when the operator leaves it out.
  int64_t integer(llvm::StringRef name, int64_t otherwise = 0) const;
  float real(llvm::StringRef name, float otherwise = 0) const;
  std::string text(llvm::StringRef name) const;
  std::vector<float> reals(llvm::StringRef name) const;
  Dims integers(llvm::StringRef name) const;

  /// Adds nodes: "y = Relu (x)".
  void add(const llvm::Twine &nodes);
  /// Adds an int64 vector or a float scalar of the type of `like` and returns its name.
  std::string ints(llvm::ArrayRef<int64_t> values);
  std::string scalar(double value, llvm::StringRef like);
  std::string scalar(double value);
  /// A name that no other value has.
  std::string fresh(llvm::StringRef base = "t");
  /// "op (arguments)" under a fresh name.
  std::string make(const llvm::Twine &expression);
  std::string reshape(llvm::StringRef value, llvm::ArrayRef<int64_t> shape);
  std::string transpose(llvm::StringRef value, llvm::ArrayRef<int64_t> permutation);
  /// value[begin, end) of one dimension.
  std::string slice(llvm::StringRef value, int64_t axis, int64_t begin, int64_t end);
  /// The value through an activation named as in fused operators ("" and "Relu", …); parameters by position.
  std::string activate(llvm::StringRef value, llvm::StringRef activation, llvm::ArrayRef<float> parameters);

  /// Ends the expansion: why the operator cannot be expanded.
  [[noreturn]] void refuse(const llvm::Twine &reason) const;

private:
  int indexOf(llvm::StringRef input) const;

  const BodyContext &context;
  const ::onnx::OpSchema &schema;
  ::onnx::FunctionProto &proto;
  unsigned numNames = 0;
};

/// The opset that bodies are written for.
constexpr int bodyOpset = 24;
/// True for schemas from addSchema.
bool isContributed(const ::onnx::OpSchema &schema);

using Infer = void (*)(::onnx::InferenceContext &);
using WriteBody = void (*)(Body &);

/// A schema of com.microsoft (or of ai.onnx, for what onnxruntime adds there), version 1.
///
/// Operands and results are words "name:type"; a "?" after the name marks an optional one, a "*" a variadic one. Types are
/// element types ("float", "uint8"), or variables by their first letter: F any float, Q 2- to 16-bit integers and 8-bit floats, I
/// int32 or int64, A anything. Attributes are words "name:kind=default", kinds i, f, s, is, fs; without a default they may be
/// left out, with "!" they may not.
void addSchema(llvm::StringRef name, llvm::StringRef inputs, llvm::StringRef outputs, llvm::StringRef attributes, Infer infer,
               WriteBody body = nullptr, llvm::StringRef domain = "com.microsoft", int version = 1);

// Inference used by many.
/// Result 0 is like operand 0.
void inferLikeFirst(::onnx::InferenceContext &context);
/// The shape of an operand when rank and all extents are known, else nothing.
bool knownShape(::onnx::InferenceContext &context, size_t input, Dims &shape);
/// The shape of an operand with -1 for unknown extents; false when the rank is unknown.
bool partialShape(::onnx::InferenceContext &context, size_t input, Dims &shape);
void setShape(::onnx::InferenceContext &context, size_t output, llvm::ArrayRef<int64_t> shape);

/// Ends inference: the operator cannot be as it is.
template <typename... Parts> [[noreturn]] void fail(const Parts &...parts) {
  throw ::onnx::InferenceError(::onnx::MakeString(parts...));
}

/// The literal of a float with a decimal point.
std::string literal(double value);
/// "[1, 2]".
std::string listOf(llvm::ArrayRef<int64_t> values);

// One function for each file.
void addElementwiseSchemas();
void addNormalizationSchemas();
void addAttentionSchemas();
void addCacheSchemas();
void addQuantizedSchemas();
void addBlockQuantizedSchemas();

} // namespace ogc::onnx::contributed

#endif
