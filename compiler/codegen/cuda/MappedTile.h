//===- MappedTile.h - tiles that tensor maps fill -------------------------===//
//
// Engine::TensorMaps (device/tma.cuh): the rows of a tile are any multiple of eight, so forms are computed, not listed.
//
#ifndef OGC_CODEGEN_CUDA_MAPPEDTILE_H
#define OGC_CODEGEN_CUDA_MAPPEDTILE_H

#include "compiler/codegen/cuda/AnchorChoice.h"

namespace ogc::codegen {

/// A tile with its estimated time in microseconds.
struct TimedTile {
  double time = 0;
  TileChoice tile;
};

/// Elements of a line of the swizzle, which is what a box is wide.
constexpr int64_t mappedLine(int bytes) { return 128 / bytes; }
/// True where operands and machine allow tensor maps.
bool takesTensorMaps(const TileProblem &problem, CudaArch arch);
int mappedSharedBytes(const TileChoice &tile, const TileProblem &problem);
/// True for tiles of Engine::TensorMaps that the template can run.
bool isLegalMapped(const TileChoice &tile, const TileProblem &problem, CudaArch arch);
/// Worthwhile tiles for the problem, in no order.
std::vector<TimedTile> mappedTiles(const TileProblem &problem, CudaArch arch);

} // namespace ogc::codegen

#endif
