//===- BundleWriter.cpp - cg module and compiled code to model.ogc --------===//
#include "compiler/bundle/BundleWriter.h"

#include "compiler/bundle/ElementTypes.h"
#include "compiler/bundle/ManifestBuilder.h"
#include "runtime_lib/format/Bundle.h"
#include "runtime_lib/format/Checksum.h"
#include "runtime_lib/format/FileHeader.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace mlir;

namespace ogc::bundle {

namespace {

/// A file that gets its name when it is complete. Without one, bytes only go into checksums.
class OutputFile {
public:
  /// Opens a temporary file beside `path`.
  llvm::Error open(StringRef path) {
    path_ = path.str();
    llvm::Expected<llvm::sys::fs::TempFile> file =
        llvm::sys::fs::TempFile::create(path + ".tmp-%%%%%%%%", llvm::sys::fs::all_read | llvm::sys::fs::owner_write);
    if (!file)
      return file.takeError();
    file_.emplace(std::move(*file));
    stream_ = std::make_unique<llvm::raw_fd_ostream>(file_->FD, /*shouldClose=*/false);
    return llvm::Error::success();
  }
  ~OutputFile() {
    if (stream_)
      flush(); // a stream that is destroyed with an error ends the program
    stream_.reset();
    if (file_)
      llvm::consumeError(file_->discard());
  }

  void write(const void *data, size_t size) {
    if (stream_)
      stream_->write(static_cast<const char *>(data), size);
    position_ += size;
  }
  void padTo(uint64_t position) {
    static const char zeros[4096] = {};
    while (position_ < position)
      write(zeros, std::min<uint64_t>(sizeof zeros, position - position_));
  }
  uint64_t position() const { return position_; }
  const std::string &temporaryName() const { return file_->TmpName; }

  /// Writes `header` over the first bytes.
  void writeHeader(const format::FileHeader &header) {
    stream_->pwrite(reinterpret_cast<const char *>(&header), sizeof header, 0);
  }
  std::error_code flush() {
    stream_->flush();
    std::error_code error = stream_->error();
    stream_->clear_error();
    return error;
  }
  llvm::Error keep() {
    stream_.reset();
    llvm::Error error = file_->keep(path_);
    if (!error)
      file_.reset();
    return error;
  }

private:
  std::string path_;
  std::optional<llvm::sys::fs::TempFile> file_;
  std::unique_ptr<llvm::raw_fd_ostream> stream_;
  uint64_t position_ = 0;
};

/// Writes the weights section, and takes its checksum on the way.
class WeightsStream {
public:
  explicit WeightsStream(OutputFile &out) : out_(out), begin_(out.position()) {}

  LogicalResult write(ModuleOp module, uint64_t totalBytes) {
    SmallVector<cg::WeightOp> weights;
    for (auto weight : module.getOps<cg::WeightOp>())
      if (cast<ShapedType>(weight.getValue().getType()).getNumElements() != 0)
        weights.push_back(weight);
    llvm::sort(weights, [](cg::WeightOp a, cg::WeightOp b) { return a.getOffsetBytes() < b.getOffsetBytes(); });
    for (cg::WeightOp weight : weights) {
      if (static_cast<uint64_t>(weight.getOffsetBytes()) < written())
        return weight.emitOpError() << "overlaps the weight before it";
      padTo(static_cast<uint64_t>(weight.getOffsetBytes()));
      if (failed(writeValue(weight)))
        return failure();
    }
    padTo(totalBytes);
    return success();
  }
  uint64_t checksum() const { return checksum_.value(); }

private:
  uint64_t written() const { return out_.position() - begin_; }
  void put(const void *data, size_t size) {
    out_.write(data, size);
    checksum_.update(data, size);
  }
  void padTo(uint64_t position) {
    static const char zeros[4096] = {};
    while (written() < position)
      put(zeros, std::min<uint64_t>(sizeof zeros, position - written()));
  }

  LogicalResult writeValue(cg::WeightOp op) {
    ElementsAttr value = op.getValue();
    auto type = cast<ShapedType>(value.getType());
    std::optional<format::DataType> element = dataTypeOf(type.getElementType());
    if (!element)
      return op.emitOpError() << "uses element type " << type.getElementType() << ", which a bundle cannot hold";
    uint64_t elementBytes = format::elementBytes(*element), bytes = static_cast<uint64_t>(type.getNumElements()) * elementBytes;
    if (auto dense = dyn_cast<DenseElementsAttr>(value))
      return writeDense(op, dense, *element, bytes);
    auto resource = dyn_cast<DenseResourceElementsAttr>(value);
    const AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
    if (!blob)
      return op.emitOpError() << "has a value without data";
    if (blob->getData().size() != bytes)
      return op.emitOpError() << "has " << blob->getData().size() << " bytes of data, expected " << bytes;
    put(blob->getData().data(), bytes);
    return success();
  }

  LogicalResult writeDense(cg::WeightOp op, DenseElementsAttr dense, format::DataType element, uint64_t bytes) {
    uint64_t elementBytes = format::elementBytes(element);
    if (element == format::DataType::Bool) { // MLIR packs these into bits
      if (dense.isSplat())
        return putRepeated({static_cast<char>(dense.getSplatValue<bool>())}, bytes);
      std::vector<char> expanded;
      expanded.reserve(bytes);
      for (bool bit : dense.getValues<bool>())
        expanded.push_back(bit);
      put(expanded.data(), expanded.size());
      return success();
    }
    ArrayRef<char> raw = dense.getRawData();
    if (!dense.isSplat()) {
      if (raw.size() != bytes)
        return op.emitOpError() << "has " << raw.size() << " bytes of data, expected " << bytes;
      put(raw.data(), bytes);
      return success();
    }
    return putRepeated(raw.take_front(elementBytes), bytes);
  }

  /// One element again and again, `bytes` in all, without a copy of them all in memory.
  LogicalResult putRepeated(ArrayRef<char> element, uint64_t bytes) {
    std::vector<char> chunk;
    for (uint64_t filled = 0; filled < std::min<uint64_t>(bytes, 4096); filled += element.size())
      chunk.insert(chunk.end(), element.begin(), element.end());
    for (uint64_t left = bytes; left != 0; left -= std::min<uint64_t>(left, chunk.size()))
      put(chunk.data(), std::min<uint64_t>(left, chunk.size()));
    return success();
  }

  OutputFile &out_;
  uint64_t begin_;
  format::Checksum checksum_;
};

class BundleWriter {
public:
  BundleWriter(ModuleOp module, const BundleParts &parts, StringRef path) : module_(module), parts_(parts), path_(path.str()) {}

  LogicalResult run() {
    if (failed(open(out_, path_)))
      return failure();
    out_.padTo(sizeof(format::FileHeader));
    for (const CubinImage &cubin : parts_.cubins)
      writeBlob(fb::BlobKind::Cubin, cubin.arch, cubin.bytes);
    if (!parts_.sharedObject.empty())
      writeBlob(fb::BlobKind::SharedObject, parts_.cpuTriple, parts_.sharedObject);
    if (failed(writeWeights()) || failed(writeManifest()))
      return failure();
    return keepAll();
  }

private:
  LogicalResult fail(const llvm::Twine &what) { return module_.emitError() << "cannot write '" << path_ << "': " << what; }

  LogicalResult open(OutputFile &file, const std::string &path) {
    if (llvm::Error error = file.open(path))
      return fail(llvm::toString(std::move(error)));
    return success();
  }

  void writeBlob(fb::BlobKind kind, const std::string &name, StringRef bytes) {
    out_.padTo(format::alignUp(out_.position()));
    blobs_.push_back({kind, name, out_.position(), bytes.size(), format::checksum(bytes.data(), bytes.size())});
    out_.write(bytes.data(), bytes.size());
  }

  LogicalResult writeWeights() {
    uint64_t bytes = sizes_.of(cg::Section::Weights);
    if (parts_.weightsMode == WeightsMode::Inline) {
      out_.padTo(format::alignUp(out_.position()));
      uint64_t offset = out_.position();
      if (failed(streamWeights(out_, bytes)))
        return failure();
      if (bytes != 0)
        blobs_.push_back({fb::BlobKind::Weights, "weights", offset, bytes, weightsChecksum_});
      return success();
    }
    if (parts_.weightsMode == WeightsMode::External && bytes != 0) {
      external_.emplace();
      return failure(failed(open(*external_, path_ + ".weights")) || failed(streamWeights(*external_, bytes)));
    }
    OutputFile nowhere;
    return streamWeights(nowhere, bytes);
  }

  LogicalResult streamWeights(OutputFile &file, uint64_t bytes) {
    WeightsStream stream(file);
    LogicalResult result = stream.write(module_, bytes);
    weightsChecksum_ = stream.checksum();
    return result;
  }

  LogicalResult writeManifest() {
    ManifestBuilder manifest(module_, parts_);
    if (failed(manifest.build(blobs_, sizes_, weightsChecksum_)))
      return failure();
    out_.padTo(format::alignUp(out_.position()));
    format::FileHeader header = {};
    std::memcpy(header.magic, format::kMagic, sizeof header.magic);
    header.version = format::kFormatVersion;
    header.headerBytes = sizeof header;
    header.manifestOffset = out_.position();
    header.manifestBytes = manifest.bytes().size();
    header.manifestChecksum = format::checksum(manifest.bytes().data(), manifest.bytes().size());
    header.fileBytes = header.manifestOffset + header.manifestBytes;
    header.headerChecksum = format::checksum(&header, offsetof(format::FileHeader, headerChecksum));
    out_.write(manifest.bytes().data(), manifest.bytes().size());
    out_.writeHeader(header);
    return success();
  }

  /// Flushes, reads the bundle back through its verifier, and gives the files their names.
  LogicalResult keepAll() {
    if (std::error_code error = out_.flush())
      return fail(error.message());
    if (external_)
      if (std::error_code error = external_->flush())
        return fail(error.message());
    format::OpenOptions options;
    options.checkWeights = false;
    Result<std::shared_ptr<const format::Bundle>> bundle = format::Bundle::open(out_.temporaryName(), options);
    if (!bundle.ok())
      return fail("the module makes no valid bundle: " + bundle.status().message());
    if (Status accepted = parts_.accept ? parts_.accept(*bundle.value()) : Status(); !accepted.ok())
      return fail(accepted.message());
    if (external_)
      if (llvm::Error error = external_->keep())
        return fail(llvm::toString(std::move(error)));
    if (llvm::Error error = out_.keep())
      return fail(llvm::toString(std::move(error)));
    return success();
  }

  ModuleOp module_;
  const BundleParts &parts_;
  std::string path_;
  SectionSizes sizes_ = sectionSizes(module_);
  OutputFile out_;
  std::optional<OutputFile> external_;
  std::vector<WrittenBlob> blobs_;
  uint64_t weightsChecksum_ = 0;
};

} // namespace

LogicalResult writeBundle(ModuleOp module, const BundleParts &parts, StringRef path) {
  return BundleWriter(module, parts, path).run();
}

} // namespace ogc::bundle
