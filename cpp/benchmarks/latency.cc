// The time of a call by this library against OpenVINO's own calls on the same file, in turns in one process.
//
//   latency DIRECTORY CALLS
//
// Both read a model of float inputs, of which free sizes are 1, compile it for latency in float32, and run it on ones.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <openvino/openvino.hpp>
#include <string>
#include <vector>

#include "sbpjax/graph.h"

namespace {

template <typename F> double Microseconds(F&& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "latency DIRECTORY CALLS\n"), 1;
  const int calls = std::atoi(argv[2]);
  sbpjax::Options options;
  options.threads = 1;
  sbpjax::Graph graph;
  const sbpjax::Status status = sbpjax::Graph::Load(argv[1], options, &graph);
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.message().c_str()), 1;

  ov::Core core;
  ov::CompiledModel model = core.compile_model(
      std::string(argv[1]) + "/model.onnx", "CPU", ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
      ov::hint::inference_precision(ov::element::f32), ov::inference_num_threads(1));
  ov::InferRequest request = model.create_infer_request();

  std::vector<std::vector<float>> held;
  std::map<std::string, sbpjax::View> inputs;
  std::vector<ov::Tensor> tensors;
  for (const sbpjax::Port& port : graph.inputs()) {
    std::vector<std::size_t> shape;
    std::size_t count = 1;
    for (const std::int64_t size : port.shape) {
      shape.push_back(size < 0 ? 1 : static_cast<std::size_t>(size));
      count *= shape.back();
    }
    held.emplace_back(count, 1.0f);
    inputs[port.name] = sbpjax::View::Of(held.back().data(), shape);
    tensors.emplace_back(ov::element::f32, ov::Shape(shape), held.back().data());
  }
  std::vector<sbpjax::Tensor> outputs;
  const auto ours = [&] { graph.Run(inputs, &outputs); };
  const auto theirs = [&] {
    for (std::size_t i = 0; i < tensors.size(); ++i) request.set_input_tensor(i, tensors[i]);
    request.infer();
  };
  for (int i = 0; i < 20; ++i) ours(), theirs();
  std::vector<double> a, b;
  for (int i = 0; i < calls; ++i) {
    a.push_back(Microseconds(ours));
    b.push_back(Microseconds(theirs));
  }
  std::printf("%.2f %.2f %.4f\n", Median(a), Median(b), Median(a) / Median(b));
  return 0;
}
