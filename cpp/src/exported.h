// What `graph.export` wrote, as an engine of XLA needs it: the program, and what each of its arguments is.

#ifndef SBPJAX_SRC_EXPORTED_H_
#define SBPJAX_SRC_EXPORTED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sbpjax/graph.h"

namespace sbpjax {

// An argument of the program: an input of the graph, or a constant that is the same in each call.
struct Argument {
  int input = -1;  // the number of the input; -1 for a constant
  Type type = Type::kFloat32;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;  // of a constant
};

struct Exported {
  std::string artifact;                // StableHLO's portable artifact
  std::string hlo;                     // XLA's own message; empty if there is none
  std::vector<std::string> platforms;  // with several of them the program's first argument says which one it is
  std::vector<Port> inputs, outputs;
  std::vector<Argument> arguments;

  // Memory of constants.
  std::string weights;
  std::int64_t seed[2] = {0, 0};
};

// Read a directory. Throws what is wrong with it, and if its program does more than compute outputs of inputs.
void ReadExported(const std::string& directory, Exported* into);

}  // namespace sbpjax

#endif  // SBPJAX_SRC_EXPORTED_H_
