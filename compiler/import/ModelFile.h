//===- ModelFile.h - reading a model file and its external data ------------===//
#ifndef OGC_IMPORT_MODELFILE_H
#define OGC_IMPORT_MODELFILE_H

#include "compiler/dialect/onnx/Proto.h"
#include "llvm/Support/MemoryBuffer.h"
#include <map>
#include <memory>
#include <string>

namespace ogc {

/// Parses a model file; null with a reason on one line when it cannot be read or is not an ONNX model.
std::shared_ptr<const ::onnx::ModelProto> readModelFile(llvm::StringRef path, std::string &reason);

/// Maps the files that hold external tensor data, each once.
class ExternalData {
public:
  /// `folder`: where locations are relative to, and which they may not leave. `outputs`: files that are going to be written,
  /// which may not hold any.
  ExternalData(llvm::StringRef folder, llvm::ArrayRef<std::string> outputs)
      : folder(folder.empty() ? "." : folder.str()), outputs(outputs) {}

  /// The bytes of a tensor with external data; `expectedBytes` is its size by type and shape.
  mlir::FailureOr<onnx::TensorBytes> read(const ::onnx::TensorProto &tensor, int64_t expectedBytes, std::string &reason);

private:
  using File = std::shared_ptr<llvm::MemoryBuffer>;
  File open(const std::string &location, std::string &reason);

  std::string folder;
  llvm::ArrayRef<std::string> outputs;
  struct Entry {
    File file;
    std::string reason; ///< why `file` is null
  };
  std::map<std::string, Entry> files;
};

} // namespace ogc

#endif
