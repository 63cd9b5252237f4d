//===- wgmma.cuh - products of four warps (sm_90a) ------------------------===//
//
// acc (64 x N) += A (64 x 16) * B (16 x N), both operands in shared memory, given by descriptors, or A in registers; f16 and
// bf16. The same with depth 8 for f32, whose products are tf32, with A in registers.
//
//===----------------------------------------------------------------------===//
#ifndef OGC_DEVICE_WGMMA_CUH
#define OGC_DEVICE_WGMMA_CUH

#include "ogc/ptx.cuh"

namespace ogc {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
__device__ __forceinline__ void wideFence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wideCommit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most N groups of products are in flight.
template <int N = 0> __device__ __forceinline__ void wideWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
#else
__device__ __forceinline__ void wideFence() {}
__device__ __forceinline__ void wideCommit() {}
template <int N = 0> __device__ __forceinline__ void wideWait() {}
#endif

/// Waits for all products, and keeps the compiler from reading the accumulators earlier.
template <int NI> __device__ __forceinline__ void wideFinish(float (&acc)[NI][4]) {
  wideWait();
#pragma unroll
  for (int j = 0; j < NI; ++j)
#pragma unroll
    for (int q = 0; q < 4; ++q)
      asm volatile("" : "+f"(acc[j][q])::"memory");
}

/// An operand in shared memory: its address, the bytes between spans of the swizzle (for operands whose fastest dimension is not
/// k), between groups of eight rows, and the bytes of the swizzle: 128, 64 or 32.
__device__ __forceinline__ unsigned long long wideDescriptor(unsigned address, int leading, int stride, int swizzle) {
  return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16 |
         (unsigned long long)(stride >> 4) << 32 |
         (unsigned long long)(swizzle == 128  ? 1
                              : swizzle == 64 ? 2
                                              : 3)
             << 62;
}

/// acc (64 x 8 NI, as this thread's part) += A * B. TransposeA: m is the fastest dimension of A; TransposeB: n that of B; neither
/// for float.
template <class T, int NI, int TransposeA, int TransposeB> struct WideMma;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define OGC_ACC(j) "+f"(c[j][0]), "+f"(c[j][1]), "+f"(c[j][2]), "+f"(c[j][3])
// Names and operands of the accumulators of the first 8, 16, … columns.
#define OGC_R1 "%0,%1,%2,%3"
#define OGC_R2 OGC_R1 ",%4,%5,%6,%7"
#define OGC_R3 OGC_R2 ",%8,%9,%10,%11"
#define OGC_R4 OGC_R3 ",%12,%13,%14,%15"
#define OGC_R5 OGC_R4 ",%16,%17,%18,%19"
#define OGC_R6 OGC_R5 ",%20,%21,%22,%23"
#define OGC_R7 OGC_R6 ",%24,%25,%26,%27"
#define OGC_R8 OGC_R7 ",%28,%29,%30,%31"
#define OGC_R9 OGC_R8 ",%32,%33,%34,%35"
#define OGC_R10 OGC_R9 ",%36,%37,%38,%39"
#define OGC_R11 OGC_R10 ",%40,%41,%42,%43"
#define OGC_R12 OGC_R11 ",%44,%45,%46,%47"
#define OGC_R13 OGC_R12 ",%48,%49,%50,%51"
#define OGC_R14 OGC_R13 ",%52,%53,%54,%55"
#define OGC_R15 OGC_R14 ",%56,%57,%58,%59"
#define OGC_R16 OGC_R15 ",%60,%61,%62,%63"
#define OGC_R17 OGC_R16 ",%64,%65,%66,%67"
#define OGC_R18 OGC_R17 ",%68,%69,%70,%71"
#define OGC_R19 OGC_R18 ",%72,%73,%74,%75"
#define OGC_R20 OGC_R19 ",%76,%77,%78,%79"
#define OGC_R21 OGC_R20 ",%80,%81,%82,%83"
#define OGC_R22 OGC_R21 ",%84,%85,%86,%87"
#define OGC_R23 OGC_R22 ",%88,%89,%90,%91"
#define OGC_R24 OGC_R23 ",%92,%93,%94,%95"
#define OGC_R25 OGC_R24 ",%96,%97,%98,%99"
#define OGC_R26 OGC_R25 ",%100,%101,%102,%103"
#define OGC_R27 OGC_R26 ",%104,%105,%106,%107"
#define OGC_R28 OGC_R27 ",%108,%109,%110,%111"
#define OGC_R29 OGC_R28 ",%112,%113,%114,%115"
#define OGC_R30 OGC_R29 ",%116,%117,%118,%119"
#define OGC_R31 OGC_R30 ",%120,%121,%122,%123"
#define OGC_R32 OGC_R31 ",%124,%125,%126,%127"
#define OGC_C1 OGC_ACC(0)
#define OGC_C2 OGC_C1, OGC_ACC(1)
#define OGC_C3 OGC_C2, OGC_ACC(2)
#define OGC_C4 OGC_C3, OGC_ACC(3)
#define OGC_C5 OGC_C4, OGC_ACC(4)
#define OGC_C6 OGC_C5, OGC_ACC(5)
#define OGC_C7 OGC_C6, OGC_ACC(6)
#define OGC_C8 OGC_C7, OGC_ACC(7)
#define OGC_C9 OGC_C8, OGC_ACC(8)
#define OGC_C10 OGC_C9, OGC_ACC(9)
#define OGC_C11 OGC_C10, OGC_ACC(10)
#define OGC_C12 OGC_C11, OGC_ACC(11)
#define OGC_C13 OGC_C12, OGC_ACC(12)
#define OGC_C14 OGC_C13, OGC_ACC(13)
#define OGC_C15 OGC_C14, OGC_ACC(14)
#define OGC_C16 OGC_C15, OGC_ACC(15)
#define OGC_C17 OGC_C16, OGC_ACC(16)
#define OGC_C18 OGC_C17, OGC_ACC(17)
#define OGC_C19 OGC_C18, OGC_ACC(18)
#define OGC_C20 OGC_C19, OGC_ACC(19)
#define OGC_C21 OGC_C20, OGC_ACC(20)
#define OGC_C22 OGC_C21, OGC_ACC(21)
#define OGC_C23 OGC_C22, OGC_ACC(22)
#define OGC_C24 OGC_C23, OGC_ACC(23)
#define OGC_C25 OGC_C24, OGC_ACC(24)
#define OGC_C26 OGC_C25, OGC_ACC(25)
#define OGC_C27 OGC_C26, OGC_ACC(26)
#define OGC_C28 OGC_C27, OGC_ACC(27)
#define OGC_C29 OGC_C28, OGC_ACC(28)
#define OGC_C30 OGC_C29, OGC_ACC(29)
#define OGC_C31 OGC_C30, OGC_ACC(30)
#define OGC_C32 OGC_C31, OGC_ACC(31)
// start: as if the accumulators were zero. With A in registers the immediates are in the text, for want of a free number.
#define OGC_WIDE_TYPE(type, width, ni, a, b, ta, tb, last)                                                                       \
  template <int TransposeA, int TransposeB> struct WideMma<type, ni, TransposeA, TransposeB> {                                   \
    static __device__ __forceinline__ void run(float (&c)[ni][4], unsigned long long descA, unsigned long long descB) {          \
      OGC_WIDE_SHARED(type, width, ni, a, b, ta, tb, "1")                                                                        \
    }                                                                                                                            \
    static __device__ __forceinline__ void start(float (&c)[ni][4], unsigned long long descA, unsigned long long descB) {        \
      OGC_WIDE_SHARED(type, width, ni, a, b, ta, tb, "0")                                                                        \
    }                                                                                                                            \
    static __device__ __forceinline__ void run(float (&c)[ni][4], const unsigned (&x)[4], unsigned long long descB) {            \
      static_assert(TransposeA == 0, "registers are not transposed");                                                            \
      if constexpr (TransposeB) {                                                                                                \
        OGC_WIDE_REGISTERS(type, width, ni, a, b, ta, tb, last, "1")                                                             \
      } else {                                                                                                                   \
        OGC_WIDE_REGISTERS(type, width, ni, a, b, ta, tb, last, "0")                                                             \
      }                                                                                                                          \
    }                                                                                                                            \
  };
#define OGC_WIDE_SHARED(type, width, ni, a, b, ta, tb, scale)                                                                    \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #width "k16.f32." #type "." #type " {" OGC_R##ni                              \
               "}, %" #a ", %" #b ", " scale ", 1, 1, %" #ta ", %" #tb ";"                                                       \
               : OGC_C##ni                                                                                                       \
               : "l"(descA), "l"(descB), "n"(TransposeA), "n"(TransposeB));
#define OGC_WIDE_REGISTERS(type, width, ni, a0, a1, a2, a3, last, transpose)                                                     \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #width "k16.f32." #type "." #type " {" OGC_R##ni                              \
               "}, {%" #a0 ",%" #a1 ",%" #a2 ",%" #a3 "}, %" #last ", 1, 1, 1, " transpose ";"                                   \
               : OGC_C##ni                                                                                                       \
               : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "l"(descB));
#define OGC_WIDE_TF32(width, ni, a0, a1, a2, a3, b)                                                                              \
  template <> struct WideMma<float, ni, 0, 0> {                                                                                  \
    static __device__ __forceinline__ void run(float (&c)[ni][4], const unsigned (&a)[4], unsigned long long descB) {            \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #width "k8.f32.tf32.tf32 {" OGC_R##ni "}, {%" #a0 ",%" #a1 ",%" #a2       \
                                                                                             ",%" #a3 "}, %" #b ", 1, 1, 1;"     \
                   : OGC_C##ni                                                                                                   \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descB));                                                    \
    }                                                                                                                            \
  };
// The operands behind the accumulators: descriptors, then transpositions; or registers, then a descriptor.
#define OGC_WIDE(width, ni, a, b, ta, tb, last)                                                                                  \
  OGC_WIDE_TYPE(f16, width, ni, a, b, ta, tb, last)                                                                              \
  OGC_WIDE_TYPE(bf16, width, ni, a, b, ta, tb, last)                                                                             \
  OGC_WIDE_TF32(width, ni, a, b, ta, tb, last)
OGC_WIDE(8, 1, 4, 5, 6, 7, 8)
OGC_WIDE(16, 2, 8, 9, 10, 11, 12)
OGC_WIDE(24, 3, 12, 13, 14, 15, 16)
OGC_WIDE(32, 4, 16, 17, 18, 19, 20)
OGC_WIDE(40, 5, 20, 21, 22, 23, 24)
OGC_WIDE(48, 6, 24, 25, 26, 27, 28)
OGC_WIDE(56, 7, 28, 29, 30, 31, 32)
OGC_WIDE(64, 8, 32, 33, 34, 35, 36)
OGC_WIDE(72, 9, 36, 37, 38, 39, 40)
OGC_WIDE(80, 10, 40, 41, 42, 43, 44)
OGC_WIDE(88, 11, 44, 45, 46, 47, 48)
OGC_WIDE(96, 12, 48, 49, 50, 51, 52)
OGC_WIDE(104, 13, 52, 53, 54, 55, 56)
OGC_WIDE(112, 14, 56, 57, 58, 59, 60)
OGC_WIDE(120, 15, 60, 61, 62, 63, 64)
OGC_WIDE(128, 16, 64, 65, 66, 67, 68)
OGC_WIDE(136, 17, 68, 69, 70, 71, 72)
OGC_WIDE(144, 18, 72, 73, 74, 75, 76)
OGC_WIDE(152, 19, 76, 77, 78, 79, 80)
OGC_WIDE(160, 20, 80, 81, 82, 83, 84)
OGC_WIDE(168, 21, 84, 85, 86, 87, 88)
OGC_WIDE(176, 22, 88, 89, 90, 91, 92)
OGC_WIDE(184, 23, 92, 93, 94, 95, 96)
OGC_WIDE(192, 24, 96, 97, 98, 99, 100)
OGC_WIDE(200, 25, 100, 101, 102, 103, 104)
OGC_WIDE(208, 26, 104, 105, 106, 107, 108)
OGC_WIDE(216, 27, 108, 109, 110, 111, 112)
OGC_WIDE(224, 28, 112, 113, 114, 115, 116)
OGC_WIDE(232, 29, 116, 117, 118, 119, 120)
OGC_WIDE(240, 30, 120, 121, 122, 123, 124)
OGC_WIDE(248, 31, 124, 125, 126, 127, 128)
OGC_WIDE(256, 32, 128, 129, 130, 131, 132)
#undef OGC_WIDE
#undef OGC_WIDE_TYPE
#undef OGC_WIDE_SHARED
#undef OGC_WIDE_REGISTERS
#undef OGC_WIDE_TF32
#undef OGC_ACC
#undef OGC_R1
#undef OGC_C1
#undef OGC_R2
#undef OGC_C2
#undef OGC_R3
#undef OGC_C3
#undef OGC_R4
#undef OGC_C4
#undef OGC_R5
#undef OGC_C5
#undef OGC_R6
#undef OGC_C6
#undef OGC_R7
#undef OGC_C7
#undef OGC_R8
#undef OGC_C8
#undef OGC_R9
#undef OGC_C9
#undef OGC_R10
#undef OGC_C10
#undef OGC_R11
#undef OGC_C11
#undef OGC_R12
#undef OGC_C12
#undef OGC_R13
#undef OGC_C13
#undef OGC_R14
#undef OGC_C14
#undef OGC_R15
#undef OGC_C15
#undef OGC_R16
#undef OGC_C16
#undef OGC_R17
#undef OGC_C17
#undef OGC_R18
#undef OGC_C18
#undef OGC_R19
#undef OGC_C19
#undef OGC_R20
#undef OGC_C20
#undef OGC_R21
#undef OGC_C21
#undef OGC_R22
#undef OGC_C22
#undef OGC_R23
#undef OGC_C23
#undef OGC_R24
#undef OGC_C24
#undef OGC_R25
#undef OGC_C25
#undef OGC_R26
#undef OGC_C26
#undef OGC_R27
#undef OGC_C27
#undef OGC_R28
#undef OGC_C28
#undef OGC_R29
#undef OGC_C29
#undef OGC_R30
#undef OGC_C30
#undef OGC_R31
#undef OGC_C31
#undef OGC_R32
#undef OGC_C32
#else
template <class T, int NI, int TransposeA, int TransposeB> struct WideMma {
  template <class A> static __device__ __forceinline__ void run(float (&)[NI][4], const A &, unsigned long long) {
#if defined(__CUDA_ARCH__)
    static_assert(NI < 0, "warpgroup products need code for sm_90a");
#endif
  }
};
#endif

} // namespace ogc

#endif
