/* Runs a bundle's first graph once on zeros (states are zero by themselves) through the C interface:  run_bundle model.ogc
 * [cpu|cuda:0] */
#include "ogc/runtime.h"

#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, ogc_last_error());
  return 1;
}

int main(int argc, char **argv) {
  ogc_bundle *bundle;
  ogc_engine *engine;
  ogc_context *context;
  ogc_tensor tensor;
  void **buffers;
  size_t i, inputs, outputs;

  if (argc < 2)
    return 2;
  if (ogc_bundle_open(argv[1], &bundle))
    return fail("open");
  if (ogc_engine_create(bundle, argc > 2 ? argv[2] : "cpu", NULL, &engine))
    return fail("engine");
  if (ogc_context_create(engine, NULL, &context))
    return fail("context");

  inputs = ogc_bundle_input_count(bundle, 0);
  outputs = ogc_bundle_output_count(bundle, 0);
  buffers = calloc(inputs + outputs, sizeof *buffers);
  for (i = 0; i < inputs; ++i) {
    if (ogc_bundle_input_is_state(bundle, 0, i))
      continue;
    if (ogc_bundle_input(bundle, 0, i, &tensor))
      return fail("input");
    buffers[i] = calloc(1, tensor.bytes ? tensor.bytes : 1);
    if (ogc_bind_input(context, 0, i, buffers[i], tensor.bytes, OGC_HOST))
      return fail("bind input");
  }
  for (i = 0; i < outputs; ++i) {
    if (ogc_bundle_output(bundle, 0, i, &tensor))
      return fail("output");
    buffers[inputs + i] = calloc(1, tensor.bytes ? tensor.bytes : 1);
    if (ogc_bind_output(context, 0, i, buffers[inputs + i], tensor.bytes, OGC_HOST))
      return fail("bind output");
  }

  if (ogc_run(context, 0))
    return fail("run");
  for (i = 0; i < outputs; ++i) {
    if (ogc_bundle_output(bundle, 0, i, &tensor))
      return fail("output");
    printf("%s: %zu bytes", tensor.name, tensor.bytes);
    if (tensor.dtype == OGC_FLOAT32 && tensor.bytes)
      printf(", first value %g", ((float *)buffers[inputs + i])[0]);
    printf("\n");
  }

  for (i = 0; i < inputs + outputs; ++i)
    free(buffers[i]);
  free(buffers);
  ogc_context_release(context);
  ogc_engine_release(engine);
  ogc_bundle_close(bundle);
  return 0;
}
