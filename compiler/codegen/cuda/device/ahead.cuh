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
/// What such an epilogue computes of a row alone: E::Row, made by row(b, m). A template that keeps it for all rows of a tile
/// makes it once a row; else it is made when the epilogue is called.
struct NoRow {};
template <class E> struct RowOf {
  template <class X> static __device__ typename X::Row test(typename X::Row *);
  template <class X> static __device__ NoRow test(...);
  using Type = decltype(test<E>(nullptr));
};
template <class T> struct IsRow {
  enum { Value = 1 };
};
template <> struct IsRow<NoRow> {
  enum { Value = 0 };
};

template <class E, int Ahead = ReadsAhead<E>::Value> struct Early {
  struct Constants {};
  struct Inputs {};
  using Row = NoRow;
  enum { HasRow = 0 };
  static __device__ __forceinline__ void load(const E &, int, int, int, Constants &) {}
  static __device__ __forceinline__ void load(const E &, int, int, int, Inputs &) {}
  template <int V>
  static __device__ __forceinline__ void finish(const E &e, int b, int m, int n, const Constants &, const Inputs &,
                                                const float (&sum)[V]) {
    e(b, m, n, sum);
  }
  template <int V>
  static __device__ __forceinline__ void finish(const E &e, int b, int m, int n, const Constants &, const Inputs &, const NoRow &,
                                                const float (&sum)[V]) {
    e(b, m, n, sum);
  }
};
template <class E> struct Early<E, 1> {
  using Constants = typename E::Constants;
  using Inputs = typename E::Inputs;
  using Row = typename RowOf<E>::Type;
  enum { HasRow = IsRow<Row>::Value };
  static __device__ __forceinline__ void load(const E &e, int b, int m, int n, Constants &to) { to = e.constants(b, m, n); }
  static __device__ __forceinline__ void load(const E &e, int b, int m, int n, Inputs &to) { to = e.inputs(b, m, n); }
  template <int V>
  static __device__ __forceinline__ void finish(const E &e, int b, int m, int n, const Constants &constants, const Inputs &inputs,
                                                const float (&sum)[V]) {
    if constexpr (HasRow)
      e(b, m, n, sum, constants, inputs, e.row(b, m));
    else
      e(b, m, n, sum, constants, inputs);
  }
  /// The same where the value of the row is at hand.
  template <int V>
  static __device__ __forceinline__ void finish(const E &e, int b, int m, int n, const Constants &constants, const Inputs &inputs,
                                                const Row &row, const float (&sum)[V]) {
    if constexpr (HasRow)
      e(b, m, n, sum, constants, inputs, row);
    else
      e(b, m, n, sum, constants, inputs);
  }
};

} // namespace ogc

#endif
