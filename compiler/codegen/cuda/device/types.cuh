//===- types.cuh - 16-bit floats, vector loads and stores -----------------===//
//
// No standard header is included: these files are compiled by NVRTC as well as by nvcc.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_TYPES_CUH
#define OGC_DEVICE_TYPES_CUH

namespace ogc {

/// IEEE binary16 as bits; arithmetic is done in float.
struct f16 {
  unsigned short bits;
  static __device__ __forceinline__ f16 fromBits(unsigned short b) { return f16{b}; }
};

/// bfloat16 as bits; arithmetic is done in float.
struct bf16 {
  unsigned short bits;
  static __device__ __forceinline__ bf16 fromBits(unsigned short b) { return bf16{b}; }
};

__device__ __forceinline__ float toFloat(float x) { return x; }
__device__ __forceinline__ float toFloat(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ __forceinline__ float toFloat(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }

template <class T> struct Convert;
template <> struct Convert<float> {
  static __device__ __forceinline__ float from(float x) { return x; }
};
template <> struct Convert<f16> {
  static __device__ __forceinline__ f16 from(float x) {
    f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  }
  /// Two values in one register, `lo` in the low half.
  static __device__ __forceinline__ unsigned pair(float lo, float hi) {
    unsigned y;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo));
    return y;
  }
};
template <> struct Convert<bf16> {
  static __device__ __forceinline__ bf16 from(float x) {
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
  }
  static __device__ __forceinline__ unsigned pair(float lo, float hi) {
    unsigned y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(hi), "f"(lo));
    return y;
  }
};

/// Rounds to nearest even; f16 overflows to infinity.
template <class T> __device__ __forceinline__ T fromFloat(float x) { return Convert<T>::from(x); }

/// The register type that moves N bytes in one instruction.
template <int Bytes> struct Word;
template <> struct Word<1> {
  using Type = unsigned char;
};
template <> struct Word<2> {
  using Type = unsigned short;
};
template <> struct Word<4> {
  using Type = unsigned;
};
template <> struct Word<8> {
  using Type = uint2;
};
template <> struct Word<16> {
  using Type = uint4;
};

/// Copies V elements by the widest loads; p is aligned to V * sizeof(T) (16 bytes at most).
template <int V, class T> __device__ __forceinline__ void loadRaw(T (&dst)[V], const T *p) {
  constexpr int Total = V * (int)sizeof(T), Step = Total < 16 ? Total : 16;
  using W = typename Word<Step>::Type;
#pragma unroll
  for (int i = 0; i < Total / Step; ++i) {
    W w = reinterpret_cast<const W *>(p)[i];
    memcpy(reinterpret_cast<char *>(dst) + i * Step, &w, Step);
  }
}

template <int V, class T> __device__ __forceinline__ void storeRaw(T *p, const T (&src)[V]) {
  constexpr int Total = V * (int)sizeof(T), Step = Total < 16 ? Total : 16;
  using W = typename Word<Step>::Type;
#pragma unroll
  for (int i = 0; i < Total / Step; ++i) {
    W w;
    memcpy(&w, reinterpret_cast<const char *>(src) + i * Step, Step);
    reinterpret_cast<W *>(p)[i] = w;
  }
}

/// V consecutive elements as floats.
template <int V, class T> __device__ __forceinline__ void load(float (&dst)[V], const T *p) {
  T raw[V];
  loadRaw<V>(raw, p);
#pragma unroll
  for (int i = 0; i < V; ++i)
    dst[i] = toFloat(raw[i]);
}

template <int V, class T> __device__ __forceinline__ void store(T *p, const float (&src)[V]) {
  T raw[V];
#pragma unroll
  for (int i = 0; i < V; ++i)
    raw[i] = fromFloat<T>(src[i]);
  storeRaw<V>(p, raw);
}

/// The dynamic shared memory of the kernel.
__device__ __forceinline__ unsigned char *sharedBase() {
  extern __shared__ __align__(1024) unsigned char ogcShared[];
  return ogcShared;
}

__device__ constexpr int divUp(int a, int b) { return (a + b - 1) / b; }
__device__ constexpr int roundUp(int a, int b) { return (a + b - 1) / b * b; }
__device__ constexpr int least(int a, int b) { return a < b ? a : b; }
__device__ constexpr int most(int a, int b) { return a > b ? a : b; }

} // namespace ogc

#endif
