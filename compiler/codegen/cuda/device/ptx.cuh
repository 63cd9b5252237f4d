//===- ptx.cuh - single instructions --------------------------------------===//
#ifndef OGC_DEVICE_PTX_CUH
#define OGC_DEVICE_PTX_CUH

#include "ogc/types.cuh"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define OGC_HOPPER 1
#else
#define OGC_HOPPER 0
#endif

namespace ogc {

//===----------------------------------------------------------------------===//
// Programmatic dependent launch
//===----------------------------------------------------------------------===//

/// Waits until the kernels before this one in the graph have finished and their writes are visible; nothing before sm_90.
__device__ __forceinline__ void wait() {
#if OGC_HOPPER
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the next kernel's blocks start; they still wait in `wait()`.
__device__ __forceinline__ void launchDependents() {
#if OGC_HOPPER
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

__device__ __forceinline__ unsigned sharedAddress(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

/// Copies Bytes (4, 8 or 16) to shared memory without registers; bytes past `valid` become zero.
template <int Bytes> __device__ __forceinline__ void copyAsync(unsigned dst, const void *src, int valid) {
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(valid) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(dst), "l"(src), "n"(Bytes), "r"(valid) : "memory");
}
__device__ __forceinline__ void copyCommit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most N of this thread's newest groups are in flight.
template <int N> __device__ __forceinline__ void copyWait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

__device__ __forceinline__ void loadMatrix4(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void loadMatrix4Transposed(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ float loadShared(unsigned address) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(address) : "memory");
  return x;
}
__device__ __forceinline__ void loadShared2(unsigned &x, unsigned &y, unsigned address) {
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(x), "=r"(y) : "r"(address) : "memory");
}
__device__ __forceinline__ void storeShared1(unsigned address, unsigned bits) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(bits) : "memory");
}
__device__ __forceinline__ void storeShared2(unsigned address, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1,%2};" ::"r"(address), "f"(x), "f"(y) : "memory");
}

/// An element (of two or four bytes) that a kernel before this one has written. Not through the read-only path: ptxas moves such
/// loads across `wait()`.
template <class T> __device__ __forceinline__ T loadWritten(const T *p) {
  typename Word<(int)sizeof(T)>::Type w;
  if constexpr (sizeof(T) == 4)
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(w) : "l"(p) : "memory");
  else
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(w) : "l"(p) : "memory");
  T x;
  memcpy(&x, &w, sizeof x);
  return x;
}

//===----------------------------------------------------------------------===//
// Data that is read once
//===----------------------------------------------------------------------===//

/// Bytes (2, 4, 8 or 16) at p, aligned to their number, past the first-level cache. Without `Ordinary` they are weights, which
/// nothing writes: ptxas moves a load through the read-only path (`nc`) across `griddepcontrol.wait`, in both directions. An
/// ordinary one stays where it is: on its way before the wait, or behind it. What comes back should not be taken apart before the
/// wait either: that would wait for the data first.
template <int Bytes, bool Ordinary> __device__ __forceinline__ typename Word<Bytes>::Type loadStream(const void *p) {
  typename Word<Bytes>::Type w;
#define OGC_LOAD_STREAM(SPACE)                                                                                                   \
  if constexpr (Bytes == 16)                                                                                                     \
    asm volatile("ld.global" SPACE ".L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"                                                \
                 : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)                                                                    \
                 : "l"(p));                                                                                                      \
  else if constexpr (Bytes == 8)                                                                                                 \
    asm volatile("ld.global" SPACE ".L1::no_allocate.v2.u32 {%0,%1}, [%2];" : "=r"(w.x), "=r"(w.y) : "l"(p));                    \
  else if constexpr (Bytes == 4)                                                                                                 \
    asm volatile("ld.global" SPACE ".L1::no_allocate.u32 %0, [%1];" : "=r"(w) : "l"(p));                                         \
  else                                                                                                                           \
    asm volatile("ld.global" SPACE ".L1::no_allocate.u16 %0, [%1];" : "=h"(w) : "l"(p));
  if constexpr (Ordinary) {
    OGC_LOAD_STREAM("")
  } else {
    OGC_LOAD_STREAM(".nc")
  }
#undef OGC_LOAD_STREAM
  return w;
}

//===----------------------------------------------------------------------===//
// Tensor core products: acc += A (16 x KS, row) * B (KS x 8, col)
//===----------------------------------------------------------------------===//

/// KS: depth of one product.
template <class T> struct Mma;
template <> struct Mma<f16> {
  enum { KS = 16 };
  static __device__ __forceinline__ void run(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};
template <> struct Mma<bf16> {
  enum { KS = 16 };
  static __device__ __forceinline__ void run(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};
template <> struct Mma<float> {
  enum { KS = 8 };
  /// Operands are tf32 bit patterns.
  static __device__ __forceinline__ void run(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

/// An operand of tf32 products: its upper 19 bits are the number rounded to a tf32 beside it, and tensor cores do not look at the
/// others. One instruction, where cvt.rna.tf32 is four. Cutting off m * 2^e, 1 <= m < 2, loses half a unit in the last place,
/// which is 2^(e - 10), on average; the product adds 0.36 m of them before, half a one on average over numbers of all magnitudes.
/// The error is at most 0.72 units, and nothing for tf32 numbers, infinities and NaN.
__device__ __forceinline__ unsigned operandTf32(unsigned bits) {
  return __float_as_uint(__fmul_rn(__uint_as_float(bits), 1.00035225f));
}

__device__ __forceinline__ unsigned toTf32(float x) {
  unsigned y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}

/// x = high + low, each a tf32; the rest is below 2^-22 of x. An infinity or NaN stays in `high`.
__device__ __forceinline__ void splitTf32(unsigned bits, unsigned &high, unsigned &low) {
  float x = __uint_as_float(bits);
  high = toTf32(x);
  low = toTf32(x - __uint_as_float(high));
}

__device__ __forceinline__ float exp2Fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

//===----------------------------------------------------------------------===//
// Lanes of a warp
//===----------------------------------------------------------------------===//

/// Sums `a` over the lanes that differ in bits of at least Last. Each step hands half of the columns to the other lane; what is
/// left are Width columns, from `first` on, of which one lane of each set of equal lanes is `isOwner`.
template <int Width, int Delta, int Last, int N>
__device__ __forceinline__ void reduceLanes(float (&a)[N], int lane, int &first, bool &isOwner) {
  if constexpr (Delta >= Last) {
    bool isUpper = lane & Delta;
    if constexpr (Width > 1) {
#pragma unroll
      for (int i = 0; i < Width / 2; ++i) {
        float sent = isUpper ? a[i] : a[i + Width / 2], kept = isUpper ? a[i + Width / 2] : a[i];
        a[i] = kept + __shfl_xor_sync(0xffffffffu, sent, Delta);
      }
      first += isUpper ? Width / 2 : 0;
    } else {
      a[0] += __shfl_xor_sync(0xffffffffu, a[0], Delta);
      isOwner &= !isUpper;
    }
    reduceLanes<Width / 2 < 1 ? 1 : Width / 2, Delta / 2, Last>(a, lane, first, isOwner);
  }
}

//===----------------------------------------------------------------------===//
// Barriers in shared memory that count bytes (sm_90 and later)
//===----------------------------------------------------------------------===//

__device__ __forceinline__ void barrierInit(unsigned barrier, int count) {
#if OGC_HOPPER
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
#endif
}
/// Makes the barriers of this block known to the cluster and to copies.
__device__ __forceinline__ void barrierInitDone() {
#if OGC_HOPPER
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // has no narrower scope
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
/// Arrives, and lets the phase last until `bytes` have come.
__device__ __forceinline__ void barrierExpect(unsigned barrier, int bytes) {
#if OGC_HOPPER
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
#endif
}
__device__ __forceinline__ void barrierArrive(unsigned barrier) {
#if OGC_HOPPER
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
#endif
}
/// Waits for the end of the phase of this parity, and for what the cluster has stored for it.
__device__ __forceinline__ void barrierWait(unsigned barrier, int parity) {
#if OGC_HOPPER
  unsigned done;
  do {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
  } while (!done);
#endif
}

//===----------------------------------------------------------------------===//
// Clusters (sm_90 and later); one block is a cluster of its own below
//===----------------------------------------------------------------------===//

__device__ __forceinline__ void clusterArriveRelaxed() {
#if OGC_HOPPER
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void clusterArrive() {
#if OGC_HOPPER
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void clusterWait() {
#if OGC_HOPPER
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
/// The address, in the cluster's window, of `address` in the shared memory of block `rank`.
__device__ __forceinline__ unsigned clusterAddress(unsigned address, int rank) {
#if OGC_HOPPER
  unsigned y;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(y) : "r"(address), "r"(rank));
  return y;
#else
  return address;
#endif
}
__device__ __forceinline__ void storeCluster4(unsigned address, float x, float y, float z, float w) {
#if OGC_HOPPER
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(address), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
#endif
}
__device__ __forceinline__ void storeCluster2(unsigned address, float x, float y) {
#if OGC_HOPPER
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1,%2};" ::"r"(address), "f"(x), "f"(y) : "memory");
#endif
}
__device__ __forceinline__ void storeCluster1(unsigned address, float x) {
#if OGC_HOPPER
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(x) : "memory");
#endif
}
/// The same, counted by a barrier of the block that gets it. That block waits for the bytes, so that nobody needs a barrier of
/// the cluster, whose release waits for all memory operations of a thread.
__device__ __forceinline__ void sendCluster1(unsigned address, float x, unsigned barrier) {
#if OGC_HOPPER
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(address), "f"(x),
               "r"(barrier)
               : "memory");
#endif
}

} // namespace ogc

#endif
