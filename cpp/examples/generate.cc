// Write tokens behind a prompt by an exported language model.
//
//   generate DIRECTORY NEW_TOKENS TOKEN TOKEN ...
//
// The graph takes tokens (1, T) of int64 and gives logits (1, T, V); a token sees those before it only, so that what is
// behind the text does not matter. The text is read anew for each token: a graph of its own for each step keeps no keys.
// The likeliest token is taken.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "sbpjax/graph.h"

namespace {

int Fail(const std::string& why) {
  std::cerr << why << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return Fail("generate DIRECTORY NEW_TOKENS TOKEN TOKEN ...");
  sbpjax::Graph graph;
  sbpjax::Options options;
  if (const char* engine = std::getenv("SBPJAX_ENGINE")) options.engine = engine;
  sbpjax::Status status = sbpjax::Graph::Load(argv[1], options, &graph);
  if (!status.ok()) return Fail(status.message());
  const std::vector<sbpjax::Port>& inputs = graph.inputs();
  if (inputs.size() != 1 || inputs[0].type != sbpjax::Type::kInt64 || inputs[0].shape.size() != 2) {
    return Fail("the graph takes something else than tokens (1, T) of int64");
  }
  std::vector<std::int64_t> text;
  for (int i = 3; i < argc; ++i) text.push_back(std::atoll(argv[i]));
  const std::size_t most = inputs[0].shape[1] > 0 ? static_cast<std::size_t>(inputs[0].shape[1]) : 1024;
  const std::size_t end = text.size() + static_cast<std::size_t>(std::max(0, std::atoi(argv[2])));
  if (end > most) return Fail("the graph takes " + std::to_string(most) + " tokens, the text has " + std::to_string(end));

  std::vector<sbpjax::Tensor> outputs;
  while (text.size() < end) {
    std::vector<std::int64_t> padded = text;
    padded.resize(most, 0);
    status = graph.Run({{inputs[0].name, sbpjax::View::Of(padded.data(), {1, most})}}, &outputs);
    if (!status.ok()) return Fail(status.message());
    const std::size_t vocab = outputs[0].shape.back();
    const float* logits = outputs[0].data<float>() + (text.size() - 1) * vocab;
    text.push_back(std::max_element(logits, logits + vocab) - logits);
    std::cout << text.back() << (text.size() < end ? " " : "\n") << std::flush;
  }
  return 0;
}
