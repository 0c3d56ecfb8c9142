/* Run an exported graph of one float input and one float output from C, on ones.
 *
 *   from_c DIRECTORY
 */

#include <stdio.h>
#include <stdlib.h>

#include "sbpjax/c_api.h"

int main(int argc, char** argv) {
  char error[512] = "from_c DIRECTORY";
  sbpjax_graph* graph = argc == 2 ? sbpjax_load(argv[1], NULL, error, sizeof error) : NULL;
  if (graph == NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  const sbpjax_port ports[2] = {sbpjax_input(graph, 0), sbpjax_output(graph, 0)};
  float* data[2];
  size_t shapes[2][8], counts[2];
  for (int side = 0; side < 2; ++side) {
    counts[side] = 1;
    for (size_t i = 0; i < ports[side].dims && i < 8; ++i) {
      shapes[side][i] = ports[side].shape[i] < 0 ? 1 : (size_t)ports[side].shape[i];
      counts[side] *= shapes[side][i];
    }
    data[side] = malloc(counts[side] * sizeof(float));
  }
  for (size_t i = 0; i < counts[0]; ++i) data[0][i] = 1;
  const sbpjax_view input = {ports[0].name, SBPJAX_FLOAT32, ports[0].dims, shapes[0], data[0]};
  const sbpjax_view output = {NULL, SBPJAX_FLOAT32, ports[1].dims, shapes[1], data[1]};
  const int failed = sbpjax_run(graph, &input, 1, &output, 1, error, sizeof error);
  if (failed) fprintf(stderr, "%s\n", error);
  for (size_t i = 0; !failed && i < counts[1]; ++i) printf("%.6g\n", data[1][i]);
  free(data[0]);
  free(data[1]);
  sbpjax_free(graph);
  return failed;
}
