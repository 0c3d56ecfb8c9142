// Run an exported graph on files of raw numbers, and write its outputs as such.
//
//   run DIRECTORY OUT THREADS CALLS NAME=FILE:SIZExSIZE... ...
//
//   run classifier out 1 1 x=image.raw:1x3x224x224
//
// SBPJAX_ENGINE=xla runs it by the plugin SBPJAX_PJRT_PLUGIN. The types are the graph's. With several threads and calls every answer is compared with the first one, and the time of
// one call is printed.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <thread>

#include "sbpjax/graph.h"

namespace {

int Fail(const std::string& why) {
  std::cerr << why << "\n";
  return 1;
}

std::vector<char> Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

long ResidentKib() {
  std::ifstream file("/proc/self/statm");
  long all = 0, resident = 0;
  file >> all >> resident;
  return resident * 4;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return Fail("run DIRECTORY OUT THREADS CALLS NAME=FILE:SIZExSIZE ...");
  sbpjax::Graph graph;
  sbpjax::Options options;
  if (const char* threads = std::getenv("SBPJAX_THREADS")) options.threads = std::atoi(threads);
  if (const char* engine = std::getenv("SBPJAX_ENGINE")) options.engine = engine;
  sbpjax::Status status = sbpjax::Graph::Load(argv[1], options, &graph);
  if (!status.ok()) return Fail(status.message());
  const int threads = std::atoi(argv[3]), calls = std::atoi(argv[4]);

  std::map<std::string, sbpjax::View> inputs;
  std::vector<std::vector<char>> held;
  held.reserve(argc);
  for (int i = 5; i < argc; ++i) {
    const std::string text = argv[i];
    const std::size_t equals = text.find('='), colon = text.rfind(':');
    if (equals == std::string::npos || colon == std::string::npos || colon < equals) return Fail("NAME=FILE:SIZExSIZE");
    const std::string name = text.substr(0, equals);
    sbpjax::View view;
    for (const auto& port : graph.inputs()) {
      if (port.name == name) view.type = port.type;
    }
    std::stringstream sizes(text.substr(colon + 1));
    std::size_t bytes = sbpjax::SizeOf(view.type);
    for (std::string size; std::getline(sizes, size, 'x');) {
      view.shape.push_back(std::stoul(size));
      bytes *= view.shape.back();
    }
    held.push_back(Read(text.substr(equals + 1, colon - equals - 1)));
    if (held.back().size() != bytes) return Fail(name + ": the file has another size");
    view.data = held.back().data();
    inputs[name] = view;
  }

  std::vector<sbpjax::Tensor> first;
  status = graph.Run(inputs, &first);
  if (!status.ok()) return Fail(status.message());
  for (std::size_t i = 0; i < first.size(); ++i) {
    std::ofstream file(std::string(argv[2]) + "." + std::to_string(i), std::ios::binary);
    file.write(first[i].data<char>(), static_cast<std::streamsize>(first[i].bytes.size()));
  }
  if (calls < 2) return 0;

  const long before = ResidentKib();
  std::vector<std::thread> running;
  std::vector<int> wrong(threads, 0);
  const auto start = std::chrono::steady_clock::now();
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      std::vector<sbpjax::Tensor> outputs;
      for (int i = 0; i < calls; ++i) {
        if (!graph.Run(inputs, &outputs).ok()) ++wrong[t];
        for (std::size_t k = 0; k < outputs.size(); ++k) wrong[t] += outputs[k].bytes != first[k].bytes;
      }
    });
  }
  for (auto& thread : running) thread.join();
  const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  int all = 0;
  for (int count : wrong) all += count;
  std::printf("%d wrong, %.2f us per call, %ld KiB more\n", all, us / (calls * threads), ResidentKib() - before);
  return all != 0;
}
