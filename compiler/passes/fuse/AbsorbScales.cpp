//===- AbsorbScales.cpp - channel factors of a convolution's input --------===//
#include "compiler/passes/fuse/Grouping.h"
#include "compiler/passes/fuse/Passes.h"
#include "compiler/passes/fuse/Reshape.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace ogc {

#define GEN_PASS_DEF_ABSORBSCALES
#include "compiler/passes/fuse/Passes.h.inc"

namespace {

using namespace mlir;
using fuse::typeOf;

Value withoutExtension(Value value) {
  auto extend = value.getDefiningOp<arith::ExtFOp>();
  return extend ? extend.getIn() : value;
}

/// True when the body is the product of its two inputs, rounded to their type.
bool isProduct(linalg::GenericOp op) {
  Block &body = *op.getBlock();
  Value yielded = body.getTerminator()->getOperand(0);
  if (auto truncate = yielded.getDefiningOp<arith::TruncFOp>())
    yielded = truncate.getIn();
  auto product = yielded.getDefiningOp<arith::MulFOp>();
  if (!product)
    return false;
  Value lhs = withoutExtension(product.getLhs()), rhs = withoutExtension(product.getRhs());
  return (lhs == body.getArgument(0) && rhs == body.getArgument(1)) || (lhs == body.getArgument(1) && rhs == body.getArgument(0));
}

/// True when `operand` has one value for each channel (and image): its loops are, besides extents of one, images and channels in
/// this order.
bool isChannelFactor(OpOperand &operand, ArrayRef<int64_t> image) {
  SmallVector<unsigned> loops;
  for (AffineExpr expr : fuse::mapOf(operand).getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      if (image[dim.getPosition()] != 1)
        loops.push_back(dim.getPosition());
    } else if (!isa<AffineConstantExpr>(expr)) {
      return false;
    }
  }
  SmallVector<unsigned> wanted;
  for (unsigned loop : {0u, 3u})
    if (image[loop] != 1)
      wanted.push_back(loop);
  return loops == wanted && typeOf(operand.get()).getNumElements() == image[0] * image[3];
}

/// The operation that scales the input of `conv`, and which operands of it are image and factors.
struct Scaling {
  linalg::GenericOp op;
  Value image, factors;
};

std::optional<Scaling> scalingOf(kern::ConvOp conv) {
  auto isOne = [](int64_t extent) { return extent == 1; };
  auto isZero = [](int64_t pad) { return pad == 0; };
  ArrayRef<int64_t> shape = typeOf(conv.getInput()).getShape();
  auto op = conv.getInput().getDefiningOp<linalg::GenericOp>();
  // One pixel is a vector, and its product a stage of a vector chain.
  if (conv.getScale() || !llvm::all_of(conv.getKernel(), isOne) || !llvm::all_of(conv.getPads(), isZero) ||
      shape[1] * shape[2] == 1 || !op || !op->hasOneUse() || op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      !fuse::isElementwise(op) || !isProduct(op))
    return std::nullopt;
  for (unsigned position : {0u, 1u}) {
    OpOperand *image = op.getDpsInputOperand(position), *factors = op.getDpsInputOperand(1 - position);
    bool sameType = image->get().getType() == conv.getInput().getType() &&
                    typeOf(factors->get()).getElementType() == typeOf(conv.getInput()).getElementType();
    if (sameType && fuse::mapOf(*image).isIdentity() && isChannelFactor(*factors, shape))
      return Scaling{op, image->get(), factors->get()};
  }
  return std::nullopt;
}

struct AbsorbScales : impl::AbsorbScalesBase<AbsorbScales> {
  void runOnOperation() override {
    getOperation().walk([&](kern::ConvOp conv) {
      std::optional<Scaling> scaling = scalingOf(conv);
      if (!scaling)
        return;
      ArrayRef<int64_t> shape = typeOf(conv.getInput()).getShape();
      OpBuilder builder(conv);
      conv.getInputMutable().assign(scaling->image);
      conv.getScaleMutable().assign(fuse::createReshape(builder, conv.getLoc(), scaling->factors, {shape[0], 1, 1, shape[3]}));
      conv->setLoc(builder.getFusedLoc({scaling->op.getLoc(), conv.getLoc()}));
      scaling->op.erase();
    });
  }
};

} // namespace
} // namespace ogc
