//===- Contraction.h - the register tile of matmul and convolution --------===//
//
// One micro-kernel serves all contractions: `rows` x `columns` accumulators in vector registers; per step of K one element of
// each row is broadcast and multiplied with `vectors` vectors of a panel of columns. What differs is where rows and panels lie in
// memory.
//
#ifndef OGC_CODEGEN_CPU_CONTRACTION_H
#define OGC_CODEGEN_CPU_CONTRACTION_H

#include "compiler/analysis/InterleavedParts.h"
#include "compiler/codegen/cpu/KernelFunction.h"

namespace ogc::codegen {

struct MicroTile {
  int64_t rows, vectors, lanes;
  /// Of each element, over interleaved steps of K (as far as their number is a multiple). It depends on the rows alone, not on
  /// how the columns lie: a product has the same bits whether its weights are constants, and packed, or not.
  int64_t sums = 1;
  int64_t columns() const { return vectors * lanes; }

  /// The tile for `rows` rows in all and at most `columns` columns (a multiple of the lanes), as large as the registers allow.
  static MicroTile choose(const CpuTarget &target, int64_t rows, int64_t columns);
};

/// Element (row i, step k) lies at `bases[i] + k` of a flat f32 buffer.
struct RowSource {
  mlir::Value buffer;
  llvm::SmallVector<mlir::Value> bases;
};

/// Element (step k, column j) lies at `base + k * stepStride + j` of a flat buffer of f32, f16 or bf16.
struct PanelSource {
  mlir::Value buffer;
  mlir::Value base;
  int64_t stepStride;
};

/// Accumulators of a tile, all zero, row by row.
llvm::SmallVector<mlir::Value> zeroTile(KernelFunction &kernel, const MicroTile &tile);

/// The accumulators after `steps` steps of K.
llvm::SmallVector<mlir::Value> emitSteps(KernelFunction &kernel, const MicroTile &tile, llvm::ArrayRef<mlir::Value> accumulators,
                                         const RowSource &rows, const PanelSource &panel, int64_t steps);

/// What follows the anchor, for the elements of one tile. Rows of the anchor's result are all its dimensions but the last.
/// Results of the kernel that are not computed from the anchor are left to the schedule.
class Epilogue {
public:
  /// Fails where a yielded value is not of the anchor's shape or a reshape of it.
  static mlir::FailureOr<Epilogue> create(KernelFunction &kernel, mlir::Operation *anchor, const MicroTile &tile);

  /// Stores the results for rows from `firstRow` and columns from `firstColumn`. Columns past the last are left out when tiles
  /// start at multiples of their width.
  mlir::LogicalResult emit(llvm::ArrayRef<mlir::Value> accumulators, mlir::Value firstRow, mlir::Value firstColumn);

  /// Stores the statistics of rows [firstRow, endRow), whose columns from `part * RowStatisticsOp::width` on are stored.
  mlir::LogicalResult emitStatistics(mlir::Value firstRow, mlir::Value endRow, mlir::Value part);

  /// Distance between the rows of a tile in rows of the result.
  int64_t rowStep = 1;
  /// Every tile lies inside of the result, wherever it starts.
  bool tilesAreFull = false;

private:
  Epilogue(KernelFunction &kernel, mlir::Operation *anchor, const MicroTile &tile) : kernel(kernel), anchor(anchor), tile(tile) {}
  mlir::LogicalResult emitColumns(mlir::Value firstRow, mlir::Value firstColumn, mlir::Value count);
  /// Binds what is the same for a whole row, so that it is computed once for each.
  mlir::LogicalResult bindRow(llvm::ArrayRef<mlir::Value> row);
  /// The positions of `op`'s rows and results among the results; nothing where its rows are not stored as they are.
  struct StoredStatistics {
    unsigned rows, means, squares;
  };
  std::optional<StoredStatistics> storedStatistics(kern::RowStatisticsOp op);

  KernelFunction &kernel;
  mlir::Operation *anchor;
  MicroTile tile;
  int64_t rows = 0, columns = 0;
  InterleavedParts split; ///< what follows reads the result in these parts
  llvm::SmallVector<unsigned> results;
  llvm::SmallVector<StoredStatistics, 1> statistics;
  mlir::Value buffer;
};

/// Splits `count` items evenly into `parts`: the first item of part `index`.
mlir::Value splitBegin(KernelFunction &kernel, mlir::Value index, int64_t count, int64_t parts);

/// Columns of a panel that hold any of the `columns` columns in all: where to stop when the panel is walked in strips of `strip`.
mlir::Value stripEnd(KernelFunction &kernel, mlir::Value panelIndex, int64_t panel, int64_t strip, int64_t columns);

/// Runs `body` for tiles of `size` that cover [begin, end), which has at least `size` items: the last tile may overlap the one
/// before.
mlir::LogicalResult forEachTile(KernelFunction &kernel, mlir::Value begin, mlir::Value end, int64_t size,
                                llvm::function_ref<mlir::LogicalResult(mlir::Value)> body);

} // namespace ogc::codegen

#endif
