//===- EmitVectorChain.cpp - vectors of an image, one after the other -------===//
//
// Stage by stage: the sums of a stage lie in scratch until all are there, then one loop computes what later stages and the
// results take from them.
//
#include "compiler/analysis/Combiner.h"
#include "compiler/analysis/VectorChain.h"
#include "compiler/codegen/cpu/Contraction.h"
#include "compiler/codegen/scalar/RowPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace ogc::codegen {

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {

class ChainEmitter {
public:
  ChainEmitter(KernelFunction &kernel, const VectorChain &chain)
      : kernel(kernel), chain(chain), builder(kernel.builder), loc(kernel.loc) {
    Type f32 = builder.getF32Type();
    for (auto [i, stage] : llvm::enumerate(chain.stages)) {
      int64_t panel = stage.isProduct ? tensorType(stage.weights()).getDimSize(2) : 1;
      sums.push_back(kernel.scratch(f32, (stage.length + panel - 1) / panel * panel));
      bool isOutside = stage.isProduct && chain.vectorOf[i] < 0;
      outside.push_back(isOutside ? kernel.scratch(f32, stage.depth) : Value());
    }
    for (const ChainValue &value : chain.vectors)
      vectors.push_back(kernel.scratch(f32, chain.stages[value.lastStage()].length));
  }

  /// Sums alone are computed for some channels at a time, so that the threads share the image.
  static constexpr int64_t channelsPerUnit = 64;
  int64_t unitsPerImage() const {
    return chain.hasProduct() ? 1 : (chain.stages.front().length + channelsPerUnit - 1) / channelsPerUnit;
  }

  LogicalResult emit(Value unit) {
    SmallVector<Value> at = kernel.math().delinearize(loc, unit, {chain.images, unitsPerImage()});
    Value image = at[0];
    first = kernel.math().mul(loc, at[1], channelsPerUnit);
    for (unsigned i = 0; i < chain.stages.size(); ++i)
      if (failed(chain.stages[i].isProduct ? emitProduct(i, image) : emitReduction(i, image)) || failed(emitResult(i, image)))
        return failure();
    return success();
  }

private:
  /// Runs `body` for the elements of a vector that the unit computes.
  LogicalResult forElements(int64_t length, function_ref<LogicalResult(Value)> body) {
    if (unitsPerImage() == 1)
      return kernel.loop(kernel.constant(0), kernel.constant(length), 1, body);
    Value last = arith::MinUIOp::create(builder, loc, kernel.math().add(loc, first, channelsPerUnit), kernel.constant(length));
    return kernel.loop(first, last, 1, body);
  }

  /// The indices of element `n` of the image's part of a tensor.
  SmallVector<Value> positionOf(Value value, Value image, Value n) {
    int64_t length = tensorType(value).getNumElements() / chain.images;
    Value position = chain.images > 1 ? kernel.math().linearize(loc, {image, n}, {chain.images, length}) : n;
    return kernel.math().delinearize(loc, position, tensorType(value).getShape());
  }

  Value toF32(Value element) {
    Type f32 = builder.getF32Type();
    return element.getType() == f32 ? element : arith::ExtFOp::create(builder, loc, f32, element).getResult();
  }

  RowReduction reductionOf(unsigned number) {
    auto op = cast<linalg::LinalgOp>(chain.stages[number].op);
    return {op, {findCombiner(op, 0)}};
  }

  /// Pixels outermost, so that the inner loop runs along the channels.
  LogicalResult emitReduction(unsigned number, Value image) {
    const VectorStage &stage = chain.stages[number];
    RowReduction reduction = reductionOf(number);
    LogicalResult started = forElements(stage.length, [&](Value channel) {
      memref::StoreOp::create(builder, loc, RowPlan::neutral(builder, reduction).front(), sums[number], channel);
      return success();
    });
    SmallVector<int64_t> pixels(reduction.op.getStaticLoopRanges());
    pixels.erase(pixels.begin(), pixels.begin() + 2);
    LogicalResult summed = kernel.loop(kernel.constant(0), kernel.constant(stage.depth), 1, [&](Value pixel) {
      return forElements(stage.length, [&](Value channel) -> LogicalResult {
        SmallVector<Value> loops{image, channel};
        llvm::append_range(loops, kernel.math().delinearize(loc, pixel, pixels));
        Value element = kernel.emitter.emitOperand(reduction.op, *reduction.op.getDpsInputOperand(0), loops);
        Value sum = memref::LoadOp::create(builder, loc, sums[number], channel);
        SmallVector<Value> next = element ? kernel.emitter.emitBody(reduction.op, loops, {element}, {sum}) : SmallVector<Value>();
        if (next.empty())
          return failure();
        memref::StoreOp::create(builder, loc, next.front(), sums[number], channel);
        return success();
      });
    });
    return success(succeeded(started) && succeeded(summed));
  }

  LogicalResult emitProduct(unsigned number, Value image) {
    const VectorStage &stage = chain.stages[number];
    IndexMath &math = kernel.math();
    Value zero = kernel.constant(0), row = outside[number] ? outside[number] : vectors[chain.vectorOf[number]];
    if (outside[number] && failed(kernel.loop(zero, kernel.constant(stage.depth), 1, [&](Value k) -> LogicalResult {
          Value element = kernel.emitter.emit(stage.input(), positionOf(stage.input(), image, k));
          if (!element)
            return failure();
          memref::StoreOp::create(builder, loc, toF32(element), row, k);
          return success();
        })))
      return failure();
    ArrayRef<int64_t> shape = tensorType(stage.weights()).getShape(); // panels, depth, width
    MicroTile tile = MicroTile::choose(kernel.target, 1, shape[2]);
    return kernel.loop(zero, kernel.constant(shape[0]), 1, [&](Value panel) {
      return kernel.loop(zero, kernel.constant(shape[2]), tile.columns(), [&](Value strip) -> LogicalResult {
        PanelSource source{kernel.input(stage.weights()), math.add(loc, math.mul(loc, panel, shape[1] * shape[2]), strip),
                           shape[2]};
        SmallVector<Value> totals = emitSteps(kernel, tile, zeroTile(kernel, tile), RowSource{row, {zero}}, source, shape[1]);
        Value column = math.add(loc, math.mul(loc, panel, shape[2]), strip);
        for (auto [v, total] : llvm::enumerate(totals))
          vector::StoreOp::create(builder, loc, total, sums[number], math.add(loc, column, static_cast<int64_t>(v) * tile.lanes));
        return success();
      });
    });
  }

  /// What later stages read and what is stored of the values that this stage completes.
  LogicalResult emitResult(unsigned number, Value image) {
    return forElements(chain.stages[number].length, [&](Value n) -> LogicalResult {
      auto emitValue = [&](const ChainValue &value) -> Value {
        for (unsigned stage : value.stages)
          if (!bindSum(stage, n))
            return {};
        return kernel.emitter.emit(value.value, positionOf(value.value, image, n));
      };
      for (auto [value, buffer] : llvm::zip_equal(chain.vectors, vectors)) {
        if (value.lastStage() != number)
          continue;
        Value element = emitValue(value);
        if (!element)
          return failure();
        memref::StoreOp::create(builder, loc, toF32(element), buffer, n);
      }
      for (const ChainValue &value : chain.results) {
        if (value.lastStage() != number)
          continue;
        Value element = emitValue(value);
        if (!element)
          return failure();
        kernel.store(value.number, element, positionOf(value.value, image, n));
      }
      return success();
    });
  }

  bool bindSum(unsigned number, Value n) {
    Value sum = memref::LoadOp::create(builder, loc, sums[number], n);
    if (!chain.stages[number].isProduct) { // what the sum starts from
      RowReduction reduction = reductionOf(number);
      Value start = kernel.emitter.emitOperand(reduction.op, *reduction.op.getDpsInitOperand(0),
                                               SmallVector<Value>(reduction.op.getNumLoops(), n));
      if (!start)
        return false;
      sum = RowPlan::combine(builder, reduction, 0, start, sum);
    }
    kernel.emitter.bindScalar(chain.stages[number].op->getResult(0), sum);
    return true;
  }

  KernelFunction &kernel;
  const VectorChain &chain;
  OpBuilder &builder;
  Location loc;
  Value first;                               ///< element of the unit
  SmallVector<Value> sums, outside, vectors; ///< scratch; `outside` is null for rows that the chain computes
};

} // namespace

Emitted emitVectorChain(KernelFunction &kernel) {
  FailureOr<VectorChain> chain = VectorChain::analyze(kernel.body());
  if (failed(chain)) {
    kernel.kernel.emitOpError("has schedule vector_chain, but no stages of vectors");
    return Emitted::Failed;
  }
  ChainEmitter emitter(kernel, *chain);
  kernel.units = chain->images * emitter.unitsPerImage();
  return succeeded(kernel.loop(kernel.begin, kernel.end, 1, [&](Value unit) { return emitter.emit(unit); })) ? Emitted::Yes
                                                                                                             : Emitted::Failed;
}

} // namespace ogc::codegen
