//===- Program.h - builders of kern.program -------------------------------===//
//
// For operators whose elements do not follow from the inputs one by one: the body of a program in terms of scalars, loops and
// buffers. Positions in buffers are row-major.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_PASSES_LOWER_PROGRAM_H
#define OGC_PASSES_LOWER_PROGRAM_H

#include "compiler/passes/lower/Structured.h"

namespace ogc::lower {

/// Emits the body of a program. Elements are loaded in the compute type (16-bit floats as f32) and rounded when stored.
class ProgramBody : public Scalar {
public:
  ProgramBody(mlir::OpBuilder &builder, mlir::Location loc, mlir::Block &block, unsigned numInputs)
      : Scalar(builder, loc), block(block), numInputs(numInputs) {}

  mlir::Value group() const { return block.getArgument(0); }
  mlir::Value input(unsigned i) const { return block.getArgument(1 + i); }
  mlir::Value output(unsigned i) const { return block.getArgument(1 + numInputs + i); }

  mlir::Value load(mlir::Value buffer, mlir::Value position);
  void store(mlir::Value buffer, mlir::Value position, mlir::Value element);
  /// Without rounding and widening, for moving elements.
  mlir::Value loadRaw(mlir::Value buffer, mlir::Value position);
  void storeRaw(mlir::Value buffer, mlir::Value position, mlir::Value element);

  // Index arithmetic; never negative.
  mlir::Value index(int64_t value);
  mlir::Value plus(mlir::Value x, mlir::Value y);
  mlir::Value plus(mlir::Value x, int64_t y) { return y == 0 ? x : plus(x, index(y)); }
  mlir::Value minus(mlir::Value x, mlir::Value y);
  mlir::Value times(mlir::Value x, mlir::Value y);
  mlir::Value times(mlir::Value x, int64_t y) { return y == 1 ? x : times(x, index(y)); }
  mlir::Value over(mlir::Value x, int64_t y);
  mlir::Value rest(mlir::Value x, int64_t y);
  mlir::Value smaller(mlir::Value x, mlir::Value y);
  mlir::Value isLess(mlir::Value x, mlir::Value y);
  mlir::Value both(mlir::Value x, mlir::Value y);
  mlir::Value either(mlir::Value x, mlir::Value y);
  mlir::Value asI64(mlir::Value index);
  /// The coordinates of a row-major position.
  llvm::SmallVector<mlir::Value> split(mlir::Value position, llvm::ArrayRef<int64_t> extents);

  /// `for (i = from; i < to; ++i)`; the body returns what is carried to the next step.
  using Step = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value i, mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value> loop(mlir::Value from, mlir::Value to, mlir::ValueRange inits, Step body);
  void loop(mlir::Value from, mlir::Value to, llvm::function_ref<void(mlir::Value)> body);
  /// While `condition` of the carried values holds.
  llvm::SmallVector<mlir::Value> whileLoop(mlir::ValueRange inits, llvm::function_ref<mlir::Value(mlir::ValueRange)> condition,
                                           llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)> body);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  /// Values of one of two branches, of which only one is computed.
  mlir::Value choose(mlir::Value condition, llvm::function_ref<mlir::Value()> then, llvm::function_ref<mlir::Value()> otherwise);
  /// Independent iterations over the threads of the group; `width` is the extent, or a bound of it.
  void parallel(mlir::Value extent, int64_t width, llvm::function_ref<void(mlir::Value)> body);
  void parallel(int64_t extent, llvm::function_ref<void(mlir::Value)> body) { parallel(index(extent), extent, body); }

private:
  mlir::Block &block;
  unsigned numInputs;
};

/// A kern.program. Every result must be written fully; results that nothing reads are scratch.
llvm::SmallVector<mlir::Value> program(Builder &b, mlir::ValueRange inputs, llvm::ArrayRef<mlir::RankedTensorType> results,
                                       int64_t groups, llvm::function_ref<void(ProgramBody &)> body);

/// A tensor seen as lines along an axis: element `j` of line `l` lies at `start(l) + j * stride`.
struct Lines {
  int64_t outer = 1, length = 1, stride = 1;
  Lines(llvm::ArrayRef<int64_t> shape, int64_t axis);
  int64_t count() const { return outer * stride; }
  mlir::Value start(ProgramBody &p, mlir::Value line) const;
};

} // namespace ogc::lower

#endif
