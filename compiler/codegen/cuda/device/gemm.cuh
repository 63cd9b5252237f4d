//===- gemm.cuh - matrix product on tensor cores --------------------------===//
#ifndef OGC_DEVICE_GEMM_CUH
#define OGC_DEVICE_GEMM_CUH

#include "ogc/tma.cuh"
#include "ogc/wide.cuh"

namespace ogc {

/// See README.md, "gemm". Derived configurations give Element, M, N, K and, where they differ from dense, the strides.
struct GemmDefaults : TileDefaults {
  enum { ASb = 0, ASm = -1, ASk = 1, BSb = 0, BSk = -1, BSn = 1 };
};

/// A[m, k] of one batch: rows m0.. of the tile.
template <class C, class S> struct RowLoader {
  using T = typename C::Element;
  enum : long long { StrideM = (long long)C::ASm < 0 ? (long long)C::K : (long long)C::ASm };
  const T *a;
  int rows;
  __device__ __forceinline__ RowLoader(const T *base, int batch, int m0)
      : a(base + (long long)C::ASb * batch + (long long)StrideM * m0), rows(S::M - m0) {}
  __device__ __forceinline__ void load(unsigned char *shared, int k0) const {
    loadMatrix<T, S::BM, S::BK, C::VecA, S::Threads, false>(shared, a + (long long)C::ASk * k0, StrideM, C::ASk, rows, S::K - k0,
                                                            [](int m, int k) { return S::placeA(m, k); });
  }
};

/// The strides of B with their defaults filled in.
template <class C> struct DenseStrides : C {
  enum : long long { BSk = (long long)C::BSk < 0 ? (long long)C::N : (long long)C::BSk };
};

/// acc[b, m, n] = sum over k of A[b, m, k] * B(b, k, n); calls the epilogue once for each V columns of a row.
template <class C, class Epilogue>
__device__ __forceinline__ void gemm(const typename C::Element *a, const typename C::Element *b, const Epilogue &epilogue) {
  using S = typename SelectTile<C, C::M, C::N, C::K, C::Engine>::Type;
  int block = blockIdx.x;
  int rank = block % S::Split;
  block /= S::Split;
  int n0 = block % S::TilesN * S::BN;
  block /= S::TilesN;
  int m0 = block % S::TilesM * S::BM, batch = block / S::TilesM;
  RowLoader<C, S> rows(a, batch, m0);
  if constexpr (C::BLayout == 0)
    runTile<C, S>(rows, PanelLoader<C, S>(b, batch, n0), rank, batch, m0, n0, epilogue);
  else
    runTile<C, S>(rows, DenseLoader<DenseStrides<C>, S>(b, batch, n0), rank, batch, m0, n0, epilogue);
}

/// The same with Engine 2, whose operands are tensor maps.
template <class C, class Epilogue>
__device__ __forceinline__ void gemm(const TensorMap &a, const TensorMap &b, const Epilogue &epilogue) {
  using E = Early<Epilogue>;
  using S = TmaTile<C, C::M, C::N, C::K, E::HasRow ? (int)sizeof(typename E::Row) : 0>;
  int block = blockIdx.x;
  int rank = block % S::Split;
  block /= S::Split;
  int n0 = block % S::TilesN * S::BN;
  block /= S::TilesN;
  runTma<C, S>(a, b, rank, block / S::TilesM, block % S::TilesM * S::BM, n0, epilogue);
}

} // namespace ogc

#endif
