//===- AnchorChoice.h - tiles of the hand-written templates ---------------===//
//
// The rules of device/README.md, from shapes and the architecture alone; a tuning file may replace their results.
//
#ifndef OGC_CODEGEN_CUDA_ANCHORCHOICE_H
#define OGC_CODEGEN_CUDA_ANCHORCHOICE_H

#include "compiler/codegen/cuda/Schedules.h"

namespace ogc::codegen {

/// `ogc::gemm` and `ogc::conv`.
struct TileChoice {
  int bm = 64, bn = 64, bk = 64;          ///< block tile
  int warpsM = 2, warpsN = 2, warpsK = 1; ///< warpgroups with the wide engine
  bool isWide = false;                    ///< products by wgmma, which exists on sm_90a alone
  int stages = 2, split = 1;
  int sharedBytes = 0;
  Trigger trigger = Trigger::AfterWait;
  int threads() const { return 32 * warpsM * warpsN * warpsK * (isWide ? 4 : 1); }
};

/// A product of `batch` times M x N x K with elements of `bytes`; `transposed` when B is stored [N, K];
/// `isNarrow` when A is loaded in pieces below four bytes.
TileChoice chooseTile(int64_t batch, int64_t m, int64_t n, int64_t k, int bytes, bool transposed, bool isNarrow, CudaArch arch);

/// `ogc::gemv`.
struct GemvChoice {
  int bn = 32, warps = 8, split = 1;
  int64_t sharedBytes = 0;
  Trigger trigger = Trigger::AfterWait;
};

GemvChoice chooseGemv(int64_t batch, int64_t m, int64_t n, int64_t k, CudaArch arch);

/// `ogc::attention`.
struct AttentionChoice {
  int warpsQ = 1, warpsT = 4, bt = 64, stages = 2, split = 1;
  int64_t sharedBytes = 0;
  Trigger trigger = Trigger::AfterWait;
  int rows() const { return 16 * warpsQ; }
  int threads() const { return 32 * warpsQ * warpsT; }
};

/// `rows` query rows (queries times heads of a group) for each of `groups` key heads; `keys` keys. False in `fits` when no form
/// has enough shared memory.
AttentionChoice chooseAttention(int64_t rows, int64_t groups, int64_t keys, int64_t d, int64_t dv, int bytes, CudaArch arch,
                                bool &fits);

/// Shared memory that a block may have, in bytes.
int64_t mostSharedBytes(CudaArch arch);

} // namespace ogc::codegen

#endif
