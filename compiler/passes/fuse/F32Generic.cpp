//===- F32Generic.cpp - structured operations that compute in f32 ---------===//
#include "compiler/passes/fuse/F32Generic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace ogc::fuse {

/// The generic with inputs and result read and written through `maps`. `used` of the arguments of its block go to `body`.
static Value createGeneric(OpBuilder &builder, Location loc, ArrayRef<Value> inputs, ArrayRef<AffineMap> maps, Value init,
                           ArrayRef<utils::IteratorType> iterators, size_t used, F32Body body) {
  return linalg::GenericOp::create(builder, loc, init.getType(), inputs, init, maps, iterators,
                                   [&](OpBuilder &b, Location, ValueRange arguments) {
                                     SmallVector<Value> wide;
                                     for (Value argument : arguments.take_front(used))
                                       wide.push_back(argument.getType().isF32()
                                                          ? argument
                                                          : arith::ExtFOp::create(b, loc, b.getF32Type(), argument).getResult());
                                     Value result = body(b, wide);
                                     Type type = cast<RankedTensorType>(init.getType()).getElementType();
                                     if (!type.isF32())
                                       result = arith::TruncFOp::create(b, loc, type, result);
                                     linalg::YieldOp::create(b, loc, result);
                                   })
      ->getResult(0);
}

Value createF32Elementwise(OpBuilder &builder, Location loc, ArrayRef<Value> inputs, ArrayRef<AffineMap> maps,
                           RankedTensorType type, F32Body body) {
  SmallVector<AffineMap> all(maps);
  all.push_back(builder.getMultiDimIdentityMap(type.getRank()));
  Value init = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  return createGeneric(builder, loc, inputs, all, init, iterators, inputs.size(), body);
}

Value createF32Fold(OpBuilder &builder, Location loc, ArrayRef<Value> inputs, ArrayRef<AffineMap> maps, ArrayRef<int64_t> shape,
                    float start, F32Body body) {
  SmallVector<AffineMap> all(maps);
  all.push_back(builder.getMultiDimIdentityMap(shape.size() + 1).dropResult(shape.size()));
  Value first = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(start));
  Value init = tensor::EmptyOp::create(builder, loc, shape, builder.getF32Type());
  init = linalg::FillOp::create(builder, loc, first, init).getResult(0);
  SmallVector<utils::IteratorType> iterators(shape.size(), utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  return createGeneric(builder, loc, inputs, all, init, iterators, inputs.size() + 1, body);
}

} // namespace ogc::fuse
