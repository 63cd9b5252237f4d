/* Kernels of the hand-made bundle in TestBundle.h, with the interface of compiled cpu kernels. */
#include <stdint.h>

/* y[i] = x[i] + w[i] */
void add_weight(void *const *buffers, int64_t begin, int64_t end) {
  const float *x = buffers[0], *w = buffers[1];
  float *y = buffers[2];
  for (int64_t i = begin; i < end; ++i)
    y[i] = x[i] + w[i];
}

/* y[i] = 2 x[i] */
void twice(void *const *buffers, int64_t begin, int64_t end) {
  const float *x = buffers[0];
  float *y = buffers[1];
  for (int64_t i = begin; i < end; ++i)
    y[i] = 2 * x[i];
}

/* z[i] = x[i] - y[i] */
void subtract(void *const *buffers, int64_t begin, int64_t end) {
  const float *x = buffers[0], *y = buffers[1];
  float *z = buffers[2];
  for (int64_t i = begin; i < end; ++i)
    z[i] = x[i] - y[i];
}
