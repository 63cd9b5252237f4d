//===- Proto.h - ONNX protobuf ↔ MLIR types, attributes and tensors --------===//
//
// Only this folder and compiler/import include headers of the onnx package.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DIALECT_ONNX_PROTO_H
#define OGC_DIALECT_ONNX_PROTO_H

#include "compiler/dialect/onnx/OnnxDialect.h"
#include "mlir/IR/Builders.h"
#include "onnx/onnx_pb.h"
#include <memory>
#include <string>

namespace ogc::onnx {

/// The element type of a TensorProto::DataType; null for strings and what MLIR has no type for. Signed integers are signless.
mlir::Type importElementType(mlir::MLIRContext *context, int32_t dataType);
/// The TensorProto::DataType of an element type, or UNDEFINED.
int32_t exportElementType(mlir::Type type);
/// The spelling of a TensorProto::DataType for messages: "FLOAT16", or "data type 99".
std::string dataTypeName(int32_t dataType);

/// A ranked tensor, an unranked one where the shape is unknown. Fails with a reason for sequences, optionals, maps and element
/// types that MLIR lacks. Unknown and symbolic dimensions are `?`.
mlir::FailureOr<mlir::TensorType> importType(mlir::MLIRContext *context, const ::onnx::TypeProto &type, std::string &reason);
/// The inverse; a type without a value for none.
::onnx::TypeProto exportType(mlir::Type type);

/// Bytes that outlive the import: `owner` keeps them, and is held by the attribute made of them.
struct TensorBytes {
  llvm::ArrayRef<char> bytes;
  std::shared_ptr<const void> owner;
};

/// Makes an ElementsAttr of a tensor's raw little-endian data. Tensors of 1 KiB and more become a resource over the bytes,
/// without a copy; booleans and 4-bit types are always unpacked. `name` is the wish for the resource's key.
mlir::FailureOr<mlir::ElementsAttr> importRawTensor(mlir::RankedTensorType type, const TensorBytes &data, llvm::StringRef name,
                                                    std::string &reason);

/// Makes an ElementsAttr of a tensor that holds its data itself (raw_data or the typed fields). `owner` keeps `tensor` alive;
/// null: large data is copied.
mlir::FailureOr<mlir::ElementsAttr> importTensor(mlir::MLIRContext *context, const ::onnx::TensorProto &tensor,
                                                 std::shared_ptr<const void> owner, std::string &reason);

/// The dense form of a sparse tensor: values of rank 1, indices into the flat tensor [n] or of each dimension [n, rank],
/// ascending. At most 64 MiB, or eight times what the file holds of it, since few bytes of a file can describe any size.
mlir::FailureOr<mlir::ElementsAttr> densify(mlir::ElementsAttr values, mlir::ElementsAttr indices, llvm::ArrayRef<int64_t> dims,
                                            llvm::StringRef name, std::string &reason);

/// The type of a tensor: checks dimensions (negative, overflow) and the element type.
mlir::FailureOr<mlir::RankedTensorType> importTensorType(mlir::MLIRContext *context, const ::onnx::TensorProto &tensor,
                                                         std::string &reason);
/// Bytes of a tensor's data in ONNX's raw form, 4-bit types packed two a byte.
int64_t rawByteSize(mlir::RankedTensorType type);

/// A tensor proto of a constant for shape inference; null when it has more than `maxElements` elements or an unusual type.
std::unique_ptr<::onnx::TensorProto> exportTensor(mlir::ElementsAttr attr, int64_t maxElements);

/// Attributes other than graphs. Null with a reason for kinds the dialect has no attribute for.
mlir::Attribute importAttribute(mlir::MLIRContext *context, const ::onnx::AttributeProto &attribute,
                                std::shared_ptr<const void> owner, std::string &reason);
/// The inverse; false when the attribute is of no ONNX kind.
bool exportAttribute(llvm::StringRef name, mlir::Attribute value, ::onnx::AttributeProto &attribute);

} // namespace ogc::onnx

#endif
