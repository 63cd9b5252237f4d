//===- BoxTile.h - tiles of boxes of pixels -------------------------------===//
//
// Engine::Boxes (device/tma_conv.cuh): blocks that stay, for convolutions of so many pixels that a multiprocessor has several
// tiles.
//
#ifndef OGC_CODEGEN_CUDA_BOXTILE_H
#define OGC_CODEGEN_CUDA_BOXTILE_H

#include "compiler/codegen/cuda/MappedTile.h"

namespace ogc::codegen {

/// The taps of a filter along one dimension, divided by what a stride makes of the input: phase p has the taps p, p + phases, …,
/// each `shift` elements of the phase further on.
struct TapPhases {
  TapPhases(int64_t taps, int64_t stride, int64_t dilation);
  int64_t phases, shift;
  int64_t most; ///< taps of a phase
};

/// What follows from a tile: the numbers of `BoxTile` in the template.
struct BoxGeometry {
  BoxGeometry(const TileChoice &tile, const BoxProblem &problem);
  TapPhases tapsY, tapsX;
  int64_t pitch, rows;            ///< pixels of a copied box
  int64_t groups;                 ///< of eight pixels, of a tile
  int64_t loadBytes, filterBytes; ///< of a line of channels of a tile's boxes, and of one tap
  int64_t loads, taps;            ///< of a tile
  int64_t sharedBytes;
  int64_t tilesM, tilesN;
  /// Blocks of the grid on a machine of `multiprocessors`.
  int64_t grid(const TileChoice &tile, int64_t multiprocessors = 132) const;
};

/// True where machine and extents allow boxes.
bool takesBoxes(const TileProblem &problem, CudaArch arch);
/// True for tiles of Engine::Boxes that the template can run.
bool isLegalBox(const TileChoice &tile, const TileProblem &problem, CudaArch arch);
/// Microseconds that memory takes for input, result, and what the epilogue reads.
double movedTime(const BoxProblem &problem);
/// Worthwhile tiles for the problem, in no order.
std::vector<TimedTile> boxTiles(const TileProblem &problem, CudaArch arch);

} // namespace ogc::codegen

#endif
