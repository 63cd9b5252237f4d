//===- scalar.cuh - scalar operations that CUDA C++ has no function for ---===//
#ifndef OGC_DEVICE_SCALAR_CUH
#define OGC_DEVICE_SCALAR_CUH

#include "ogc/types.cuh"

namespace ogc {

__device__ __forceinline__ f16 toF16(float x) { return fromFloat<f16>(x); }
__device__ __forceinline__ bf16 toBF16(float x) {
#if __CUDA_ARCH__ >= 800
  return fromFloat<bf16>(x);
#else
  unsigned u = __float_as_uint(x);
  return bf16{(unsigned short)(x != x ? 0x7fffu : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
#endif
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

/// IEEE 754-2019 maximum and minimum: NaN if either is NaN, -0 below +0.
__device__ __forceinline__ float maximum(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a != a || b != b ? a + b : fmaxf(a, b);
#endif
}
__device__ __forceinline__ float minimum(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a != a || b != b ? a + b : fminf(a, b);
#endif
}
__device__ __forceinline__ double maximum(double a, double b) { return a != a || b != b ? a + b : fmax(a, b); }
__device__ __forceinline__ double minimum(double a, double b) { return a != a || b != b ? a + b : fmin(a, b); }

template <typename T> __device__ __forceinline__ T clampTo(T x, T low, T high) { return minimum(maximum(x, low), high); }

__device__ __forceinline__ bool isNaN(float x) { return x != x; }
__device__ __forceinline__ bool isNaN(double x) { return x != x; }
__device__ __forceinline__ bool isFinite(float x) { return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u; }
__device__ __forceinline__ bool isFinite(double x) {
  return ((unsigned long long)__double_as_longlong(x) & 0x7ff0000000000000ull) != 0x7ff0000000000000ull;
}
template <typename T> __device__ __forceinline__ bool isInf(T x) { return x == x && !isFinite(x); }
__device__ __forceinline__ bool isNormal(float x) { return isFinite(x) && fabsf(x) >= 0x1p-126f; }
__device__ __forceinline__ bool isNormal(double x) { return isFinite(x) && fabs(x) >= 0x1p-1022; }

/// Quotients rounded down and up; operands of the usual arithmetic types.
template <typename T> __device__ __forceinline__ T floorDiv(T a, T b) {
  T q = a / b;
  return q * b != a && ((a < 0) != (b < 0)) ? q - 1 : q;
}
template <typename T> __device__ __forceinline__ T ceilDiv(T a, T b) {
  T q = a / b;
  return q * b != a && ((a < 0) == (b < 0)) ? q + 1 : q;
}

template <typename T> struct Unsigned;
template <> struct Unsigned<signed char> {
  using type = unsigned char;
};
template <> struct Unsigned<short> {
  using type = unsigned short;
};
template <> struct Unsigned<int> {
  using type = unsigned;
};
template <> struct Unsigned<long long> {
  using type = unsigned long long;
};

/// The smallest value is its own absolute value.
template <typename T> __device__ __forceinline__ T absolute(T x) {
  using U = typename Unsigned<T>::type;
  return x < 0 ? (T)((U)0 - (U)x) : x;
}
template <typename T> __device__ __forceinline__ T popCount(T x) { return (T)__popcll((typename Unsigned<T>::type)x); }
template <typename T> __device__ __forceinline__ T leadingZeros(T x) {
  return (T)(__clzll((long long)(typename Unsigned<T>::type)x) - (64 - 8 * (int)sizeof(T)));
}
template <typename T> __device__ __forceinline__ T trailingZeros(T x) {
  return x == 0 ? (T)(8 * sizeof(T)) : (T)(__ffsll((long long)x) - 1);
}

/// base to the power of exponent, wrapping. A negative exponent gives the integer part of the quotient: 0 but for base 1 and -1.
template <typename T> __device__ __forceinline__ T ipow(T base, T exponent) {
  using U = typename Unsigned<T>::type;
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? ((exponent & 1) ? -1 : 1) : 0;
  U r = 1, b = (U)base;
  for (U e = (U)exponent; e != 0; e >>= 1) {
    if (e & 1)
      r *= b;
    b *= b;
  }
  return (T)r;
}
template <typename I> __device__ __forceinline__ float powi(float x, I n) { return (float)pow((double)x, (double)n); }
template <typename I> __device__ __forceinline__ double powi(double x, I n) { return pow(x, (double)n); }

template <typename To, typename From> __device__ __forceinline__ To bitcast(From x) {
  static_assert(sizeof(To) == sizeof(From), "bitcast between different sizes");
  To r;
  memcpy(&r, &x, sizeof(r));
  return r;
}

} // namespace ogc

#endif
