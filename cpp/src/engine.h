// What runs a graph: one of the engines behind sbpjax::Graph.

#ifndef SBPJAX_SRC_ENGINE_H_
#define SBPJAX_SRC_ENGINE_H_

#include <memory>
#include <string>
#include <vector>

#include "sbpjax/graph.h"

namespace sbpjax {

class Engine {
 public:
  virtual ~Engine() = default;

  std::vector<Port> inputs, outputs;

  // Run it. `given` are its inputs in their order, and fit them. Any number of threads calls this at once; what goes
  // wrong may be thrown.
  virtual void Run(const std::vector<const View*>& given, std::vector<Tensor>* outputs) = 0;

  // The same into memory of the caller's; the views fit `outputs`.
  virtual void RunInto(const std::vector<const View*>& given, const std::vector<View>& outputs) = 0;
};

// Each throws std::exception with what is wrong. Which of them are built is CMake's choice.
std::unique_ptr<Engine> LoadOpenvino(const std::string& directory, const Options& options);
std::unique_ptr<Engine> LoadPjrt(const std::string& directory, const Options& options);

}  // namespace sbpjax

#endif  // SBPJAX_SRC_ENGINE_H_
