// The C API: each function hands on to Graph, and no exception leaves it.

#include "sbpjax/c_api.h"

#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sbpjax/graph.h"

static_assert(static_cast<int>(sbpjax::Type::kFloat64) == SBPJAX_FLOAT64, "the types are in the same order");

struct sbpjax_graph {
  sbpjax::Graph graph;
};

namespace {

void Say(const std::string& why, char* error, std::size_t size) {
  if (error != nullptr && size > 0) std::snprintf(error, size, "%s", why.c_str());
}

std::string OrEmpty(const char* text, const char* otherwise = "") { return text != nullptr ? text : otherwise; }

sbpjax::View ViewOf(const sbpjax_view& view) {
  return {static_cast<sbpjax::Type>(view.type), {view.shape, view.shape + view.dims}, view.data};
}

sbpjax_port PortOf(const std::vector<sbpjax::Port>& ports, std::size_t i) {
  if (i >= ports.size()) return {nullptr, SBPJAX_FLOAT32, 0, nullptr};
  const sbpjax::Port& port = ports[i];
  return {port.name.c_str(), static_cast<sbpjax_type>(port.type), port.shape.size(), port.shape.data()};
}

bool IsType(sbpjax_type type) { return type >= SBPJAX_BOOL && type <= SBPJAX_FLOAT64; }

}  // namespace

extern "C" {

sbpjax_graph* sbpjax_load(const char* directory, const sbpjax_options* options, char* error, size_t error_size) {
  try {
    sbpjax::Options chosen;
    if (options != nullptr) {
      chosen.device = OrEmpty(options->device, "CPU");
      chosen.precision = OrEmpty(options->precision, "float32");
      chosen.threads = options->threads;
      chosen.cache = OrEmpty(options->cache);
      chosen.engine = OrEmpty(options->engine, "openvino");
      chosen.plugin = OrEmpty(options->plugin);
    }
    auto made = std::make_unique<sbpjax_graph>();
    const sbpjax::Status status = sbpjax::Graph::Load(OrEmpty(directory), chosen, &made->graph);
    if (status.ok()) return made.release();
    Say(status.message(), error, error_size);
  } catch (const std::exception& wrong) {
    Say(wrong.what(), error, error_size);
  }
  return nullptr;
}

void sbpjax_free(sbpjax_graph* graph) { delete graph; }

size_t sbpjax_input_count(const sbpjax_graph* graph) { return graph == nullptr ? 0 : graph->graph.inputs().size(); }
size_t sbpjax_output_count(const sbpjax_graph* graph) { return graph == nullptr ? 0 : graph->graph.outputs().size(); }

sbpjax_port sbpjax_input(const sbpjax_graph* graph, size_t i) {
  return graph == nullptr ? PortOf({}, 0) : PortOf(graph->graph.inputs(), i);
}

sbpjax_port sbpjax_output(const sbpjax_graph* graph, size_t i) {
  return graph == nullptr ? PortOf({}, 0) : PortOf(graph->graph.outputs(), i);
}

int sbpjax_run(const sbpjax_graph* graph, const sbpjax_view* inputs, size_t input_count, const sbpjax_view* outputs,
               size_t output_count, char* error, size_t error_size) {
  try {
    if (graph == nullptr) throw std::runtime_error("a graph that was not loaded");
    std::map<std::string, sbpjax::View> given;
    for (size_t i = 0; i < input_count; ++i) {
      if (inputs[i].name == nullptr || !IsType(inputs[i].type)) throw std::runtime_error("an input without name or type");
      given[inputs[i].name] = ViewOf(inputs[i]);
    }
    std::vector<sbpjax::View> wanted;
    for (size_t i = 0; i < output_count; ++i) {
      if (!IsType(outputs[i].type)) throw std::runtime_error("an output without type");
      wanted.push_back(ViewOf(outputs[i]));
    }
    const sbpjax::Status status = graph->graph.RunInto(given, wanted);
    if (status.ok()) return 0;
    Say(status.message(), error, error_size);
  } catch (const std::exception& wrong) {
    Say(wrong.what(), error, error_size);
  }
  return 1;
}

}  // extern "C"
