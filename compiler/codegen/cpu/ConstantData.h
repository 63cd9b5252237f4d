//===- ConstantData.h - the bytes of tensor constants ---------------------===//
#ifndef OGC_CODEGEN_CPU_CONSTANTDATA_H
#define OGC_CODEGEN_CPU_CONSTANTDATA_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include <memory>
#include <vector>

namespace ogc::codegen {

/// Bytes of one element in a buffer; booleans take a whole one.
int64_t elementBytes(mlir::Type element);

/// Memory of a tensor under evaluation: 64-byte aligned, not initialised.
class TensorBytes {
public:
  explicit TensorBytes(int64_t size);
  TensorBytes(TensorBytes &&other) noexcept : memory(std::exchange(other.memory, nullptr)), count(other.count) {}
  TensorBytes(const TensorBytes &) = delete;
  TensorBytes &operator=(const TensorBytes &) = delete;
  ~TensorBytes();
  char *data() { return memory; }
  int64_t size() const { return count; }

  /// Turns the bytes into a constant of `type` without copying (small ones are copied into the context).
  mlir::ElementsAttr intoConstant(mlir::RankedTensorType type) &&;

private:
  char *memory;
  int64_t count;
};

/// Read access to the row-major elements of a constant. A splat is one element.
struct ConstantView {
  const char *data = nullptr;
  bool isSplat = false;
  /// Holds the bytes where the attribute does not have them in this form (packed booleans).
  std::shared_ptr<TensorBytes> owner;

  /// Failure for attributes that are neither dense nor a resource.
  static mlir::FailureOr<ConstantView> of(mlir::ElementsAttr value);

  /// All bytes; a splat is written out into `owner`.
  const char *expand(mlir::RankedTensorType type);
};

} // namespace ogc::codegen

#endif
