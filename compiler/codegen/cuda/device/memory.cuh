//===- memory.cuh - global memory of generated kernels --------------------===//
#ifndef OGC_DEVICE_MEMORY_CUH
#define OGC_DEVICE_MEMORY_CUH

#include "ogc/ptx.cuh"

namespace ogc {

/// N elements that move as one access of sizeof(T) * N bytes (1, 2, 4, 8 or 16).
template <class T, int N> struct alignas(sizeof(T) * N) Vec {
  T v[N];
};

/// Reads by an ordinary load. Through a const __restrict__ parameter, which only weights have, the compiler makes the read-only
/// path of it.
template <class T, int N> __device__ __forceinline__ Vec<T, N> loadVec(const T *p) {
  using W = typename Word<(int)sizeof(T) * N>::Type;
  W w = *reinterpret_cast<const W *>(p);
  Vec<T, N> r;
  memcpy(&r, &w, sizeof(w));
  return r;
}
template <class T> __device__ __forceinline__ T loadElement(const T *p) { return loadVec<T, 1>(p).v[0]; }

template <class T, int N> __device__ __forceinline__ void storeVec(T *p, const Vec<T, N> &x) {
  using W = typename Word<(int)sizeof(T) * N>::Type;
  W w;
  memcpy(&w, &x, sizeof(w));
  *reinterpret_cast<W *>(p) = w;
}

/// The same pointer, known to the compiler only from here on: loads through it are not moved above `wait()`. They must not take
/// the read-only path (`__ldg`, const __restrict__) either: ptxas moves those across the wait.
///
/// The pointer stays a generic one on purpose: where one branch reads a constant and another this, the compiler makes one load of
/// two pointers, which becomes `ld.global.nc` if it knows both to be global memory.
template <class T> __device__ __forceinline__ T *afterWait(T *p) {
  asm volatile("" : "+l"(p)::"memory");
  return p;
}

} // namespace ogc

#endif
