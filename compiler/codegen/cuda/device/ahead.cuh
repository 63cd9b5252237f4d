//===- ahead.cuh - what epilogues read before the sums are known ----------===//
#ifndef OGC_DEVICE_AHEAD_CUH
#define OGC_DEVICE_AHEAD_CUH

namespace ogc {

/// What an epilogue `E` can read before the sums are known: E::Constants, made by constants(b, m, n) of what never changes, and
/// E::Inputs, made by inputs(b, m, n); both are given back with the sums. An epilogue without them loads when it is called.
template <class E> struct ReadsAhead {
  template <class X> static __device__ char test(typename X::Inputs *);
  template <class X> static __device__ long test(...);
  enum { Value = sizeof(test<E>(nullptr)) == 1 };
};
template <class E, int Ahead = ReadsAhead<E>::Value> struct Early {
  struct Constants {};
  struct Inputs {};
  static __device__ __forceinline__ void load(const E &, int, int, int, Constants &) {}
  static __device__ __forceinline__ void load(const E &, int, int, int, Inputs &) {}
  template <int V>
  static __device__ __forceinline__ void finish(const E &e, int b, int m, int n, const Constants &, const Inputs &,
                                                const float (&sum)[V]) {
    e(b, m, n, sum);
  }
};
template <class E> struct Early<E, 1> {
  using Constants = typename E::Constants;
  using Inputs = typename E::Inputs;
  static __device__ __forceinline__ void load(const E &e, int b, int m, int n, Constants &to) { to = e.constants(b, m, n); }
  static __device__ __forceinline__ void load(const E &e, int b, int m, int n, Inputs &to) { to = e.inputs(b, m, n); }
  template <int V>
  static __device__ __forceinline__ void finish(const E &e, int b, int m, int n, const Constants &constants, const Inputs &inputs,
                                                const float (&sum)[V]) {
    e(b, m, n, sum, constants, inputs);
  }
};

} // namespace ogc

#endif
