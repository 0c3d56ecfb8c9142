// Graph over OpenVINO: one compiled model, and a request for each call that runs at the same time.

#include "sbpjax/graph.h"

#include <cstring>
#include <fstream>
#include <mutex>
#include <openvino/openvino.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace sbpjax {
namespace {

const std::pair<Type, ov::element::Type> kTypes[] = {
    {Type::kBool, ov::element::boolean},  {Type::kInt8, ov::element::i8},      {Type::kUint8, ov::element::u8},
    {Type::kInt16, ov::element::i16},     {Type::kUint16, ov::element::u16},   {Type::kInt32, ov::element::i32},
    {Type::kUint32, ov::element::u32},    {Type::kInt64, ov::element::i64},    {Type::kUint64, ov::element::u64},
    {Type::kFloat16, ov::element::f16},   {Type::kBfloat16, ov::element::bf16}, {Type::kFloat32, ov::element::f32},
    {Type::kFloat64, ov::element::f64},
};

ov::element::Type ToOpenvino(Type type) {
  for (const auto& [own, theirs] : kTypes) {
    if (own == type) return theirs;
  }
  return ov::element::dynamic;
}

Type FromOpenvino(const ov::element::Type& type) {
  for (const auto& [own, theirs] : kTypes) {
    if (theirs == type) return own;
  }
  throw std::runtime_error("an element type that sbpjax::Type has not: " + type.get_type_name());
}

std::string Text(const std::vector<std::size_t>& shape) {
  std::ostringstream out;
  out << "(";
  for (std::size_t i = 0; i < shape.size(); ++i) out << (i ? ", " : "") << shape[i];
  out << ")";
  return out.str();
}

std::string Text(const std::vector<std::int64_t>& shape) {
  std::ostringstream out;
  out << "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    out << (i ? ", " : "");
    if (shape[i] < 0) {
      out << "batch";
    } else {
      out << shape[i];
    }
  }
  out << ")";
  return out.str();
}

Port PortOf(const ov::Output<const ov::Node>& port) {
  Port found{port.get_any_name(), FromOpenvino(port.get_element_type()), {}};
  for (const auto& dim : port.get_partial_shape()) found.shape.push_back(dim.is_static() ? dim.get_length() : -1);
  return found;
}

bool Fits(const Port& port, const View& view) {
  if (port.type != view.type || port.shape.size() != view.shape.size()) return false;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (port.shape[i] >= 0 && port.shape[i] != static_cast<std::int64_t>(view.shape[i])) return false;
  }
  return view.data != nullptr;
}

}  // namespace

std::size_t SizeOf(Type type) { return ToOpenvino(type).size(); }

struct Graph::Inside {
  ov::Core core;
  ov::CompiledModel model;
  std::vector<Port> inputs, outputs;
  // A request has buffers of its own for what it gives, until a caller's are set; from then on it writes into those. So
  // requests of the two kinds of calls are kept apart.
  struct Pool {
    std::mutex mutex;
    std::vector<ov::InferRequest> free;
  };
  Pool own, callers;

  ov::InferRequest Take(Pool& pool) {
    {
      std::lock_guard<std::mutex> lock(pool.mutex);
      if (!pool.free.empty()) {
        ov::InferRequest request = std::move(pool.free.back());
        pool.free.pop_back();
        return request;
      }
    }
    return model.create_infer_request();
  }

  void Give(Pool& pool, ov::InferRequest request) {
    std::lock_guard<std::mutex> lock(pool.mutex);
    pool.free.push_back(std::move(request));
  }

  Status Set(ov::InferRequest& request, const std::map<std::string, View>& given) const {
    if (given.size() != inputs.size()) {
      return Status::Error(std::to_string(given.size()) + " inputs were given, the graph takes " +
                           std::to_string(inputs.size()));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Port& port = inputs[i];
      auto found = given.find(port.name);
      if (found == given.end()) return Status::Error("no input " + port.name);
      const View& view = found->second;
      if (!Fits(port, view)) {
        return Status::Error("input " + port.name + " is " + ToOpenvino(view.type).get_type_name() + Text(view.shape) +
                             ", the graph takes " + ToOpenvino(port.type).get_type_name() + Text(port.shape));
      }
      request.set_input_tensor(i, ov::Tensor(ToOpenvino(view.type), ov::Shape(view.shape), view.data));
    }
    return {};
  }
};

Graph::Graph() = default;
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Status Graph::Load(const std::string& directory, const Options& options, Graph* graph) {
  const std::string path = directory + "/model.onnx";
  if (!std::ifstream(path).good()) {
    return Status::Error("no " + path + ": export the graph with graph.export(directory, ..., onnx=True)");
  }
  if (options.precision != "float32" && options.precision != "bfloat16") {
    return Status::Error("precision " + options.precision + " is neither float32 nor bfloat16");
  }
  try {
    auto made = std::make_unique<Inside>();
    ov::AnyMap settings{ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY)};
    settings.insert(
        ov::hint::inference_precision(options.precision == "float32" ? ov::element::f32 : ov::element::bf16));
    if (options.threads > 0) settings.insert(ov::inference_num_threads(options.threads));
    if (!options.cache.empty()) made->core.set_property(ov::cache_dir(options.cache));
    made->model = made->core.compile_model(path, options.device, settings);
    for (const auto& port : made->model.inputs()) made->inputs.push_back(PortOf(port));
    for (const auto& port : made->model.outputs()) made->outputs.push_back(PortOf(port));
    graph->inside_ = std::move(made);
    return {};
  } catch (const std::exception& error) {
    return Status::Error("cannot load " + path + ": " + error.what());
  }
}

const std::vector<Port>& Graph::inputs() const {
  static const std::vector<Port> none;
  return inside_ ? inside_->inputs : none;
}

const std::vector<Port>& Graph::outputs() const {
  static const std::vector<Port> none;
  return inside_ ? inside_->outputs : none;
}

Status Graph::Run(const std::map<std::string, View>& inputs, std::vector<Tensor>* outputs) const {
  if (!inside_) return Status::Error("a graph that was not loaded");
  try {
    ov::InferRequest request = inside_->Take(inside_->own);
    Status status = inside_->Set(request, inputs);
    if (status.ok()) {
      request.infer();
      outputs->resize(inside_->outputs.size());
      for (std::size_t i = 0; i < outputs->size(); ++i) {
        const ov::Tensor found = request.get_output_tensor(i);
        Tensor& made = (*outputs)[i];
        made.type = inside_->outputs[i].type;
        made.shape = found.get_shape();
        made.bytes.resize(found.get_byte_size());
        std::memcpy(made.bytes.data(), found.data(), made.bytes.size());
      }
    }
    inside_->Give(inside_->own, std::move(request));
    return status;
  } catch (const std::exception& error) {
    // The request is not used again: it may be in the middle of something.
    return Status::Error(error.what());
  }
}

Status Graph::RunInto(const std::map<std::string, View>& inputs, const std::vector<View>& outputs) const {
  if (!inside_) return Status::Error("a graph that was not loaded");
  if (outputs.size() != inside_->outputs.size()) {
    return Status::Error(std::to_string(outputs.size()) + " outputs were given, the graph has " +
                         std::to_string(inside_->outputs.size()));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!Fits(inside_->outputs[i], outputs[i])) {
      return Status::Error("output " + inside_->outputs[i].name + " is " + Text(outputs[i].shape) +
                           ", the graph gives " + Text(inside_->outputs[i].shape));
    }
  }
  try {
    ov::InferRequest request = inside_->Take(inside_->callers);
    Status status = inside_->Set(request, inputs);
    if (!status.ok()) {
      inside_->Give(inside_->callers, std::move(request));
      return status;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      request.set_output_tensor(i, ov::Tensor(ToOpenvino(outputs[i].type), ov::Shape(outputs[i].shape), outputs[i].data));
    }
    request.infer();
    inside_->Give(inside_->callers, std::move(request));
    return {};
  } catch (const std::exception& error) {
    return Status::Error(error.what());
  }
}

}  // namespace sbpjax
