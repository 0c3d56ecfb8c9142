// OpenVINO: one compiled model, and a request for each call that runs at the same time.

#include <cstring>
#include <fstream>
#include <mutex>
#include <openvino/openvino.hpp>
#include <stdexcept>
#include <utility>

#include "engine.h"

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

Port PortOf(const ov::Output<const ov::Node>& port) {
  Port found{port.get_any_name(), FromOpenvino(port.get_element_type()), {}};
  for (const auto& dim : port.get_partial_shape()) found.shape.push_back(dim.is_static() ? dim.get_length() : -1);
  return found;
}

class Openvino : public Engine {
 public:
  Openvino(const std::string& path, const Options& options) {
    ov::AnyMap settings{ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY)};
    settings.insert(
        ov::hint::inference_precision(options.precision == "float32" ? ov::element::f32 : ov::element::bf16));
    if (options.threads > 0) settings.insert(ov::inference_num_threads(options.threads));
    if (!options.cache.empty()) core_.set_property(ov::cache_dir(options.cache));
    model_ = core_.compile_model(path, options.device, settings);
    for (const auto& port : model_.inputs()) inputs.push_back(PortOf(port));
    for (const auto& port : model_.outputs()) outputs.push_back(PortOf(port));
  }

  void Run(const std::vector<const View*>& given, std::vector<Tensor>* outputs) override {
    ov::InferRequest request = Take(own_);
    Set(request, given);
    request.infer();
    outputs->resize(this->outputs.size());
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      const ov::Tensor found = request.get_output_tensor(i);
      Tensor& made = (*outputs)[i];
      made.type = this->outputs[i].type;
      made.shape = found.get_shape();
      made.bytes.resize(found.get_byte_size());
      std::memcpy(made.bytes.data(), found.data(), made.bytes.size());
    }
    Give(own_, std::move(request));
  }

  void RunInto(const std::vector<const View*>& given, const std::vector<View>& outputs) override {
    ov::InferRequest request = Take(callers_);
    Set(request, given);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const View& view = outputs[i];
      request.set_output_tensor(i, ov::Tensor(ToOpenvino(view.type), ov::Shape(view.shape), view.data));
    }
    request.infer();
    Give(callers_, std::move(request));
  }

 private:
  // A request has buffers of its own for what it gives, until a caller's are set; from then on it writes into those. So
  // requests of the two kinds of calls are kept apart. One whose call failed is not used again: it may be in the middle
  // of something.
  struct Pool {
    std::mutex mutex;
    std::vector<ov::InferRequest> free;
  };

  ov::InferRequest Take(Pool& pool) {
    {
      std::lock_guard<std::mutex> lock(pool.mutex);
      if (!pool.free.empty()) {
        ov::InferRequest request = std::move(pool.free.back());
        pool.free.pop_back();
        return request;
      }
    }
    return model_.create_infer_request();
  }

  void Give(Pool& pool, ov::InferRequest request) {
    std::lock_guard<std::mutex> lock(pool.mutex);
    pool.free.push_back(std::move(request));
  }

  static void Set(ov::InferRequest& request, const std::vector<const View*>& given) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      const View& view = *given[i];
      request.set_input_tensor(i, ov::Tensor(ToOpenvino(view.type), ov::Shape(view.shape), view.data));
    }
  }

  ov::Core core_;
  ov::CompiledModel model_;
  Pool own_, callers_;
};

}  // namespace

std::unique_ptr<Engine> LoadOpenvino(const std::string& directory, const Options& options) {
  const std::string path = directory + "/model.onnx";
  if (!std::ifstream(path).good()) {
    throw std::runtime_error("no " + path + ": export the graph with graph.export(directory, ..., onnx=True)");
  }
  try {
    return std::make_unique<Openvino>(path, options);
  } catch (const std::exception& error) {
    throw std::runtime_error("cannot load " + path + ": " + error.what());
  }
}

}  // namespace sbpjax
