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
 * from another thread gets OGC_BUSY. A context may be used by one thread after the other and released by a third. Contexts of one
 * engine share executable graphs (exec_pool) and never each other's memory. Strings and ogc_tensor structures that are returned
 * live as long as their bundle.
 *
 *===------------------------------------------------------------------------===*/
#ifndef OGC_RUNTIME_H
#define OGC_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming): C names */

/* Raised when a function or structure changes in a way that compiled callers notice. */
#define OGC_API_VERSION 2

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
  OGC_FLOAT8E5M2 = 14,
  OGC_FLOAT8E4M3FNUZ = 15,
  OGC_FLOAT8E5M2FNUZ = 16,
  OGC_FLOAT8E8M0 = 17,
  /* Types of fewer than 8 bits: an element a byte, integers as int8_t or uint8_t, floats as their bits in the low ones. */
  OGC_FLOAT6E2M3 = 18,
  OGC_FLOAT6E3M2 = 19,
  OGC_FLOAT4E2M1 = 20,
  OGC_INT4 = 21,
  OGC_UINT4 = 22,
  OGC_INT2 = 23,
  OGC_UINT2 = 24
} ogc_dtype;

/* Where a pointer of the caller points to. On the cpu device both are the same. */
typedef enum ogc_memory { OGC_HOST = 0, OGC_DEVICE = 1 } ogc_memory;

typedef struct ogc_bundle ogc_bundle;
typedef struct ogc_engine ogc_engine;
typedef struct ogc_context ogc_context;

/* An input or output of a graph. Dense, row-major, `bytes` long. An output whose extent depends on the data has the largest
 * possible one here; ogc_output_shape tells that of the last run. */
typedef struct ogc_tensor {
  const char *name;
  ogc_dtype dtype;
  size_t rank;
  const int64_t *shape;
  size_t bytes;
} ogc_tensor;

/* An array of the caller in host memory, dense and row-major. */
typedef struct ogc_array {
  const char *name;
  size_t rank;
  const int64_t *shape;
  void *data;
  size_t bytes;
} ogc_array;

/* Zero-initialise, then set what matters. */
typedef struct ogc_engine_options {
  /* The weights section, where the bundle does not hold it; null: "<bundle>.weights" for an external one. */
  const char *weights_file;
  /* Not 0: make up weights that are nowhere. */
  int random_weights;
  uint64_t seed;
  /* Threads a context of the cpu device uses; 0 means 1. */
  unsigned threads;
  /* Executable graphs that all contexts of the engine keep together on a GPU; 0 means 256. Past it, one that was not used for the
   * longest time is updated to the graph that is needed where both have the same kinds of nodes and the same edges, else
   * destroyed. Each takes up to 2 MiB of device memory for 1,000 nodes. */
  size_t exec_pool;
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
/* The index of the input or output of this name; OGC_NOT_FOUND where there is none. */
ogc_code ogc_bundle_find_input(const ogc_bundle *bundle, size_t graph, const char *name, size_t *out_index);
ogc_code ogc_bundle_find_output(const ogc_bundle *bundle, size_t graph, const char *name, size_t *out_index);

/* Finds the graph for inputs of these names and shapes (`data` and `bytes` do not matter): the one of exactly these shapes, else
 * the cheapest of larger ones whose named dimensions may be padded (docs/shapes.md). OGC_INVALID_ARGUMENT, with the shapes that
 * there are, where none takes them. */
ogc_code ogc_bundle_select(const ogc_bundle *bundle, const ogc_array *inputs, size_t input_count, size_t *out_graph);
/* The shape of output `index` for such inputs; `out_shape` has room for the output's rank. */
ogc_code ogc_bundle_selected_shape(const ogc_bundle *bundle, const ogc_array *inputs, size_t input_count, size_t index,
                                   int64_t *out_shape);

/* Engines. `device` is "cpu", "cuda" or "cuda:N"; `options` may be null. Loads the code and puts the weights on the device. */
ogc_code ogc_engine_create(ogc_bundle *bundle, const char *device, const ogc_engine_options *options, ogc_engine **out_engine);
void ogc_engine_release(ogc_engine *engine);
/* "cpu" or the name of the GPU; lives as long as the engine. */
const char *ogc_engine_device_name(const ogc_engine *engine);

/* What became of the executable graphs of an engine. All zero on the cpu device. */
typedef struct ogc_exec_stats {
  size_t live;           /* now */
  size_t capacity;       /* at most */
  uint64_t instantiated; /* built from nothing */
  uint64_t switched;     /* updated to another graph ID or context */
  uint64_t refused;      /* updates that the driver refused; an instantiation followed */
  uint64_t evicted;      /* destroyed to make room */
  uint64_t patched;      /* nodes that got other buffers */
} ogc_exec_stats;

ogc_code ogc_engine_exec_stats(const ogc_engine *engine, ogc_exec_stats *out_stats);

/* Replaces the weights of a living engine by those of `refitted`, a bundle of the same structure (`ogc refit` makes one). No
 * graph is touched. Waits until no run uses the old weights; runs that begin later use the new ones, and no run sees both.
 * `weights_file` may be null: the bundle's own. OGC_INVALID_ARGUMENT says what else differs between the bundles; the old weights
 * then stay. Waits for ever where a run of the engine itself waits for something that the calling thread is still to do. */
ogc_code ogc_engine_refit(ogc_engine *engine, const ogc_bundle *refitted, const char *weights_file);

/* Contexts. `options` may be null. The caller's current CUDA context is left as it was by every call. */
ogc_code ogc_context_create(ogc_engine *engine, const ogc_context_options *options, ogc_context **out_context);
/* Waits for what still runs. */
void ogc_context_release(ogc_context *context);

/* Builds or updates the executable graph of `graph` and uploads it, so that the next run does not have to; so too after other
 * buffers were bound. */
ogc_code ogc_context_prepare(ogc_context *context, size_t graph);

/* Binds a buffer of the caller to an input. `bytes` must be the tensor's size. Null unbinds: the run then uses what the context's
 * own buffer holds.
 *
 * OGC_HOST: every run of `graph` from now on copies from `data` first, while the run is called.
 *
 * OGC_DEVICE: the graph reads `data` itself; nothing is copied. It is read when the stream gets there, so it must stay valid and
 * unchanged until then. Only the nodes that use it are changed, at the next run or prepare. Where this is not possible, the run
 * copies instead, with the same results (ogc_input_in_place tells): `data` must begin at a multiple of 256 bytes (16 on the cpu
 * device), be memory of the context's device (not pinned or managed memory, not the context's own), share no byte with an
 * output that is in place, and the bundle must list the uses (not for a state, for tensors that share bytes, or where a library
 * node uses it). Kernels may read up to the next multiple of 16 bytes. Memory of another device is OGC_INVALID_ARGUMENT. */
ogc_code ogc_bind_input(ogc_context *context, size_t graph, size_t index, const void *data, size_t bytes, ogc_memory memory);

/* The same for an output. Host data is written when ogc_context_synchronize returns (ogc_run includes that). Into device data the
 * graph writes itself, under the same conditions, and possibly intermediate values before the final ones; ogc_output_buffer then
 * does not get the result. An output that shares a byte with an input or output bound in place is copied at the end of the run.
 */
ogc_code ogc_bind_output(ogc_context *context, size_t graph, size_t index, void *data, size_t bytes, ogc_memory memory);

/* The context's own buffer of an input or output, in device memory. Reading and writing it without a binding saves the copy;
 * graphs of one context share these buffers. */
ogc_code ogc_input_buffer(ogc_context *context, size_t graph, size_t index, void **out_data);
ogc_code ogc_output_buffer(ogc_context *context, size_t graph, size_t index, void **out_data);

/* 1 where the graph uses the bound device buffer itself, 0 where it is copied or none is bound. */
int ogc_input_in_place(const ogc_context *context, size_t graph, size_t index);
int ogc_output_in_place(const ogc_context *context, size_t graph, size_t index);

/* States. An input and an output that were declared one state (`ogc compile --state past=present`) are one buffer of the context:
 * zero at first, read and advanced by each run, and common to all graph IDs of the bundle that have it. It is named by its input.
 * Binding such an input is OGC_FAILED_PRECONDITION; its output may be bound, which copies the state after each run. */
int ogc_bundle_input_is_state(const ogc_bundle *bundle, size_t graph, size_t index);
/* Copies to or from the state, in the order of the runs. `bytes` must be the tensor's size. Host data may be reused, and is
 * there, when the call returns. */
ogc_code ogc_state_write(ogc_context *context, size_t graph, size_t index, const void *data, size_t bytes, ogc_memory memory);
ogc_code ogc_state_read(ogc_context *context, size_t graph, size_t index, void *data, size_t bytes, ogc_memory memory);
/* Sets all states of the context to zero. */
ogc_code ogc_state_reset(ogc_context *context);

/* Selects the graph for the shapes of `inputs` as ogc_bundle_select does, runs it on them and waits. Inputs are filled up with
 * zeros where the graph is larger, outputs are cut to what belongs to the caller's rows: `outputs` names those that are wanted,
 * `bytes` is the size of the selected shape. Buffers bound to these inputs and outputs of the graph are unbound. `out_graph` may
 * be null. */
ogc_code ogc_run_arrays(ogc_context *context, const ogc_array *inputs, size_t input_count, const ogc_array *outputs,
                        size_t output_count, size_t *out_graph);

/* Runs `graph` once and waits: inputs, nodes, outputs. A stream of the caller that is being captured is OGC_FAILED_PRECONDITION
 * for every function that would enqueue something; its capture goes on undisturbed. */
ogc_code ogc_run(ogc_context *context, size_t graph);

/* The same without waiting. Runs of one context are ordered. On the cpu device it is the same as ogc_run. */
ogc_code ogc_run_async(ogc_context *context, size_t graph);

/* Waits for all runs, and brings the bytes of host outputs. Failures of the runs show here. */
ogc_code ogc_context_synchronize(ogc_context *context);

/* The shape that an output has after the last run of `graph`, for which this waits: `out_shape` has room for `rank` extents, the
 * rank of the tensor. Elements stand densely in this shape at the start of the output's buffer; the rest of it has no meaning. */
ogc_code ogc_output_shape(ogc_context *context, size_t graph, size_t index, int64_t *out_shape, size_t rank);

/* The stream the context runs on; null on the cpu device. */
void *ogc_context_stream(const ogc_context *context);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif
