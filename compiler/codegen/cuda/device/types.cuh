// types.cuh - storage types, conversions, 16-byte accesses and the programmatic dependency on the kernel before
#ifndef OGC_DEVICE_TYPES_CUH
#define OGC_DEVICE_TYPES_CUH

namespace ogc {

/// Storage of IEEE half and bfloat16. There is no arithmetic on them: values are extended to f32 on load and rounded on store.
struct f16 {
  unsigned short bits;
};
struct bf16 {
  unsigned short bits;
};

//===- conversions: exact widening, round-to-nearest-even narrowing ------===//

__device__ __forceinline__ float toFloat(float x) { return x; }
__device__ __forceinline__ float toFloat(f16 x) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
  return r;
}
__device__ __forceinline__ float toFloat(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }

__device__ __forceinline__ f16 toF16(float x) {
  f16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
  return r;
}
__device__ __forceinline__ bf16 toBF16(float x) {
  bf16 r;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
#else
  unsigned u = __float_as_uint(x);
  r.bits = x != x ? 0x7fff : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
#endif
  return r;
}
__device__ __forceinline__ f16 toF16(double x) {
  f16 r;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(r.bits) : "d"(x));
  return r;
}
/// Through f32 rounded to odd, so that the second rounding is right.
__device__ __forceinline__ bf16 toBF16(double x) {
  float f = __double2float_rz(x);
  if ((double)f != x && x == x && !(__float_as_uint(f) & 1u))
    f = __uint_as_float(__float_as_uint(f) | 1u);
  return toBF16(f);
}

template <typename T> __device__ __forceinline__ T fromFloat(float x);
template <> __device__ __forceinline__ float fromFloat<float>(float x) { return x; }
template <> __device__ __forceinline__ f16 fromFloat<f16>(float x) { return toF16(x); }
template <> __device__ __forceinline__ bf16 fromFloat<bf16>(float x) { return toBF16(x); }

//===- global memory -----------------------------------------------------===//

/// N elements that move as one access of sizeof(T) * N bytes (1, 2, 4, 8 or 16).
template <typename T, int N> struct alignas(sizeof(T) * N) Vec {
  T v[N];
  __device__ __forceinline__ T &operator[](int i) { return v[i]; }
  __device__ __forceinline__ const T &operator[](int i) const { return v[i]; }
};

template <int Bytes> struct Word;
template <> struct Word<1> { using type = unsigned char; };
template <> struct Word<2> { using type = unsigned short; };
template <> struct Word<4> { using type = unsigned; };
template <> struct Word<8> { using type = uint2; };
template <> struct Word<16> { using type = uint4; };

/// Reads through the read-only path: nothing may write the location while the kernel runs.
template <typename T, int N> __device__ __forceinline__ Vec<T, N> loadVec(const T *p) {
  using W = typename Word<sizeof(T) * N>::type;
  W w = __ldg(reinterpret_cast<const W *>(p));
  Vec<T, N> r;
  __builtin_memcpy(&r, &w, sizeof(w));
  return r;
}
template <typename T> __device__ __forceinline__ T load(const T *p) { return loadVec<T, 1>(p).v[0]; }

template <typename T, int N> __device__ __forceinline__ void storeVec(T *p, const Vec<T, N> &x) {
  using W = typename Word<sizeof(T) * N>::type;
  W w;
  __builtin_memcpy(&w, &x, sizeof(w));
  *reinterpret_cast<W *>(p) = w;
}

//===- programmatic dependent launch (sm_90 and later) -------------------===//

/// Blocks until the kernels before this one have finished and their writes are visible.
__device__ __forceinline__ void waitForPredecessors() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the kernels after this one start; they still wait for its end before they read what it writes.
__device__ __forceinline__ void launchDependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// The same pointer, known to the compiler only from here on. Loads from const __restrict__ arguments count as invariant and may be
/// moved above the wait; loads through the pointer returned here may not.
template <typename T> __device__ __forceinline__ T *afterWait(T *p) {
  asm volatile("" : "+l"(p)::"memory");
  return p;
}

} // namespace ogc

#endif
