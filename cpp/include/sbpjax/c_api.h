/* An exported graph, run from C: the same as sbpjax/graph.h.
 *
 *   char error[512];
 *   sbpjax_graph* graph = sbpjax_load("classifier", NULL, error, sizeof error);
 *   if (!graph) { fprintf(stderr, "%s\n", error); return 1; }
 *
 *   float image[3 * 224 * 224], logits[1000];
 *   size_t in[] = {1, 3, 224, 224}, out[] = {1, 1000};
 *   sbpjax_view input = {"x", SBPJAX_FLOAT32, 4, in, image}, output = {NULL, SBPJAX_FLOAT32, 2, out, logits};
 *   if (sbpjax_run(graph, &input, 1, &output, 1, error, sizeof error)) fprintf(stderr, "%s\n", error);
 *   sbpjax_free(graph);
 *
 * sbpjax_run may be called from several threads at once. Functions that can fail write why into `error`, cut off at its
 * size; nothing here ends the process.
 */

#ifndef SBPJAX_C_API_H_
#define SBPJAX_C_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sbpjax_graph sbpjax_graph;

typedef enum {
  SBPJAX_BOOL, SBPJAX_INT8, SBPJAX_UINT8, SBPJAX_INT16, SBPJAX_UINT16, SBPJAX_INT32, SBPJAX_UINT32, SBPJAX_INT64,
  SBPJAX_UINT64, SBPJAX_FLOAT16, SBPJAX_BFLOAT16, SBPJAX_FLOAT32, SBPJAX_FLOAT64
} sbpjax_type;

/* Memory of the caller's, row by row, read or written in place. Inputs have names; outputs go by their order. */
typedef struct {
  const char* name;
  sbpjax_type type;
  size_t dims;
  const size_t* shape;
  void* data;
} sbpjax_view;

/* What a graph takes or gives. A size of -1 is free. The memory is the graph's. */
typedef struct {
  const char* name;
  sbpjax_type type;
  size_t dims;
  const int64_t* shape;
} sbpjax_port;

typedef struct {
  const char* device;    /* a device of OpenVINO; NULL for "CPU"; of XLA a number, NULL for 0 */
  const char* precision; /* "float32" or "bfloat16"; NULL for "float32" */
  int threads;           /* 0 for the engine's own choice */
  const char* cache;     /* a directory for what was compiled; NULL for none */
  const char* engine;    /* "openvino" or "xla"; NULL for "openvino" */
  const char* plugin;    /* of XLA: the library of a PJRT plugin; NULL for the environment's SBPJAX_PJRT_PLUGIN */
} sbpjax_options;

/* Load what was exported to a directory; NULL if that failed. `options` may be NULL. */
sbpjax_graph* sbpjax_load(const char* directory, const sbpjax_options* options, char* error, size_t error_size);
void sbpjax_free(sbpjax_graph* graph);

size_t sbpjax_input_count(const sbpjax_graph* graph);
size_t sbpjax_output_count(const sbpjax_graph* graph);
sbpjax_port sbpjax_input(const sbpjax_graph* graph, size_t i);
sbpjax_port sbpjax_output(const sbpjax_graph* graph, size_t i);

/* Run it. Returns 0, or 1 and a text in `error`. */
int sbpjax_run(const sbpjax_graph* graph, const sbpjax_view* inputs, size_t input_count, const sbpjax_view* outputs,
               size_t output_count, char* error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif  /* SBPJAX_C_API_H_ */
