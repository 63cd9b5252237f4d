/*===- ogc/runtime.h - loads and replays bundles: the C interface -----------===*
 *
 * The life of things: a bundle is a verified file; an engine is a bundle on a device, its weights there once; a context is the
 * memory and the executable graphs of one user of an engine. Each keeps what it was made from alive, so they may be released in
 * any order.
 *
 * Errors: every function that can fail returns an ogc_code. After a failure ogc_last_error() gives the reason on the same thread.
 * Out parameters are only written on success. No exception and no signal comes out of here, but for SIGBUS where a bundle's file
 * is cut while it is mapped.
 *
 * Threads: bundles and engines may be used from any number of threads at once. A context serves one call at a time; a second one
 * from another thread gets OGC_BUSY. Strings and ogc_tensor structures that are returned live as long as their bundle.
 *
 *===------------------------------------------------------------------------===*/
#ifndef OGC_RUNTIME_H
#define OGC_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a function or structure changes in a way that compiled callers notice. */
#define OGC_API_VERSION 1

typedef enum ogc_code {
  OGC_OK = 0,
  OGC_INVALID_ARGUMENT = 1,
  OGC_NOT_FOUND = 2,
  OGC_DATA_LOSS = 3,
  OGC_UNSUPPORTED = 4,
  OGC_FAILED_PRECONDITION = 5,
  OGC_OUT_OF_MEMORY = 6,
  OGC_BUSY = 7,
  OGC_DEVICE_ERROR = 8,
  OGC_INTERNAL = 9
} ogc_code;

typedef enum ogc_dtype {
  OGC_BOOL = 0, /* one byte, 0 or 1 */
  OGC_INT8 = 1,
  OGC_INT16 = 2,
  OGC_INT32 = 3,
  OGC_INT64 = 4,
  OGC_UINT8 = 5,
  OGC_UINT16 = 6,
  OGC_UINT32 = 7,
  OGC_UINT64 = 8,
  OGC_FLOAT16 = 9,
  OGC_BFLOAT16 = 10,
  OGC_FLOAT32 = 11,
  OGC_FLOAT64 = 12,
  OGC_FLOAT8E4M3FN = 13,
  OGC_FLOAT8E5M2 = 14
} ogc_dtype;

/* Where a pointer of the caller points to. On the cpu device both are the same. */
typedef enum ogc_memory { OGC_HOST = 0, OGC_DEVICE = 1 } ogc_memory;

typedef struct ogc_bundle ogc_bundle;
typedef struct ogc_engine ogc_engine;
typedef struct ogc_context ogc_context;

/* An input or output of a graph. Dense, row-major, `bytes` long. */
typedef struct ogc_tensor {
  const char *name;
  ogc_dtype dtype;
  size_t rank;
  const int64_t *shape;
  size_t bytes;
} ogc_tensor;

/* Zero-initialise, then set what matters. */
typedef struct ogc_engine_options {
  /* The weights section, where the bundle does not hold it; null: "<bundle>.weights" for an external one. */
  const char *weights_file;
  /* Not 0: make up weights that are nowhere. */
  int random_weights;
  uint64_t seed;
  /* Threads a context of the cpu device uses; 0 means 1. */
  unsigned threads;
} ogc_engine_options;

typedef struct ogc_context_options {
  /* A CUstream or cudaStream_t of the caller to run on; null: a stream of the context's own. It must outlive the context. */
  void *stream;
} ogc_context_options;

/* The API version of the library. */
int ogc_api_version(void);

/* The reason of the last failure on this thread, "" before the first. Valid until the next failure. */
const char *ogc_last_error(void);

/* Bundles. `open` verifies structure and checksums: a damaged file is OGC_DATA_LOSS, another format version OGC_UNSUPPORTED. */
ogc_code ogc_bundle_open(const char *path, ogc_bundle **out_bundle);
void ogc_bundle_close(ogc_bundle *bundle);
size_t ogc_bundle_graph_count(const ogc_bundle *bundle);
/* Null where `graph` is out of range. */
const char *ogc_bundle_graph_id(const ogc_bundle *bundle, size_t graph);
ogc_code ogc_bundle_find_graph(const ogc_bundle *bundle, const char *id, size_t *out_graph);
size_t ogc_bundle_input_count(const ogc_bundle *bundle, size_t graph);
size_t ogc_bundle_output_count(const ogc_bundle *bundle, size_t graph);
ogc_code ogc_bundle_input(const ogc_bundle *bundle, size_t graph, size_t index, ogc_tensor *out_tensor);
ogc_code ogc_bundle_output(const ogc_bundle *bundle, size_t graph, size_t index, ogc_tensor *out_tensor);

/* Engines. `device` is "cpu", "cuda" or "cuda:N"; `options` may be null. Loads the code and puts the weights on the device. */
ogc_code ogc_engine_create(ogc_bundle *bundle, const char *device, const ogc_engine_options *options, ogc_engine **out_engine);
void ogc_engine_release(ogc_engine *engine);
/* "cpu" or the name of the GPU; lives as long as the engine. */
const char *ogc_engine_device_name(const ogc_engine *engine);

/* Contexts. `options` may be null. The caller's current CUDA context is left as it was by every call. */
ogc_code ogc_context_create(ogc_engine *engine, const ogc_context_options *options, ogc_context **out_context);
/* Waits for what still runs. */
void ogc_context_release(ogc_context *context);

/* Builds the executable graph of `graph`, so that the first run does not have to. */
ogc_code ogc_context_prepare(ogc_context *context, size_t graph);

/* Binds a buffer of the caller to an input: every run of `graph` from now on copies `bytes` from `data` first. Host data is read
 * while the run is called, device data when the stream gets there. `bytes` must be the tensor's size. Null unbinds: the run then
 * uses what the context's own buffer holds. */
ogc_code ogc_bind_input(ogc_context *context, size_t graph, size_t index, const void *data, size_t bytes, ogc_memory memory);

/* The same for an output: every run copies it to `data`. Host data is written when ogc_context_synchronize returns (ogc_run
 * includes that). */
ogc_code ogc_bind_output(ogc_context *context, size_t graph, size_t index, void *data, size_t bytes, ogc_memory memory);

/* The context's own buffer of an input or output, in device memory. Reading and writing it without a binding saves the copy;
 * graphs of one context share these buffers. */
ogc_code ogc_input_buffer(ogc_context *context, size_t graph, size_t index, void **out_data);
ogc_code ogc_output_buffer(ogc_context *context, size_t graph, size_t index, void **out_data);

/* Runs `graph` once and waits: inputs, nodes, outputs. */
ogc_code ogc_run(ogc_context *context, size_t graph);

/* The same without waiting. Runs of one context are ordered. On the cpu device it is the same as ogc_run. */
ogc_code ogc_run_async(ogc_context *context, size_t graph);

/* Waits for all runs, and brings the bytes of host outputs. Failures of the runs show here. */
ogc_code ogc_context_synchronize(ogc_context *context);

/* The stream the context runs on; null on the cpu device. */
void *ogc_context_stream(const ogc_context *context);

#ifdef __cplusplus
}
#endif

#endif
