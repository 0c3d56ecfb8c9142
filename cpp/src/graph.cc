// Graph: chooses the engine, looks whether what it is given fits, and turns what is thrown into a Status.

#include "sbpjax/graph.h"

#include <cstddef>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "engine.h"

namespace sbpjax {
namespace {

struct Facts {
  const char* name;
  std::size_t size;
};

const Facts kFacts[] = {{"boolean", 1}, {"i8", 1},  {"u8", 1},  {"i16", 2},  {"u16", 2}, {"i32", 4}, {"u32", 4},
                        {"i64", 8},     {"u64", 8}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}};

const char* NameOf(Type type) { return kFacts[static_cast<int>(type)].name; }

template <typename Size> std::string Text(const std::vector<Size>& shape) {
  std::ostringstream out;
  out << "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    out << (i ? ", " : "");
    if (static_cast<std::int64_t>(shape[i]) < 0) {
      out << "batch";
    } else {
      out << shape[i];
    }
  }
  out << ")";
  return out.str();
}

bool Fits(const Port& port, const View& view) {
  if (port.type != view.type || port.shape.size() != view.shape.size()) return false;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (port.shape[i] >= 0 && port.shape[i] != static_cast<std::int64_t>(view.shape[i])) return false;
  }
  return view.data != nullptr;
}

// The views of a call in the order of the ports.
std::vector<const View*> InOrder(const std::vector<Port>& ports, const std::map<std::string, View>& given) {
  if (given.size() != ports.size()) {
    throw std::runtime_error(std::to_string(given.size()) + " inputs were given, the graph takes " +
                             std::to_string(ports.size()));
  }
  std::vector<const View*> found;
  for (const Port& port : ports) {
    const auto entry = given.find(port.name);
    if (entry == given.end()) throw std::runtime_error("no input " + port.name);
    const View& view = entry->second;
    if (!Fits(port, view)) {
      throw std::runtime_error("input " + port.name + " is " + NameOf(view.type) + Text(view.shape) +
                               ", the graph takes " + NameOf(port.type) + Text(port.shape));
    }
    found.push_back(&view);
  }
  return found;
}

}  // namespace

std::size_t SizeOf(Type type) { return kFacts[static_cast<int>(type)].size; }

struct Graph::Inside {
  std::unique_ptr<Engine> engine;
};

Graph::Graph() = default;
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Status Graph::Load(const std::string& directory, const Options& options, Graph* graph) {
  if (options.precision != "float32" && options.precision != "bfloat16") {
    return Status::Error("precision " + options.precision + " is neither float32 nor bfloat16");
  }
  try {
    auto made = std::make_unique<Inside>();
    if (options.engine == "openvino") {
#ifdef SBPJAX_OPENVINO
      made->engine = LoadOpenvino(directory, options);
#else
      return Status::Error("this library was built without OpenVINO: build it with -DOpenVINO_DIR=");
#endif
    } else if (options.engine == "xla") {
#ifdef SBPJAX_PJRT
      made->engine = LoadPjrt(directory, options);
#else
      return Status::Error("this library was built without XLA: build it with -DPJRT_INCLUDE=");
#endif
    } else {
      return Status::Error("engine " + options.engine + " is neither openvino nor xla");
    }
    graph->inside_ = std::move(made);
    return {};
  } catch (const std::exception& error) {
    return Status::Error(error.what());
  }
}

const std::vector<Port>& Graph::inputs() const {
  static const std::vector<Port> none;
  return inside_ ? inside_->engine->inputs : none;
}

const std::vector<Port>& Graph::outputs() const {
  static const std::vector<Port> none;
  return inside_ ? inside_->engine->outputs : none;
}

Status Graph::Run(const std::map<std::string, View>& inputs, std::vector<Tensor>* outputs) const {
  if (!inside_) return Status::Error("a graph that was not loaded");
  try {
    inside_->engine->Run(InOrder(inside_->engine->inputs, inputs), outputs);
    return {};
  } catch (const std::exception& error) {
    return Status::Error(error.what());
  }
}

Status Graph::RunInto(const std::map<std::string, View>& inputs, const std::vector<View>& outputs) const {
  if (!inside_) return Status::Error("a graph that was not loaded");
  const std::vector<Port>& ports = inside_->engine->outputs;
  if (outputs.size() != ports.size()) {
    return Status::Error(std::to_string(outputs.size()) + " outputs were given, the graph has " +
                         std::to_string(ports.size()));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!Fits(ports[i], outputs[i])) {
      return Status::Error("output " + ports[i].name + " is " + NameOf(outputs[i].type) + Text(outputs[i].shape) +
                           ", the graph gives " + NameOf(ports[i].type) + Text(ports[i].shape));
    }
  }
  try {
    inside_->engine->RunInto(InOrder(inside_->engine->inputs, inputs), outputs);
    return {};
  } catch (const std::exception& error) {
    return Status::Error(error.what());
  }
}

}  // namespace sbpjax
