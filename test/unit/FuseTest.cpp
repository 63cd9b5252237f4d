//===- FuseTest.cpp - the fuse phase keeps the values of random functions -===//
#include "compiler/passes/fuse/Passes.h"
#include "compiler/passes/verify/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "test/unit/TensorInterpreter.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using ogc::test::Tensor;

namespace {

/// Builds a function of random tensor operations.
class RandomFunction {
public:
  RandomFunction(MLIRContext &context, unsigned seed) : builder(&context), random(seed) {
    Location loc = builder.getUnknownLoc();
    module = ModuleOp::create(loc);
    SmallVector<Type> inputs;
    for (int i = 0; i < 3; ++i)
      inputs.push_back(type(randomShape()));
    builder.setInsertionPointToEnd(module->getBody());
    function = func::FuncOp::create(builder, loc, "main", builder.getFunctionType(inputs, {}));
    Block *block = function.addEntryBlock();
    builder.setInsertionPointToEnd(block);
    pool.assign(block->args_begin(), block->args_end());
    int count = 5 + pick(20);
    for (int i = 0; i < count; ++i)
      if (Value value = step(); value && cast<RankedTensorType>(value.getType()).getNumElements() <= 2000)
        pool.push_back(value);
    SmallVector<Value> results{pool.back()};
    for (int i = 0; i < 3; ++i)
      results.push_back(any());
    func::ReturnOp::create(builder, loc, results);
    function.setFunctionType(builder.getFunctionType(inputs, TypeRange(ValueRange(results))));
  }

  OwningOpRef<ModuleOp> module;
  func::FuncOp function;

private:
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random); }
  Value any() { return pool[pool.size() - 1 - std::min<int>(pick(pool.size()), pick(pool.size()))]; }
  static ArrayRef<int64_t> shape(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }
  RankedTensorType type(ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, builder.getF32Type()); }
  Value empty(ArrayRef<int64_t> shape) {
    return tensor::EmptyOp::create(builder, builder.getUnknownLoc(), shape, builder.getF32Type());
  }

  SmallVector<int64_t> randomShape() {
    static const int64_t extents[] = {1, 2, 3, 4, 6, 32};
    SmallVector<int64_t> result;
    int64_t size = 1;
    for (int rank = 1 + pick(4); rank > 0; --rank) {
      int64_t extent = extents[pick(6)];
      if (size * extent > 400)
        extent = 1;
      result.push_back(extent);
      size *= extent;
    }
    return result;
  }

  Value constant(ArrayRef<int64_t> shape) {
    RankedTensorType constantType = type(shape);
    std::vector<float> data(pick(2) ? constantType.getNumElements() : 1);
    for (float &value : data)
      value = static_cast<float>(pick(9) - 4) / 4;
    return arith::ConstantOp::create(builder, builder.getUnknownLoc(),
                                     DenseElementsAttr::get(constantType, ArrayRef<float>(data)));
  }

  Value step() {
    switch (pick(12)) {
    case 0:
    case 1:
      return transpose(any());
    case 2:
    case 3:
    case 4:
      return elementwise(any());
    case 5:
      return reduce(any());
    case 6:
      return reshape(any());
    case 7:
      return slice(any());
    case 8:
      return pad(any());
    case 9:
      return concat(any());
    case 10:
      return pick(2) ? matmul(any()) : pick(2) ? siblings(any()) : gated(any());
    default:
      return insert(any());
    }
  }

  Value transpose(Value value) {
    if (shape(value).empty()) // linalg.transpose of rank 0 does not survive MLIR's verifier
      return {};
    SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, shape(value).size()));
    std::shuffle(permutation.begin(), permutation.end(), random);
    SmallVector<int64_t> out;
    for (int64_t dim : permutation)
      out.push_back(shape(value)[dim]);
    return linalg::TransposeOp::create(builder, builder.getUnknownLoc(), value, empty(out), permutation)->getResult(0);
  }

  /// A second operand for an element-wise operation: of the same shape, a permuted view of one, or a broadcast one.
  std::pair<Value, AffineMap> partner(Value value) {
    unsigned rank = shape(value).size();
    AffineMap identity = builder.getMultiDimIdentityMap(rank);
    int kind = pick(4);
    if (kind == 0)
      return {constant(shape(value)), identity};
    if (kind == 1 && rank > 0)
      return {constant({shape(value).back()}), AffineMap::get(rank, 0, builder.getAffineDimExpr(rank - 1))};
    SmallVector<int64_t> sorted(shape(value));
    llvm::sort(sorted);
    for (int i = 0; i < 6; ++i) {
      Value other = any();
      if (shape(other) == shape(value))
        return {other, identity};
      SmallVector<int64_t> otherSorted(shape(other));
      llvm::sort(otherSorted);
      if (otherSorted != sorted)
        continue;
      // The same extents in another order: read it through a permuted map.
      SmallVector<AffineExpr> exprs;
      SmallVector<bool> used(rank, false);
      for (int64_t extent : shape(other))
        for (unsigned dim = 0; dim < rank; ++dim)
          if (!used[dim] && shape(value)[dim] == extent) {
            used[dim] = true;
            exprs.push_back(builder.getAffineDimExpr(dim));
            break;
          }
      return {other, AffineMap::get(rank, 0, exprs, builder.getContext())};
    }
    return {value, identity};
  }

  Value elementwise(Value value) {
    auto [other, map] = partner(value);
    unsigned rank = shape(value).size();
    AffineMap identity = builder.getMultiDimIdentityMap(rank);
    SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
    int kind = pick(4);
    return linalg::GenericOp::create(builder, builder.getUnknownLoc(), value.getType(), ValueRange{value, other},
                                     empty(shape(value)), ArrayRef<AffineMap>{identity, map, identity}, iterators,
                                     [&](OpBuilder &b, Location loc, ValueRange args) {
                                       Value result;
                                       if (kind == 0)
                                         result = arith::AddFOp::create(b, loc, args[0], args[1]);
                                       else if (kind == 1)
                                         result = arith::SubFOp::create(b, loc, args[0], args[1]);
                                       else if (kind == 2)
                                         result = arith::MaximumFOp::create(b, loc, args[0], args[1]);
                                       else
                                         result = math::TanhOp::create(b, loc, arith::MulFOp::create(b, loc, args[0], args[1]));
                                       linalg::YieldOp::create(b, loc, result);
                                     })
        .getResult(0);
  }

  Value reduce(Value value) {
    unsigned rank = shape(value).size();
    SmallVector<utils::IteratorType> iterators;
    SmallVector<AffineExpr> kept;
    SmallVector<int64_t> out;
    bool last = pick(2);
    for (unsigned dim = 0; dim < rank; ++dim) {
      bool reduced = last ? dim + 1 == rank : pick(2);
      iterators.push_back(reduced ? utils::IteratorType::reduction : utils::IteratorType::parallel);
      if (reduced)
        continue;
      kept.push_back(builder.getAffineDimExpr(dim));
      out.push_back(shape(value)[dim]);
    }
    Location loc = builder.getUnknownLoc();
    Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
    Value init = linalg::FillOp::create(builder, loc, zero, empty(out)).getResult(0);
    Value sum = linalg::GenericOp::create(builder, loc, init.getType(), value, init,
                                          ArrayRef<AffineMap>{builder.getMultiDimIdentityMap(rank),
                                                              AffineMap::get(rank, 0, kept, builder.getContext())},
                                          iterators,
                                          [](OpBuilder &b, Location l, ValueRange args) {
                                            Value s = arith::AddFOp::create(b, l, args[0], args[1]);
                                            linalg::YieldOp::create(b, l, s);
                                          })
                    .getResult(0);
    if (!last || rank == 0)
      return sum;
    // The reduced values, subtracted from what they were reduced from.
    pool.push_back(sum);
    AffineMap identity = builder.getMultiDimIdentityMap(rank);
    return linalg::GenericOp::create(builder, loc, value.getType(), ValueRange{value, sum}, empty(shape(value)),
                                     ArrayRef<AffineMap>{identity, AffineMap::get(rank, 0, kept, builder.getContext()), identity},
                                     SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
                                     [](OpBuilder &b, Location l, ValueRange args) {
                                       Value s = arith::SubFOp::create(b, l, args[0], args[1]);
                                       linalg::YieldOp::create(b, l, s);
                                     })
        .getResult(0);
  }

  Value reshape(Value value) {
    Location loc = builder.getUnknownLoc();
    unsigned rank = shape(value).size();
    if (rank > 1 && pick(2)) { // merge two neighbours
      unsigned first = pick(rank - 1);
      SmallVector<ReassociationIndices> groups;
      for (unsigned dim = 0; dim < rank; ++dim) {
        if (dim == first + 1)
          groups.back().push_back(dim);
        else
          groups.push_back({dim});
      }
      return tensor::CollapseShapeOp::create(builder, loc, value, groups);
    }
    if (rank == 0)
      return {};
    if (rank > 5)
      return {};
    unsigned split = pick(rank);
    int64_t extent = shape(value)[split], inner = extent % 2 == 0 ? 2 : 1;
    SmallVector<int64_t> out;
    SmallVector<ReassociationIndices> groups;
    for (unsigned dim = 0; dim < rank; ++dim) {
      groups.push_back({static_cast<int64_t>(out.size())});
      if (dim == split) {
        groups.back().push_back(out.size() + 1);
        out.append({extent / inner, inner});
      } else {
        out.push_back(shape(value)[dim]);
      }
    }
    return tensor::ExpandShapeOp::create(builder, loc, type(out), value, groups);
  }

  Value slice(Value value) {
    SmallVector<OpFoldResult> offsets, sizes, strides;
    for (int64_t extent : shape(value)) {
      int64_t stride = 1 + pick(2), offset = pick(extent), size = 1 + pick((extent - offset + stride - 1) / stride);
      offsets.push_back(builder.getIndexAttr(offset));
      sizes.push_back(builder.getIndexAttr(size));
      strides.push_back(builder.getIndexAttr(stride));
    }
    return tensor::ExtractSliceOp::create(builder, builder.getUnknownLoc(), value, offsets, sizes, strides);
  }

  Value pad(Value value) {
    Location loc = builder.getUnknownLoc();
    SmallVector<OpFoldResult> low, high;
    SmallVector<int64_t> out;
    for (int64_t extent : shape(value)) {
      int64_t before = pick(2), after = pick(2);
      low.push_back(builder.getIndexAttr(before));
      high.push_back(builder.getIndexAttr(after));
      out.push_back(extent + before + after);
    }
    Value scalar = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0.5));
    return tensor::PadOp::create(builder, loc, type(out), value, low, high, scalar);
  }

  Value concat(Value value) {
    if (shape(value).empty())
      return {};
    Value other = pick(2) ? value : elementwise(value);
    return tensor::ConcatOp::create(builder, builder.getUnknownLoc(), pick(shape(value).size()), ValueRange{value, other});
  }

  Value insert(Value value) {
    SmallVector<int64_t> larger;
    SmallVector<OpFoldResult> offsets, sizes, strides(shape(value).size(), builder.getIndexAttr(1));
    for (int64_t extent : shape(value)) {
      int64_t before = pick(3);
      larger.push_back(extent + before);
      offsets.push_back(builder.getIndexAttr(before));
      sizes.push_back(builder.getIndexAttr(extent));
    }
    Location loc = builder.getUnknownLoc();
    Value zero = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0.25));
    Value dest = pick(2) ? linalg::FillOp::create(builder, loc, zero, empty(larger)).getResult(0) : constant(larger);
    return tensor::InsertSliceOp::create(builder, loc, value, dest, offsets, sizes, strides);
  }

  Value matmul(Value value) {
    if (shape(value).size() != 3)
      return {};
    int64_t n = 1 + pick(4);
    Value rhs = constant({1, shape(value)[2], n});
    if (pick(3) == 0) // the value times its own transposition
      return ogc::kern::MatmulOp::create(builder, builder.getUnknownLoc(),
                                         type({shape(value)[0], shape(value)[1], shape(value)[1]}), value, transposeLast(value),
                                         false, false);
    return ogc::kern::MatmulOp::create(builder, builder.getUnknownLoc(), type({shape(value)[0], shape(value)[1], n}), value, rhs,
                                       false, false);
  }

  /// A gated unit: two products of one value with packed weights, one of them squared, multiplied.
  Value gated(Value value) {
    if (shape(value).size() != 3)
      return {};
    Location loc = builder.getUnknownLoc();
    int64_t width = pick(2) ? 16 : 32, n = 16 * pick(3) + 1 + pick(16), panels = (n + width - 1) / width;
    auto result = type({shape(value)[0], shape(value)[1], n});
    auto product = [&] {
      return ogc::kern::MatmulOp::create(builder, loc, result, value, constant({panels, shape(value)[2], width}), false, true);
    };
    Value gate = product(), up = product();
    AffineMap identity = builder.getMultiDimIdentityMap(3);
    return linalg::GenericOp::create(builder, loc, result, ValueRange{gate, up}, empty(result.getShape()),
                                     ArrayRef<AffineMap>{identity, identity, identity},
                                     SmallVector<utils::IteratorType>(3, utils::IteratorType::parallel),
                                     [](OpBuilder &b, Location l, ValueRange args) {
                                       Value square = arith::MulFOp::create(b, l, args[0], args[0]);
                                       linalg::YieldOp::create(b, l, arith::MulFOp::create(b, l, square, args[1]).getResult());
                                     })
        .getResult(0);
  }

  /// Products of one value with several packed weights, each with a bias, put together again.
  Value siblings(Value value) {
    if (shape(value).size() != 3)
      return {};
    Location loc = builder.getUnknownLoc();
    SmallVector<Value> parts;
    for (int i = 0, count = 2 + pick(2); i < count; ++i) {
      int64_t panels = 1 + pick(2);
      auto result = type({shape(value)[0], shape(value)[1], panels * 16});
      Value part = ogc::kern::MatmulOp::create(builder, loc, result, value, constant({panels, shape(value)[2], 16}), false, true);
      AffineMap identity = builder.getMultiDimIdentityMap(3), last = AffineMap::get(3, 0, builder.getAffineDimExpr(2));
      if (pick(4))
        part = linalg::GenericOp::create(builder, loc, result, ValueRange{part, constant({panels * 16})},
                                         empty(result.getShape()), ArrayRef<AffineMap>{identity, last, identity},
                                         SmallVector<utils::IteratorType>(3, utils::IteratorType::parallel),
                                         [](OpBuilder &b, Location l, ValueRange args) {
                                           Value s = arith::AddFOp::create(b, l, args[0], args[1]);
                                           linalg::YieldOp::create(b, l, s);
                                         })
                   .getResult(0);
      parts.push_back(part);
    }
    return tensor::ConcatOp::create(builder, loc, 2, parts);
  }

  Value transposeLast(Value value) {
    SmallVector<int64_t> permutation{0, 2, 1};
    return linalg::TransposeOp::create(builder, builder.getUnknownLoc(), value,
                                       empty({shape(value)[0], shape(value)[2], shape(value)[1]}), permutation)
        ->getResult(0);
  }

  OpBuilder builder;
  std::mt19937 random;
  SmallVector<Value> pool;
};

std::vector<Tensor> randomInputs(func::FuncOp function, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> values(-1, 1);
  std::vector<Tensor> inputs;
  for (Type type : function.getArgumentTypes()) {
    inputs.push_back(Tensor::filled(cast<RankedTensorType>(type).getShape(), 0));
    for (double &value : inputs.back().data)
      value = values(random);
  }
  return inputs;
}

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

class Fuse : public testing::TestWithParam<unsigned> {
protected:
  Fuse() {
    context.loadDialect<func::FuncDialect, linalg::LinalgDialect, tensor::TensorDialect, arith::ArithDialect, math::MathDialect,
                        ogc::kern::KernDialect>();
    context.disableMultithreading();
  }
  MLIRContext context;
};

TEST_P(Fuse, KeepsValues) {
  for (unsigned i = 0; i < 100; ++i) {
    unsigned seed = GetParam() * 100 + i;
    RandomFunction built(context, seed);
    ModuleOp module = *built.module;
    ASSERT_TRUE(succeeded(verify(module))) << "seed " << seed;
    std::vector<Tensor> inputs = randomInputs(built.function, seed);
    ogc::test::TensorInterpreter before(module);
    std::vector<Tensor> expected = before.call(built.function, inputs);
    ASSERT_TRUE(before.errors.empty()) << before.errors.front();
    std::string text = print(module);

    PassManager manager(&context);
    if (i % 2 == 0) {
      manager.addPass(createCanonicalizerPass());
      manager.addPass(createCSEPass());
    }
    manager.addNestedPass<func::FuncOp>(ogc::createPropagateLayout());
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
    manager.addPass(ogc::createNarrowPanels());
    manager.addNestedPass<func::FuncOp>(ogc::createPairMatmuls());
    manager.addNestedPass<func::FuncOp>(ogc::createMergeMatmuls());
    manager.addNestedPass<func::FuncOp>(ogc::createFuseRegions());
    manager.addNestedPass<func::FuncOp>(ogc::createSelectSchedule());
    manager.addPass(ogc::createVerifyPhase({"fuse"}));
    manager.addPass(ogc::createOutlineKernels());
    manager.addPass(ogc::createVerifyPhase({"fuse"}));
    ASSERT_TRUE(succeeded(manager.run(module))) << "seed " << seed << "\n" << text;

    ogc::test::TensorInterpreter after(module);
    std::vector<Tensor> actual = after.call(module.lookupSymbol<func::FuncOp>("main"), inputs);
    ASSERT_TRUE(after.errors.empty()) << after.errors.front();
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t result = 0; result < expected.size(); ++result) {
      ASSERT_EQ(expected[result].shape, actual[result].shape);
      for (size_t element = 0; element < expected[result].data.size(); ++element) {
        double wanted = expected[result].data[element], got = actual[result].data[element];
        ASSERT_NEAR(wanted, got, 1e-9 * (1 + std::abs(wanted)))
            << "seed " << seed << ", result " << result << ", element " << element << "\n"
            << text << "\nbecame\n"
            << print(module);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Random, Fuse, testing::Range(0u, 10u));

} // namespace
