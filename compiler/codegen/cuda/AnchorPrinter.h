//===- AnchorPrinter.h - the text of one kernel with an anchor ------------===//
//
// Shared by Anchor.cpp and the files that print one kind of anchor; nobody else includes it.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_CODEGEN_CUDA_ANCHORPRINTER_H
#define OGC_CODEGEN_CUDA_ANCHORPRINTER_H

#include "compiler/analysis/StridedView.h"
#include "compiler/codegen/cuda/AnchorChoice.h"
#include "compiler/codegen/cuda/Epilogue.h"
#include "compiler/codegen/cuda/MappedTile.h"
#include "compiler/codegen/cuda/PulledOperands.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace ogc::codegen {

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

/// "1x128x768x3072": extents in a problem's name.
inline std::string join(llvm::ArrayRef<int64_t> extents) {
  return llvm::join(llvm::map_range(extents, [](int64_t extent) { return std::to_string(extent); }), "x");
}

/// An anchor operand as a kernel argument seen through strides.
struct Operand {
  unsigned argument = 0;
  StridedView view;
  int bytes = 0; ///< an element

  std::string pointer() const {
    return "p" + std::to_string(argument) + (view.offset ? " + " + std::to_string(view.offset) : "");
  }

  /// Elements of one load (8, 4, 2 or 1; 16 bytes at most): `unit` is the dimension that loads run along, all other strides in
  /// `others` and the offset must be multiples, and so must `extents`.
  int vector(int64_t unit, llvm::ArrayRef<int64_t> others, llvm::ArrayRef<int64_t> extents = {}) const {
    if (unit != 1)
      return 1;
    for (int width = 16 / bytes; width > 1; width /= 2)
      if (view.offset % width == 0 && llvm::all_of(others, [&](int64_t s) { return s % width == 0; }) &&
          llvm::all_of(extents, [&](int64_t e) { return e % width == 0; }))
        return width;
    return 1;
  }

  /// The strides of the dimensions of `shape` that have more than one index, without the innermost.
  llvm::SmallVector<int64_t> movingStrides(llvm::ArrayRef<int64_t> shape) const {
    llvm::SmallVector<int64_t> moving;
    for (auto [extent, stride] : llvm::zip(shape.drop_back(), view.strides))
      if (extent > 1)
        moving.push_back(stride);
    return moving;
  }

  /// True where a tensor map can describe lines along `unit`, `others` apart: 16-byte units, no dimension repeated.
  bool isMappable(int64_t unit, llvm::ArrayRef<int64_t> others, llvm::ArrayRef<int64_t> extents = {}) const {
    return vector(unit, others, extents) * bytes == 16 && llvm::all_of(others, [](int64_t stride) { return stride > 0; });
  }
};

/// The text of a configuration struct.
class Config {
public:
  Config(llvm::StringRef name, llvm::StringRef defaults, llvm::StringRef element) {
    text = ("struct " + name + " : ogc::" + defaults + " {\n  using Element = " + element + ";\n").str();
  }
  void use(llvm::StringRef name, llvm::StringRef type) { text += ("  using " + name + " = " + type + ";\n").str(); }
  void set(llvm::StringRef name, int64_t value) {
    std::string &list = llvm::isInt<32>(value) ? small : large;
    list += (list.empty() ? "" : ", ") + (name + " = " + llvm::Twine(value)).str();
  }
  std::string str() const {
    return text + "  enum { " + small + " };\n" + (large.empty() ? "" : "  enum : long long { " + large + " };\n") + "};\n";
  }

private:
  std::string text, small, large;
};

class AnchorPrinter {
public:
  AnchorPrinter(kern::KernelOp kernel, CudaArch arch, Tuning &tuning, bool &fits)
      : kernel(kernel), arch(arch), tuning(tuning), fits(fits), types(needsWideIndex(kernel)),
        constant(constantArguments(kernel)) {}

  mlir::FailureOr<KernelText> print(mlir::Operation *anchor);

private:
  mlir::LogicalResult printMatmul(kern::MatmulOp op);
  /// `strides` are those of the rows: batch, m, k. `setB` fills the members of B, which lies in `layout`.
  mlir::LogicalResult printGemv(mlir::Value lhs, const Operand &a, std::array<int64_t, 3> strides, const Operand &b,
                                llvm::StringRef layout, llvm::function_ref<void(Config &)> setB, int vecB, int64_t panel,
                                const TileProblem &problem);
  mlir::LogicalResult printConv(kern::ConvOp op);
  /// A product of rows, `strides` apart (batch, m), and panels of `panel` columns, whose operands are tensor maps.
  void printMapped(mlir::Value lhs, const Operand &rows, std::array<int64_t, 2> strides, const Operand &panels, int64_t panel,
                   const TileProblem &problem, const TileChoice &tile);
  /// A convolution over boxes of pixels.
  void printBoxes(kern::ConvOp op, const Operand &x, const Operand &filter, const BoxProblem &problem, const TileChoice &tile);
  /// Nothing where printBoxes does not take the operands.
  std::optional<BoxProblem> boxProblemOf(kern::ConvOp op, const Operand &x) const;
  /// True where products of `lhs` and panels of `panel` columns can be computed from boxes of tensor maps: 16 bits, or f32
  /// rounded to tf32; panels of whole lines.
  static bool takesBoxes(mlir::Value lhs, kern::MathMode math, int64_t panel) {
    mlir::Type element = llvm::cast<mlir::RankedTensorType>(lhs.getType()).getElementType();
    bool hasType = element.isF16() || element.isBF16() || (element.isF32() && math == kern::MathMode::TF32);
    return hasType && panel % mappedLine(elementBytes(lhs)) == 0;
  }
  mlir::LogicalResult printDepthwise(kern::DepthwiseConvOp op);
  mlir::LogicalResult printAttention(kern::AttentionOp op);
  /// Attention whose operands are tensor maps, if that has a form; `setShared` fills the members that all forms have.
  bool printMappedAttention(kern::AttentionOp op, llvm::ArrayRef<const Operand *> operands, const AttentionProblem &problem,
                            const std::string &name, const std::string &bias, llvm::function_ref<void(Config &)> setShared);
  /// The same in the form for more keys.
  bool printWideAttention(kern::AttentionOp op, llvm::ArrayRef<const Operand *> operands, const AttentionProblem &problem,
                          const std::string &name, const std::string &bias, llvm::function_ref<void(Config &)> setShared);
  /// The call of template `form`, whose boxes have `rows` query rows and `keyRows` keys.
  void printAttentionMaps(kern::AttentionOp op, llvm::ArrayRef<const Operand *> operands, const AttentionProblem &problem,
                          int64_t rows, int64_t keyRows, llvm::StringRef form, const std::string &bias);
  mlir::FailureOr<PulledOperands> printAttentionOperands(kern::AttentionOp op, bool pullsQuery);
  static void setMembers(Config &out, llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> members) {
    for (auto [name, value] : members)
      out.set(name, value);
  }
  std::string elementName(unsigned argument) { return elementName(kernel.getBody().getArgument(argument)); }
  static int elementBytes(mlir::Value value) {
    return cudaElementBytes(llvm::cast<mlir::RankedTensorType>(value.getType()).getElementType());
  }

  std::optional<Operand> resolve(mlir::Value value) { return resolve(resolveStridedView(value)); }
  std::optional<Operand> resolve(StridedView view);
  /// The widest load of channels of a depthwise convolution, which is also how many the epilogue takes at most.
  int channelLanes(kern::DepthwiseConvOp op);
  void setTile(Config &config, const TileProblem &problem, const TileChoice &tile);
  /// The launch of a template that needs `sharedBytes` of dynamic shared memory.
  void setLaunch(int64_t grid, int threads, int cluster, int64_t sharedBytes, const LaunchPolicy &policy) {
    launch = {uint32_t(grid), uint32_t(threads), uint32_t(cluster), uint32_t(std::max(sharedBytes, policy.reservedBytes))};
  }
  void setProducts(Config &config, const Operand &operand, kern::MathMode math) {
    config.set("Products", operand.bytes == 4 && math == kern::MathMode::IEEE ? 3 : 1);
  }
  /// The product of a matmul or of a convolution's images, as the templates see it.
  static TileProblem problemOf(kern::MatmulOp op, const Operand &a, const Operand &b);
  static TileProblem problemOf(kern::ConvOp op, const Operand &x);
  /// The members and the launch of the other forms; false where no tile fits.
  void setDecode(Config &out, const AttentionProblem &problem, int64_t newRows, bool cacheConstant, const std::string &name);
  bool setAttention(Config &out, const AttentionProblem &problem, const std::string &name);
  static AttentionProblem problemOf(kern::AttentionOp op);
  static int64_t newRowsOf(kern::AttentionOp op);
  bool isGemv(kern::ConvOp op, const TileProblem &problem) const;
  /// The most accumulators that the template hands to an epilogue at once.
  int mostLanes(mlir::Operation *anchor);
  /// Elements of B that one load takes; loads run along n, or along k when B is transposed.
  static int vectorOfB(kern::MatmulOp op, const Operand &b);
  /// Fills B's members; the strides of a batch that is repeated are zero.
  void setB(Config &config, kern::MatmulOp op, const Operand &b);
  /// True for panels that lie row-major in their buffer.
  static bool isDense(mlir::Value value, const Operand &operand);
  /// How products of such operands are computed: their type, "tf32", or "3xtf32".
  std::string productName(mlir::Value operand, kern::MathMode math) const {
    std::string element = plainName(operand);
    return element != "float" ? element : math == kern::MathMode::IEEE ? "3xtf32" : "tf32";
  }
  /// The element type without a namespace, for the names of problems.
  std::string plainName(mlir::Value value) const {
    return elementName(value).substr(elementName(value).starts_with("ogc::") ? 5 : 0);
  }
  std::string elementName(mlir::Value value) const {
    return types.name(llvm::cast<mlir::RankedTensorType>(value.getType()).getElementType());
  }
  mlir::LogicalResult unfit() {
    fits = false;
    return mlir::failure();
  }

  kern::KernelOp kernel;
  CudaArch arch;
  Tuning &tuning;
  bool &fits;
  CudaTypes types;
  llvm::SmallVector<bool> constant;
  Epilogue epilogue;
  // The parts of the result.
  std::string header, config, operands, call;
  LaunchShape launch;
  std::vector<TensorMap> maps;
  int residentBlocks = 1; ///< of a multiprocessor: bounds the registers
};

} // namespace ogc::codegen

#endif
