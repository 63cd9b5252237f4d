//===- FoldConstants.cpp - compute regions over constants -----------------===//
#include "compiler/codegen/cpu/CompileKernels.h"
#include "compiler/codegen/cpu/ConstantData.h"
#include "compiler/codegen/cpu/NativeLayout.h"
#include "compiler/codegen/cpu/Passes.h"
#include "compiler/dialect/kern/RegionText.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include <dlfcn.h>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace ogc {

#define GEN_PASS_DEF_FOLDCONSTANTSPASS
#include "compiler/codegen/cpu/Passes.h.inc"

namespace codegen {
namespace {

/// A shared object opened from memory.
class LoadedObject {
public:
  ~LoadedObject() {
    if (handle)
      dlclose(handle);
    if (file >= 0)
      close(file);
  }

  bool open(ArrayRef<char> image) {
    file = memfd_create("ogc-fold", MFD_CLOEXEC);
    for (size_t done = 0; file >= 0 && done < image.size();) {
      ssize_t written = write(file, image.data() + done, image.size() - done);
      if (written <= 0)
        return false;
      done += written;
    }
    handle = file < 0 ? nullptr : dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
    return handle != nullptr;
  }

  using Entry = void (*)(void *const *buffers, int64_t begin, int64_t end);
  Entry find(const std::string &symbol) { return reinterpret_cast<Entry>(dlsym(handle, symbol.c_str())); }

private:
  int file = -1;
  void *handle = nullptr;
};

/// Whether evaluating a region now costs little: its results are not much larger than its inputs, and no more work is done than a
/// second or so. Others are computed by each run.
bool isWorthFolding(kern::RegionOp region) {
  constexpr int64_t smallBytes = int64_t(16) << 20, mostPoints = int64_t(1) << 30, pointsAnElement = 64;
  auto bytesOf = [](ValueRange values) {
    int64_t bytes = 0;
    for (Value value : values)
      if (auto type = dyn_cast<RankedTensorType>(value.getType()))
        bytes += type.getNumElements() * elementBytes(type.getElementType());
    return bytes;
  };
  int64_t inputs = bytesOf(region.getInputs()), results = bytesOf(region.getOutputs());
  if (results > smallBytes && results / 2 > inputs)
    return false;
  bool isCheap = true;
  region.walk([&](linalg::LinalgOp op) {
    int64_t points = 1;
    for (int64_t extent : op.getStaticLoopRanges())
      isCheap &= !llvm::MulOverflow(points, std::max<int64_t>(extent, 1), points);
    isCheap &= points <= mostPoints || points / pointsAnElement <= inputs;
  });
  return isCheap;
}

class ConstantFolder {
public:
  explicit ConstantFolder(ModuleOp module) : module(module), builder(module.getContext()) {}

  LogicalResult run() {
    for (bool found = true; found;) {
      foldReshapes();
      SmallVector<kern::RegionOp> ready;
      module.walk([&](kern::RegionOp region) {
        if (llvm::all_of(region.getInputs(), [](Value input) { return bool(constantOf(input)); }) && isWorthFolding(region))
          ready.push_back(region);
      });
      found = !ready.empty();
      // Graphs of other shapes fold the same weights: what is equal is computed once and held once.
      SmallVector<kern::RegionOp> general, repeated;
      for (kern::RegionOp region : ready) {
        std::string key = keyOf(region);
        if (!keys.insert(key).second)
          repeated.push_back(region);
        else if (!foldByCopying(region))
          general.push_back(region);
      }
      if (!general.empty() && failed(foldByExecuting(general)))
        return failure();
      for (kern::RegionOp region : repeated)
        replace(region, results.at(keyOf(region)));
    }
    releaseUnused();
    return success();
  }

private:
  static ElementsAttr constantOf(Value value) {
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    return constant ? dyn_cast<ElementsAttr>(constant.getValue()) : ElementsAttr();
  }

  /// Equal keys are equal results: the computation and the identity of its inputs (contents live once in the context).
  static std::string keyOf(kern::RegionOp region) {
    std::string key = kern::textOf(region);
    for (Value input : region.getInputs())
      key += ' ' + std::to_string(reinterpret_cast<uintptr_t>(constantOf(input).getAsOpaquePointer()));
    return key;
  }

  /// A reshape of a constant is the same bytes under another type.
  void foldReshapes() {
    SmallVector<Operation *> reshapes;
    module.walk([&](Operation *op) {
      if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
        reshapes.push_back(op);
    });
    for (Operation *reshape : reshapes) {
      auto type = cast<RankedTensorType>(reshape->getResult(0).getType());
      ElementsAttr value = constantOf(reshape->getOperand(0));
      if (auto dense = dyn_cast_or_null<DenseElementsAttr>(value))
        value = dense.reshape(type);
      else if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(value))
        value = DenseResourceElementsAttr::get(type, resource.getRawHandle());
      else
        continue;
      builder.setInsertionPoint(reshape);
      auto old = reshape->getOperand(0).getDefiningOp<arith::ConstantOp>();
      auto constant = arith::ConstantOp::create(builder, old.getLoc(), value);
      constant->setDiscardableAttrs(old->getDiscardableAttrDictionary());
      reshape->getResult(0).replaceAllUsesWith(constant);
      reshape->erase();
      if (old->use_empty())
        old->erase();
    }
  }

  static FailureOr<SmallVector<ConstantView>> viewInputs(kern::RegionOp region) {
    SmallVector<ConstantView> views;
    for (Value input : region.getInputs()) {
      FailureOr<ConstantView> view = ConstantView::of(constantOf(input));
      if (failed(view))
        return region.emitError() << "constant of type " << input.getType() << " has no data";
      views.push_back(*view);
    }
    return views;
  }

  bool foldByCopying(kern::RegionOp region) {
    FailureOr<SmallVector<ConstantView>> inputs = viewInputs(region);
    if (failed(inputs))
      return false;
    FailureOr<std::vector<TensorBytes>> results = evaluateLayout(region.getBody().front(), *inputs);
    if (failed(results))
      return false;
    replace(region, remember(region, *results));
    return true;
  }

  /// Regions with equal bodies share a kernel; all kernels are compiled together.
  LogicalResult foldByExecuting(ArrayRef<kern::RegionOp> regions) {
    OwningOpRef<ModuleOp> kernels(ModuleOp::create(module.getLoc()));
    builder.setInsertionPointToEnd(kernels->getBody());
    llvm::StringMap<size_t> known;
    SmallVector<size_t> kernelOf;
    for (kern::RegionOp region : regions) {
      // Schedules are selected later; all but programs have a plain form.
      bool isProgram = isa_and_nonnull<kern::ProgramOp>(kern::findAnchor(region.getBody().front()));
      kern::Schedule schedule = region.getSchedule().value_or(isProgram ? kern::Schedule::Program : kern::Schedule::Pointwise);
      std::string name = "fold_" + std::to_string(known.size());
      auto kernel = kern::KernelOp::create(builder, region.getLoc(), name, schedule);
      IRMapping mapping;
      region.getBody().cloneInto(&kernel.getBody(), mapping);
      kernel.setSymName("same");
      std::string text;
      llvm::raw_string_ostream(text) << *kernel.getOperation();
      kernel.setSymName(name);
      auto [entry, isNew] = known.try_emplace(text, known.size());
      if (!isNew)
        kernel.erase();
      kernelOf.push_back(entry->second);
    }
    FailureOr<CpuObject> object = compileKernels(*kernels);
    if (failed(object))
      return failure();
    LoadedObject loaded;
    if (!loaded.open(object->image))
      return module.emitError() << "cannot load the code that folds constants: " << dlerror();
    for (auto [index, region] : llvm::enumerate(regions)) {
      const CpuEntry &entry = object->kernels[kernelOf[index]];
      if (failed(execute(region, loaded.find(entry.symbol), entry.units)))
        return failure();
    }
    return success();
  }

  LogicalResult execute(kern::RegionOp region, LoadedObject::Entry entry, int64_t units) {
    FailureOr<SmallVector<ConstantView>> inputs = viewInputs(region);
    if (failed(inputs) || !entry)
      return failure();
    SmallVector<void *> buffers;
    for (auto [view, input] : llvm::zip_equal(*inputs, region.getInputs()))
      buffers.push_back(const_cast<char *>(view.expand(cast<RankedTensorType>(input.getType()))));
    std::vector<TensorBytes> results;
    for (Value output : region.getOutputs()) {
      auto type = cast<RankedTensorType>(output.getType());
      results.emplace_back(type.getNumElements() * elementBytes(type.getElementType()));
      buffers.push_back(results.back().data());
    }
    entry(buffers.data(), 0, units);
    replace(region, remember(region, results));
    return success();
  }

  using Constants = SmallVector<ElementsAttr, 1>; // one an output

  Constants &remember(kern::RegionOp region, std::vector<TensorBytes> &bytes) {
    Constants constants;
    for (auto [output, data] : llvm::zip_equal(region.getOutputs(), bytes))
      constants.push_back(std::move(data).intoConstant(cast<RankedTensorType>(output.getType())));
    return results[keyOf(region)] = std::move(constants);
  }

  void replace(kern::RegionOp region, ArrayRef<ElementsAttr> constants) {
    builder.setInsertionPoint(region);
    for (auto [output, value] : llvm::zip_equal(region.getOutputs(), constants)) {
      if (output.use_empty())
        continue;
      Value constant = arith::ConstantOp::create(builder, region.getLoc(), value);
      output.replaceAllUsesWith(constant);
    }
    SmallVector<Operation *> producers;
    for (Value input : region.getInputs())
      producers.push_back(input.getDefiningOp());
    region.erase();
    llvm::SmallDenseSet<Operation *> seen;
    for (Operation *producer : producers)
      if (seen.insert(producer).second && producer->use_empty()) {
        if (auto resource = dyn_cast<DenseResourceElementsAttr>(cast<arith::ConstantOp>(producer).getValue()))
          dropped.push_back(resource);
        producer->erase();
      }
  }

  /// Frees the memory of constants that no operation holds any more.
  void releaseUnused() {
    // By key: constants of different types may hold the same memory.
    llvm::StringSet<> alive;
    module.walk([&](Operation *op) {
      for (NamedAttribute attribute : op->getAttrs())
        if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute.getValue()))
          alive.insert(resource.getRawHandle().getKey());
      if (auto constant = dyn_cast<arith::ConstantOp>(op))
        if (auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue()))
          alive.insert(resource.getRawHandle().getKey());
    });
    auto &manager = DenseResourceElementsHandle::getManagerInterface(module.getContext());
    for (DenseResourceElementsAttr resource : dropped)
      if (!alive.contains(resource.getRawHandle().getKey()))
        manager.getBlobManager().update(resource.getRawHandle().getKey(), AsmResourceBlob());
  }

  ModuleOp module;
  OpBuilder builder;
  SmallVector<DenseResourceElementsAttr> dropped;
  llvm::StringSet<> keys;                   // of all regions folded so far
  std::map<std::string, Constants> results; // by key
};

} // namespace
} // namespace codegen

namespace {

struct FoldConstants : impl::FoldConstantsPassBase<FoldConstants> {
  void runOnOperation() override {
    if (failed(codegen::ConstantFolder(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace ogc
