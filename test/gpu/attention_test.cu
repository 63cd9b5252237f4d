//===- attention_test.cu - checks of attention.cuh, mapped_ and wide_attention.cuh
#include "maps.h"
#include <array>
#include "ogc/attention.cuh"
#include "ogc/mapped_attention.cuh"
#include "ogc/wide_attention.cuh"

using namespace bench;
using ogc::bf16;
using ogc::f16;

namespace {

/// Fused: q, k and v are slices of one [B, S, (H + 2 HK), D] buffer (needs S = T, D = DV).
/// Mask: 0 none, 1 a row [T], 2 full [B, H, S, T]; both hide some keys with -inf and query 1 sees nothing under mask 2.
template <class E, int B_, int S_, int T_, int H_, int HK_, int D_, int DV_, int Mask_, int Causal_, int Vec_, bool Fused_ = false> struct Problem {
  using Element = E;
  enum {
    B = B_, S = S_, T = T_, H = H_, HK = HK_, D = D_, DV = DV_, Mask = Mask_, Causal = Causal_, Vec = Vec_, Fused = Fused_, Row = (H + 2 * HK) * D,
    QSb = Fused ? S * Row : S * H * D, QSs = Fused ? Row : H * D, QSh = D, KSb = Fused ? S * Row : T * HK * D, KSt = Fused ? Row : HK * D, KSh = D,
    VSb = Fused ? S * Row : T * HK * DV, VSt = Fused ? Row : HK * DV, VSh = DV,
    BiasSb = Mask == 2 ? H * S * T : 0, BiasSh = Mask == 2 ? S * T : 0, BiasSs = Mask == 2 ? T : 0, BiasSt = 1
  };
};

template <class Q, int Products_, int WQ_, int WT_, int BT_, int Stages_, int Split_, int V_> struct Config : ogc::AttentionDefaults {
  using Element = typename Q::Element;
  enum {
    Products = Products_, B = Q::B, S = Q::S, T = Q::T, H = Q::H, HK = Q::HK, D = Q::D, DV = Q::DV, Causal = Q::Causal, VecQ = Q::Vec, VecK = Q::Vec, VecV = Q::Vec,
    QSb = Q::QSb, QSs = Q::QSs, QSh = Q::QSh, KSb = Q::KSb, KSt = Q::KSt, KSh = Q::KSh, VSb = Q::VSb, VSt = Q::VSt, VSh = Q::VSh,
    HasBias = Q::Mask != 0, BiasSb = Q::BiasSb, BiasSh = Q::BiasSh, BiasSs = Q::BiasSs, BiasSt = Q::BiasSt, VecBias = Q::T % 2 ? 1 : 2,
    WQ = WQ_, WT = WT_, BT = BT_, Stages = Stages_, Split = Split_, V = V_, SharedBytes = 232448
  };
};

template <class C> struct HeadRecorder {
  Recorder<C::V> inner;
  __device__ __forceinline__ void operator()(int b, int s, int h, int d, const float (&acc)[C::V]) const { inner(b, s, h * C::DV + d, acc); }
};

template <class C> __global__ void __launch_bounds__(32 * C::WQ *C::WT)
attentionKernel(const typename C::Element *__restrict__ q, const typename C::Element *__restrict__ k, const typename C::Element *__restrict__ v, const typename C::Element *__restrict__ bias, float scale, HeadRecorder<C> epilogue) {
  ogc::attention<C>(q, k, v, bias, scale, epilogue);
}

template <class T> __global__ void hideKeys(T *bias, long long n, int keys, int queries) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  bool hidden = i % keys % 5 == 3 || (queries && i / keys % queries == 1);
  if (hidden)
    bias[i] = ogc::fromFloat<T>(-__int_as_float(0x7f800000));
}

template <class Q> __global__ void reference(const typename Q::Element *q, const typename Q::Element *k, const typename Q::Element *v, const typename Q::Element *bias, float scale, double *out) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= (long long)Q::B * Q::S * Q::H)
    return;
  int h = i % Q::H, s = i / Q::H % Q::S, b = i / Q::H / Q::S, hk = h / (Q::H / Q::HK);
  double top = -1.0 / 0.0, total = 0;
  double *o = out + i * Q::DV;
  for (int d = 0; d < Q::DV; ++d)
    o[d] = 0;
  for (int pass = 0; pass < 2; ++pass)
    for (int t = 0; t < Q::T; ++t) {
      if (Q::Causal && t > s + Q::T - Q::S)
        continue;
      double x = 0;
      for (int d = 0; d < Q::D; ++d)
        x += (double)ogc::toFloat(q[(long long)b * Q::QSb + (long long)s * Q::QSs + h * Q::QSh + d]) * ogc::toFloat(k[(long long)b * Q::KSb + (long long)t * Q::KSt + hk * Q::KSh + d]);
      x *= scale;
      if (Q::Mask)
        x += ogc::toFloat(bias[(long long)b * Q::BiasSb + (long long)h * Q::BiasSh + (long long)s * Q::BiasSs + t]);
      if (isinf(x))
        continue;
      if (pass == 0)
        top = fmax(top, x);
      else {
        double p = exp(x - top);
        total += p;
        for (int d = 0; d < Q::DV; ++d)
          o[d] += p * ogc::toFloat(v[(long long)b * Q::VSb + (long long)t * Q::VSt + hk * Q::VSh + d]);
      }
    }
  for (int d = 0; d < Q::DV; ++d)
    o[d] = total > 0 ? o[d] / total : 0;
}

template <class Q, int WQ_, int WT_, int V_, int Trigger_> struct MappedConfig : ogc::AttentionDefaults {
  using Element = typename Q::Element;
  using BiasElement = typename Q::Element;
  enum {
    B = Q::B, S = Q::S, T = Q::T, H = Q::H, HK = Q::HK, D = Q::D, DV = Q::DV, Causal = Q::Causal,
    HasBias = Q::Mask != 0, BiasSb = Q::BiasSb, BiasSh = Q::BiasSh, BiasSs = Q::BiasSs, BiasSt = Q::BiasSt, VecBias = Q::T % 2 ? 1 : 2,
    WQ = WQ_, WT = WT_, V = V_, Trigger = Trigger_, SharedBytes = 232448
  };
};

template <class C> __global__ void __launch_bounds__(32 * C::WQ *C::WT)
mappedAttentionKernel(const __grid_constant__ ogc::TensorMap q, const __grid_constant__ ogc::TensorMap k, const __grid_constant__ ogc::TensorMap v, const typename C::BiasElement *bias, float scale, HeadRecorder<C> epilogue) {
  ogc::mappedAttention<C>(q, k, v, bias, scale, epilogue);
}

template <class Q, int WQ_, int WT_, int BT_, int Stages_, int Split_, int V_, int Trigger_> struct WideConfig : MappedConfig<Q, WQ_, WT_, V_, Trigger_> {
  enum { BT = BT_, Stages = Stages_, Split = Split_ };
};

template <class C> __global__ void __launch_bounds__(128 * C::WQ *C::WT)
wideAttentionKernel(const __grid_constant__ ogc::TensorMap q, const __grid_constant__ ogc::TensorMap k, const __grid_constant__ ogc::TensorMap v, const typename C::BiasElement *bias, float scale, HeadRecorder<C> epilogue) {
  ogc::wideAttention<C>(q, k, v, bias, scale, epilogue);
}

/// The operands of a problem, what a kernel gives for them and what it should give.
template <class Q> struct Case {
  using T = typename Q::Element;
  float scale = 1.f / std::sqrt((float)Q::D) * 3.f; // three times the usual: peaked rows
  T *q, *k, *v, *bias = nullptr;
  size_t n = (size_t)Q::B * Q::S * Q::H * Q::DV;
  float *out = (float *)allocate(n * 4);
  int *calls = (int *)allocate(n * 4);
  double *ref = (double *)allocate(n * 8);

  Case() {
    if (Q::Fused) {
      q = makeTensor<T>({1, 1, Q::B * Q::S, Q::Row}, {0, 0, Q::Row, 1}, 5).data;
      k = q + Q::H * Q::D, v = k + Q::HK * Q::D;
    } else {
      q = makeTensor<T>({Q::B, Q::S, Q::H, Q::D}, {Q::QSb, Q::QSs, Q::QSh, 1}, 5).data;
      k = makeTensor<T>({Q::B, Q::T, Q::HK, Q::D}, {Q::KSb, Q::KSt, Q::KSh, 1}, 6).data;
      v = makeTensor<T>({Q::B, Q::T, Q::HK, Q::DV}, {Q::VSb, Q::VSt, Q::VSh, 1}, 7).data;
    }
    if (Q::Mask) {
      long long n = Q::Mask == 2 ? (long long)Q::B * Q::H * Q::S * Q::T : (long long)Q::T;
      bias = makeTensor<T>({1, 1, 1, n}, {0, 0, 0, 1}, 8).data;
      hideKeys<<<(unsigned)((n + 255) / 256), 256>>>(bias, n, Q::T, Q::Mask == 2 && Q::S > 1 ? (int)Q::S : 0);
    }
    CHECK_CUDA(cudaMemset(out, 255, n * 4));
    CHECK_CUDA(cudaMemset(calls, 0, n * 4));
    reference<Q><<<(unsigned)((Q::B * Q::S * Q::H + 31) / 32), 32>>>(q, k, v, bias, scale, ref);
  }
  template <class C> HeadRecorder<C> recorder() const {
    return {Recorder<C::V>{out, calls, (long long)Q::S * Q::H * Q::DV, Q::H * Q::DV}};
  }
  void finish(const char *form) {
    CHECK_CUDA(cudaGetLastError());
    char name[200];
    snprintf(name, sizeof name, "%s %s B%d S%d T%d H%d HK%d D%d DV%d mask %d causal %d", form, typeName<T>(), Q::B, Q::S, Q::T, Q::H, Q::HK, Q::D, Q::DV, Q::Mask, Q::Causal);
    bool isTf32 = sizeof(T) == 4 && !strstr(form, "p3");
    double tolerance = sizeof(T) == 4 ? (isTf32 ? 3e-3 : 3e-6) : std::string(typeName<T>()) == "f16" ? 1e-3 : 8e-3;
    report(name, compare(out, calls, ref, n), tolerance);
    freeAll();
  }
};

template <class Q, int Products, int WQ, int WT, int BT, int Stages, int Split, int V> void attentionCase() {
  using T = typename Q::Element;
  using C = Config<Q, Products, WQ, WT, BT, Stages, Split, V>;
  using A = ogc::AttentionShape<C>;
  Case<Q> c;
  launch(attentionKernel<C>, (long long)Split * A::TilesQ * C::HK * C::B, A::Threads, A::Bytes, Split, 0, (const T *)c.q, (const T *)c.k, (const T *)c.v, (const T *)c.bias, c.scale, c.template recorder<C>());
  char form[80];
  snprintf(form, sizeof form, "attention p%d w%dx%d bt%d st%d split%d", Products, WQ, WT, BT, Stages, Split);
  c.finish(form);
}

/// Maps of the operands; boxes of `rows` queries of a group and of `keys`.
template <class Q> std::array<ogc::TensorMap, 3> mapsOf(const Case<Q> &c, int rows, int keys) {
  using T = typename Q::Element;
  auto map = [](const T *data, cuuint64_t columns, cuuint64_t heads, cuuint64_t rows, std::vector<cuuint64_t> strides, cuuint32_t boxHeads, cuuint32_t boxRows) {
    for (cuuint64_t &stride : strides)
      stride *= sizeof(T);
    return encode(data, {columns, heads, rows, Q::B}, strides, {64, boxHeads, boxRows, 1});
  };
  constexpr int group = Q::H / Q::HK;
  return {map(c.q, Q::D, Q::H, Q::S, {Q::QSh, Q::QSs, Q::QSb}, group, rows / group), map(c.k, Q::D, Q::HK, Q::T, {Q::KSh, Q::KSt, Q::KSb}, 1, keys),
          map(c.v, Q::DV, Q::HK, Q::T, {Q::VSh, Q::VSt, Q::VSb}, 1, keys)};
}

template <class Q, int WQ, int WT, int V, int Trigger> void mappedCase() {
  using T = typename Q::Element;
  using C = MappedConfig<Q, WQ, WT, V, Trigger>;
  using A = ogc::MappedAttentionShape<C>;
  Case<Q> c;
  auto [q, k, v] = mapsOf(c, A::BQ, A::KeyRows);
  launch(mappedAttentionKernel<C>, (long long)A::TilesQ * C::HK * C::B, A::Threads, A::Bytes, 1, 0, q, k, v, (const T *)c.bias, c.scale, c.template recorder<C>());
  char form[80];
  snprintf(form, sizeof form, "mapped attention w%dx%d v%d", WQ, WT, V);
  c.finish(form);
}

template <class Q, int WQ, int WT, int BT, int Stages, int Split, int V, int Trigger = 1> void wideCase() {
  using T = typename Q::Element;
  using C = WideConfig<Q, WQ, WT, BT, Stages, Split, V, Trigger>;
  using A = ogc::WideAttentionShape<C>;
  Case<Q> c;
  auto [q, k, v] = mapsOf(c, A::BQ, BT);
  launch(wideAttentionKernel<C>, (long long)Split * A::TilesQ * C::HK * C::B, A::Threads, A::Bytes, Split, 0, q, k, v, (const T *)c.bias, c.scale, c.template recorder<C>());
  char form[80];
  snprintf(form, sizeof form, "wide attention w%dx%d bt%d st%d split%d v%d", WQ, WT, BT, Stages, Split, V);
  c.finish(form);
}

template <class T, int Products> void attentions() {
  constexpr int W = 16 / sizeof(T);
  //                      B  S    T    H  HK  D   DV  mask causal vec
  attentionCase<Problem<T, 1, 128, 128, 12, 12, 64, 64, 1, 0, W, true>, Products, 1, 4, 64, 2, 1, 4>();
  attentionCase<Problem<T, 2, 197, 197, 3, 3, 64, 64, 0, 0, W, true>, Products, 2, 2, 64, 2, 1, 4>();
  attentionCase<Problem<T, 1, 100, 100, 4, 4, 64, 64, 0, 1, W>, Products, 4, 1, 64, 1, 1, 4>();
  attentionCase<Problem<T, 2, 37, 61, 6, 2, 40, 24, 2, 1, 4>, Products, 1, 2, 64, 2, 2, 4>();
  attentionCase<Problem<T, 1, 61, 37, 2, 2, 33, 17, 2, 1, 1>, Products, 2, 2, 32, 1, 1, 1>(); // the first queries see no key
  attentionCase<Problem<T, 1, 1, 512, 32, 8, 64, 64, 1, 0, W>, Products, 1, 4, 64, 2, 8, 2>();
  attentionCase<Problem<T, 1, 1, 130, 4, 4, 128, 128, 2, 1, W>, Products, 1, 4, 64, 2, 4, 4>();
  attentionCase<Problem<T, 3, 1, 1, 1, 1, 1, 1, 0, 0, 1>, Products, 1, 1, 16, 1, 8, 1>();
  attentionCase<Problem<T, 1, 20, 70, 2, 1, 256, 256, 0, 0, W>, Products, 1, 2, 32, 1, 1, 4>();
}

template <class T> void mappedAttentions() {
  //                   B  S    T    H  HK  D   DV  mask causal vec
  mappedCase<Problem<T, 1, 128, 128, 12, 12, 64, 64, 1, 0, 8, true>, 1, 4, 8, 1>();
  mappedCase<Problem<T, 2, 197, 197, 3, 3, 64, 64, 0, 0, 8, true>, 1, 4, 8, 2>(); // warps without keys of their own
  mappedCase<Problem<T, 1, 100, 100, 4, 4, 64, 64, 0, 1, 8>, 4, 1, 4, 0>();
  mappedCase<Problem<T, 2, 37, 61, 6, 3, 40, 24, 2, 1, 8>, 1, 2, 8, 1>(); // heads share keys, columns that are not there
  mappedCase<Problem<T, 1, 61, 37, 2, 2, 72, 72, 2, 1, 8>, 2, 2, 1, 1>(); // the first queries see no key
  mappedCase<Problem<T, 1, 5, 256, 32, 8, 64, 64, 1, 0, 8>, 1, 8, 2, 1>();
  mappedCase<Problem<T, 3, 9, 1, 2, 2, 8, 8, 0, 0, 8>, 1, 1, 8, 1>();
  mappedCase<Problem<T, 1, 20, 70, 2, 1, 256, 128, 0, 0, 8>, 2, 4, 8, 1>();
}

template <class T> void wideAttentions() {
  //                 B  S    T    H  HK  D   DV  mask causal vec      WQ WT BT stages split V
  wideCase<Problem<T, 1, 300, 300, 3, 3, 64, 64, 0, 0, 8, true>, 2, 1, 128, 2, 1, 8>(); // slices of one buffer
  wideCase<Problem<T, 2, 150, 333, 6, 2, 40, 24, 2, 1, 8>, 3, 1, 64, 2, 2, 8>();         // heads share keys, columns that are not there
  wideCase<Problem<T, 1, 61, 337, 2, 2, 72, 128, 1, 1, 8>, 1, 4, 128, 2, 4, 1, 2>();     // values of two lines
  wideCase<Problem<T, 1, 337, 261, 2, 2, 128, 72, 2, 1, 8>, 2, 2, 64, 2, 3, 4, 0>();     // the first queries see no key, a cluster of three
  wideCase<Problem<T, 1, 131, 1000, 8, 2, 96, 96, 0, 0, 8>, 1, 2, 64, 3, 8, 2>();        // a long ring, ranks of unequal work
  wideCase<Problem<T, 3, 5, 17, 2, 1, 16, 8, 0, 0, 8>, 1, 1, 16, 4, 2, 8>();             // a ring that is never full
  wideCase<Problem<T, 1, 300, 300, 4, 4, 64, 64, 0, 1, 8>, 4, 1, 64, 3, 2, 8>();         // ranks without work
  wideCase<Problem<T, 1, 70, 128, 2, 2, 32, 32, 1, 0, 8>, 1, 1, 128, 1, 1, 8>();         // one stage
}

} // namespace

void checkAttention() {
  wideAttentions<f16>();
  wideAttentions<bf16>();
  mappedAttentions<f16>();
  mappedAttentions<bf16>();
  attentions<f16, 1>();
  attentions<bf16, 1>();
  attentions<float, 1>();
  attentions<float, 3>();
}
