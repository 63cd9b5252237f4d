//===- TensorInterpreter.h - evaluates tensor functions on doubles --------===//
//
// A slow and plain evaluator of what the fuse phase reads and writes, to compare a function before and after passes. It shares no
// code with the compiler's own code generation. Uninitialised tensors hold NaN, so that reading one shows.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_TEST_UNIT_TENSORINTERPRETER_H
#define OGC_TEST_UNIT_TENSORINTERPRETER_H

#include "compiler/dialect/kern/Kern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

namespace ogc::test {

/// A tensor of doubles in row-major order; a scalar has no dimensions.
struct Tensor {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> data;

  static Tensor filled(llvm::ArrayRef<int64_t> shape, double value) {
    int64_t size = 1;
    for (int64_t extent : shape)
      size *= extent;
    return {llvm::SmallVector<int64_t>(shape), std::vector<double>(size, value)};
  }
  size_t offset(llvm::ArrayRef<int64_t> index) const {
    size_t result = 0;
    for (size_t i = 0; i < shape.size(); ++i)
      result = result * shape[i] + index[i];
    return result;
  }
  double &at(llvm::ArrayRef<int64_t> index) { return data[offset(index)]; }
  double at(llvm::ArrayRef<int64_t> index) const { return data[offset(index)]; }
};

/// Calls `body` with every index of `shape`.
inline void forEachIndex(llvm::ArrayRef<int64_t> shape, llvm::function_ref<void(llvm::ArrayRef<int64_t>)> body) {
  llvm::SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t extent : shape)
    if (extent == 0)
      return;
  while (true) {
    body(index);
    int64_t dim = static_cast<int64_t>(shape.size()) - 1;
    while (dim >= 0 && ++index[dim] == shape[dim])
      index[dim--] = 0;
    if (dim < 0)
      return;
  }
}

class TensorInterpreter {
public:
  explicit TensorInterpreter(mlir::ModuleOp module) : module(module) {}

  std::vector<Tensor> call(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> arguments) {
    return runBlock(function.getBody().front(), arguments);
  }

  std::vector<std::string> errors; ///< operations that could not be evaluated

private:
  using Scalars = llvm::DenseMap<mlir::Value, double>;

  std::vector<Tensor> runBlock(mlir::Block &block, llvm::ArrayRef<Tensor> arguments) {
    for (auto [argument, value] : llvm::zip_equal(block.getArguments(), arguments))
      values[argument] = value;
    for (mlir::Operation &op : block.without_terminator())
      run(op);
    std::vector<Tensor> results;
    for (mlir::Value value : block.getTerminator()->getOperands())
      results.push_back(values[value]);
    return results;
  }

  static llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
    return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
  }

  void runNested(mlir::Operation &op, mlir::Block &body, mlir::ValueRange inputs) {
    std::vector<Tensor> arguments;
    for (mlir::Value input : inputs)
      arguments.push_back(values[input]);
    std::vector<Tensor> results = runBlock(body, arguments);
    for (auto [result, value] : llvm::zip_equal(op.getResults(), results))
      values[result] = value;
  }

  void run(mlir::Operation &op) {
    using namespace mlir;
    llvm::TypeSwitch<Operation *>(&op)
        .Case([&](arith::ConstantOp constant) { values[constant] = evaluate(constant); })
        .Case([&](tensor::EmptyOp empty) { values[empty] = Tensor::filled(shapeOf(empty), NAN); })
        .Case([&](linalg::FillOp fill) {
          values[fill.getResult(0)] = Tensor::filled(shapeOf(fill.getResult(0)), values[fill.getInputs()[0]].data[0]);
        })
        .Case([&](linalg::TransposeOp transpose) {
          const Tensor &in = values[transpose.getInput()];
          Tensor out = Tensor::filled(shapeOf(transpose->getResult(0)), 0);
          forEachIndex(out.shape, [&](ArrayRef<int64_t> index) {
            SmallVector<int64_t> from(index.size());
            for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
              from[dim] = index[i];
            out.at(index) = in.at(from);
          });
          values[transpose->getResult(0)] = out;
        })
        .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp>([&](Operation *reshape) {
          Tensor out = values[reshape->getOperand(0)];
          out.shape.assign(shapeOf(reshape->getResult(0)).begin(), shapeOf(reshape->getResult(0)).end());
          values[reshape->getResult(0)] = out;
        })
        .Case([&](tensor::ExtractSliceOp slice) { values[slice] = evaluate(slice); })
        .Case([&](tensor::InsertSliceOp insert) { values[insert] = evaluate(insert); })
        .Case([&](tensor::PadOp pad) { values[pad] = evaluate(pad); })
        .Case([&](tensor::ConcatOp concat) { values[concat] = evaluate(concat); })
        .Case([&](linalg::GenericOp generic) { evaluate(generic); })
        .Case([&](ogc::kern::MatmulOp matmul) { values[matmul] = evaluate(matmul); })
        .Case([&](ogc::kern::AttentionOp attention) { values[attention] = evaluate(attention); })
        .Case([&](ogc::kern::RegionOp region) { runNested(op, region.getBody().front(), region.getInputs()); })
        .Case([&](ogc::kern::LaunchOp launch) {
          auto kernel = module.lookupSymbol<ogc::kern::KernelOp>(launch.getKernel());
          runNested(op, kernel.getBody().front(), launch.getInputs());
        })
        .Default([&](Operation *) { errors.push_back("cannot evaluate " + op.getName().getStringRef().str()); });
  }

  Tensor evaluate(mlir::arith::ConstantOp op) {
    if (auto number = mlir::dyn_cast<mlir::FloatAttr>(op.getValue()))
      return Tensor::filled({}, number.getValueAsDouble());
    if (auto number = mlir::dyn_cast<mlir::IntegerAttr>(op.getValue()))
      return Tensor::filled({}, static_cast<double>(number.getInt()));
    auto elements = mlir::cast<mlir::DenseElementsAttr>(op.getValue());
    Tensor result = Tensor::filled(elements.getType().getShape(), 0);
    size_t i = 0;
    if (mlir::isa<mlir::FloatType>(elements.getElementType()))
      for (llvm::APFloat value : elements.getValues<llvm::APFloat>())
        result.data[i++] = value.convertToDouble();
    else
      for (llvm::APInt value : elements.getValues<llvm::APInt>())
        result.data[i++] = static_cast<double>(value.getSExtValue());
    return result;
  }

  /// Index in the sliced tensor of each index of the slice, dropped dimensions included.
  static llvm::SmallVector<int64_t> sliceIndex(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> offsets,
                                               llvm::ArrayRef<int64_t> strides) {
    llvm::SmallVector<int64_t> result;
    for (size_t i = 0; i < index.size(); ++i)
      result.push_back(offsets[i] + index[i] * strides[i]);
    return result;
  }

  Tensor evaluate(mlir::tensor::ExtractSliceOp op) {
    const Tensor &in = values[op.getSource()];
    Tensor out = Tensor::filled(op.getStaticSizes(), 0);
    forEachIndex(out.shape, [&](llvm::ArrayRef<int64_t> index) {
      out.at(index) = in.at(sliceIndex(index, op.getStaticOffsets(), op.getStaticStrides()));
    });
    out.shape.assign(shapeOf(op).begin(), shapeOf(op).end());
    return out;
  }

  Tensor evaluate(mlir::tensor::InsertSliceOp op) {
    Tensor in = values[op.getSource()], out = values[op.getDest()];
    in.shape.assign(op.getStaticSizes().begin(), op.getStaticSizes().end());
    forEachIndex(in.shape, [&](llvm::ArrayRef<int64_t> index) {
      out.at(sliceIndex(index, op.getStaticOffsets(), op.getStaticStrides())) = in.at(index);
    });
    return out;
  }

  Tensor evaluate(mlir::tensor::PadOp op) {
    mlir::Value padding = op.getConstantPaddingValue();
    double fill = padding.getDefiningOp()->getBlock() == op.getBody()
                      ? evaluate(padding.getDefiningOp<mlir::arith::ConstantOp>()).data[0]
                      : values[padding].data[0];
    Tensor out = Tensor::filled(shapeOf(op), fill);
    const Tensor &in = values[op.getSource()];
    llvm::SmallVector<int64_t> ones(in.shape.size(), 1);
    forEachIndex(in.shape,
                 [&](llvm::ArrayRef<int64_t> index) { out.at(sliceIndex(index, op.getStaticLow(), ones)) = in.at(index); });
    return out;
  }

  Tensor evaluate(mlir::tensor::ConcatOp op) {
    Tensor out = Tensor::filled(shapeOf(op), 0);
    int64_t start = 0;
    for (mlir::Value input : op.getInputs()) {
      const Tensor &in = values[input];
      forEachIndex(in.shape, [&](llvm::ArrayRef<int64_t> index) {
        llvm::SmallVector<int64_t> to(index);
        to[op.getDim()] += start;
        out.at(to) = in.at(index);
      });
      start += in.shape[op.getDim()];
    }
    return out;
  }

  Tensor evaluate(ogc::kern::MatmulOp op) {
    const Tensor &a = values[op.getLhs()], &b = values[op.getRhs()];
    Tensor out = Tensor::filled(shapeOf(op), 0);
    forEachIndex(out.shape, [&](llvm::ArrayRef<int64_t> index) {
      double sum = 0;
      int64_t batch = b.shape[0] == 1 ? 0 : index[0];
      for (int64_t k = 0; k < a.shape[2]; ++k) {
        double right = op.getPacked()         ? b.at({index[2] / b.shape[2], k, index[2] % b.shape[2]})
                       : op.getTransposeRhs() ? b.at({batch, index[2], k})
                                              : b.at({batch, k, index[2]});
        sum += a.at({index[0], index[1], k}) * right;
      }
      out.at(index) = sum;
    });
    return out;
  }

  Tensor evaluate(ogc::kern::AttentionOp op) {
    const Tensor &q = values[op.getQuery()], &k = values[op.getKey()], &v = values[op.getValue()];
    Tensor out = Tensor::filled(shapeOf(op), 0);
    int64_t keys = k.shape[1], share = q.shape[2] / k.shape[2];
    forEachIndex(out.shape, [&](llvm::ArrayRef<int64_t> index) {
      int64_t b = index[0], s = index[1], h = index[2];
      double total = 0, sum = 0;
      for (int64_t t = 0; t < keys; ++t) {
        double score = 0;
        for (int64_t d = 0; d < q.shape[3]; ++d)
          score += q.at({b, s, h, d}) * k.at({b, t, h / share, d});
        double weight = std::exp(score * op.getScale().convertToFloat());
        total += weight;
        sum += weight * v.at({b, t, h / share, index[3]});
      }
      out.at(index) = sum / total;
    });
    return out;
  }

  void evaluate(mlir::linalg::GenericOp op) {
    llvm::SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    std::vector<Tensor> outs;
    for (mlir::Value init : op.getDpsInits())
      outs.push_back(values[init]);
    mlir::Block &body = op.getRegion().front();
    unsigned numInputs = op.getNumDpsInputs();
    llvm::SmallVector<mlir::AffineMap> maps = op.getIndexingMapsArray();
    forEachIndex(ranges, [&](llvm::ArrayRef<int64_t> index) {
      Scalars scalars;
      auto locate = [&](unsigned operand) { return maps[operand].compose(index); };
      for (unsigned i = 0; i < maps.size(); ++i) {
        if (i < numInputs && !mlir::isa<mlir::RankedTensorType>(op->getOperand(i).getType()))
          scalars[body.getArgument(i)] = values[op->getOperand(i)].data[0];
        else
          scalars[body.getArgument(i)] =
              i < numInputs ? values[op->getOperand(i)].at(locate(i)) : outs[i - numInputs].at(locate(i));
      }
      for (mlir::Operation &scalar : body.without_terminator())
        scalars[scalar.getResult(0)] = evaluateScalar(scalar, scalars, index);
      for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands()))
        outs[i].at(locate(numInputs + i)) = read(value, scalars);
    });
    for (auto [result, out] : llvm::zip_equal(op->getResults(), outs))
      values[result] = out;
  }

  double read(mlir::Value value, Scalars &scalars) {
    auto it = scalars.find(value);
    return it != scalars.end() ? it->second : values[value].data[0];
  }

  double evaluateScalar(mlir::Operation &op, Scalars &scalars, llvm::ArrayRef<int64_t> index) {
    using namespace mlir;
    auto get = [&](unsigned i) { return read(op.getOperand(i), scalars); };
    return llvm::TypeSwitch<Operation *, double>(&op)
        .Case([&](arith::ConstantOp constant) { return evaluate(constant).data[0]; })
        .Case([&](arith::AddFOp) { return get(0) + get(1); })
        .Case([&](arith::SubFOp) { return get(0) - get(1); })
        .Case([&](arith::MulFOp) { return get(0) * get(1); })
        .Case([&](arith::MaximumFOp) { return std::max(get(0), get(1)); })
        .Case([&](arith::NegFOp) { return -get(0); })
        .Case([&](math::TanhOp) { return std::tanh(get(0)); })
        .Case([&](arith::IndexCastOp) { return get(0); })
        .Case([&](linalg::IndexOp loop) { return static_cast<double>(index[loop.getDim()]); })
        .Case([&](tensor::ExtractOp extract) {
          SmallVector<int64_t> at;
          for (Value i : extract.getIndices())
            at.push_back(static_cast<int64_t>(read(i, scalars)));
          return values[extract.getTensor()].at(at);
        })
        .Default([&](Operation *) {
          errors.push_back("cannot evaluate " + op.getName().getStringRef().str());
          return NAN;
        });
  }

  mlir::ModuleOp module;
  struct ByPointer {
    bool operator()(mlir::Value a, mlir::Value b) const { return a.getAsOpaquePointer() < b.getAsOpaquePointer(); }
  };
  std::map<mlir::Value, Tensor, ByPointer> values;
};

} // namespace ogc::test

#endif
