//===- ModelFile.cpp - reading a model file and its external data ----------===//
#include "compiler/import/ModelFile.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/stubs/logging.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace ogc {
namespace {

using MappedFile = llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>>;

/// Maps a whole file. No terminating zero is asked for, which would make LLVM copy files of some sizes.
MappedFile mapFile(llvm::StringRef path) {
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return error;
  if (llvm::sys::fs::is_directory(status))
    return std::make_error_code(std::errc::is_a_directory);
  return llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
}

/// Protobuf writes its complaints to stderr; ours say what matters.
class SilenceProtobuf {
public:
  SilenceProtobuf() : old(google::protobuf::SetLogHandler(nullptr)) {}
  ~SilenceProtobuf() { google::protobuf::SetLogHandler(old); }

private:
  google::protobuf::LogHandler *old;
};

bool parse(::onnx::ModelProto &model, const llvm::MemoryBuffer &file) {
  SilenceProtobuf silence;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(file.getBufferStart()),
                                                static_cast<int>(file.getBufferSize()));
  return model.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

} // namespace

std::shared_ptr<const ::onnx::ModelProto> readModelFile(llvm::StringRef path, std::string &reason) {
  MappedFile file = mapFile(path);
  if (!file) {
    reason = file.getError().message();
    return nullptr;
  }
  size_t size = (*file)->getBufferSize();
  if (size == 0) {
    reason = "the file is empty";
    return nullptr;
  }
  if (size > static_cast<size_t>(std::numeric_limits<int>::max())) {
    reason = "the file is larger than 2 GiB, which protobuf cannot hold: keep the weights as external data";
    return nullptr;
  }
  auto model = std::make_shared<::onnx::ModelProto>();
  if (!parse(*model, **file)) {
    reason = "not an ONNX model, or a truncated one: the protobuf data cannot be parsed";
    return nullptr;
  }
  if (!model->has_graph()) {
    reason = "not an ONNX model: it holds no graph";
    return nullptr;
  }
  return model;
}

ExternalData::File ExternalData::open(const std::string &location, std::string &reason) {
  auto [it, isNew] = files.try_emplace(location);
  Entry &entry = it->second;
  if (isNew) {
    llvm::SmallString<256> path(folder), realFolder, realPath;
    llvm::sys::path::append(path, location);
    bool leaves = llvm::sys::path::is_absolute(location);
    for (llvm::StringRef part : llvm::make_range(llvm::sys::path::begin(location), llvm::sys::path::end(location)))
      leaves |= part == "..";
    // Links count by what they point to.
    if (!leaves && !llvm::sys::fs::real_path(folder, realFolder) && !llvm::sys::fs::real_path(path, realPath)) {
      if (llvm::sys::path::root_directory(realFolder) != realFolder)
        realFolder += llvm::sys::path::get_separator();
      leaves = !realPath.str().starts_with(realFolder);
    }
    if (location.empty() || leaves) {
      entry.reason = "external data location '" + location + "' is outside the model's folder";
    } else if (llvm::any_of(outputs, [&](const std::string &output) { return llvm::sys::fs::equivalent(path, output); })) {
      entry.reason = "external data file '" + path.str().str() + "' cannot be read: it is the output";
    } else if (MappedFile file = mapFile(path)) {
      entry.file = std::move(*file);
    } else {
      entry.reason = "external data file '" + path.str().str() + "' cannot be read: " + file.getError().message();
    }
  }
  if (!entry.file)
    reason = entry.reason;
  return entry.file;
}

FailureOr<onnx::TensorBytes> ExternalData::read(const ::onnx::TensorProto &tensor, int64_t expectedBytes, std::string &reason) {
  std::string location;
  int64_t offset = 0, length = expectedBytes;
  for (const auto &entry : tensor.external_data()) {
    llvm::StringRef value(entry.value());
    bool isBad = false;
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset")
      isBad = value.getAsInteger(10, offset) || offset < 0;
    else if (entry.key() == "length")
      isBad = value.getAsInteger(10, length) || length < 0;
    if (isBad) {
      reason = "external data " + entry.key() + " '" + entry.value() + "' is not a size in bytes";
      return failure();
    }
  }
  if (length != expectedBytes) {
    reason = "has " + std::to_string(length) + " bytes of external data, expected " + std::to_string(expectedBytes);
    return failure();
  }
  File file = open(location, reason);
  if (!file)
    return failure();
  int64_t size = static_cast<int64_t>(file->getBufferSize());
  if (offset > size || length > size - offset) {
    reason = "external data file '" + location + "' has " + std::to_string(size) + " bytes, expected at least " +
             std::to_string(offset) + " + " + std::to_string(length);
    return failure();
  }
  return onnx::TensorBytes{llvm::ArrayRef<char>(file->getBufferStart() + offset, length), file};
}

} // namespace ogc
