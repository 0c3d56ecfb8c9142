// An exported graph, run from C++ without Python.
//
//   sbpjax::Graph graph;
//   sbpjax::Status status = sbpjax::Graph::Load("classifier", {}, &graph);
//   if (!status.ok()) { std::cerr << status.message() << "\n"; return 1; }
//
//   std::vector<float> image(3 * 224 * 224);
//   std::vector<sbpjax::Tensor> outputs;
//   status = graph.Run({{"x", sbpjax::View::Of(image.data(), {1, 3, 224, 224})}}, &outputs);
//   const float* logits = outputs[0].data<float>();
//
// The directory is what `graph.export(directory, ..., onnx=True)` wrote. Two engines run it:
//
//   openvino   `model.onnx`, with a free batch too. Light, and the faster one on CPUs.
//   xla        `program.mlirbc`, the program that Python runs, by a plugin of PJRT for CPU, CUDA or TPU. Any graph of
//              sizes that are known that computes outputs of inputs on one device; `onnx=True` is not needed.
//
// Both read the weights from `weights.safetensors`.
//
// `Run` may be called from several threads at once. Nothing here throws: what goes wrong is a Status.

#ifndef SBPJAX_GRAPH_H_
#define SBPJAX_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sbpjax {

// Whether something worked, and what was wrong if not.
class Status {
 public:
  Status() = default;
  static Status Error(std::string message) {
    Status status;
    status.message_ = message.empty() ? "unknown error" : std::move(message);
    return status;
  }
  bool ok() const { return message_.empty(); }
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

enum class Type { kBool, kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kInt64, kUint64, kFloat16, kBfloat16, kFloat32, kFloat64 };

// The size of one element in bytes.
std::size_t SizeOf(Type type);

template <typename T> struct TypeOf;
template <> struct TypeOf<bool> { static constexpr Type value = Type::kBool; };
template <> struct TypeOf<std::int8_t> { static constexpr Type value = Type::kInt8; };
template <> struct TypeOf<std::uint8_t> { static constexpr Type value = Type::kUint8; };
template <> struct TypeOf<std::int32_t> { static constexpr Type value = Type::kInt32; };
template <> struct TypeOf<std::int64_t> { static constexpr Type value = Type::kInt64; };
template <> struct TypeOf<float> { static constexpr Type value = Type::kFloat32; };
template <> struct TypeOf<double> { static constexpr Type value = Type::kFloat64; };

// Memory of the caller's, row by row; it is read or written in place and must outlive the call.
struct View {
  Type type = Type::kFloat32;
  std::vector<std::size_t> shape;
  void* data = nullptr;

  template <typename T> static View Of(T* data, std::vector<std::size_t> shape) {
    return {TypeOf<T>::value, std::move(shape), data};
  }
};

// An output of a call, with memory of its own.
class Tensor {
 public:
  Type type = Type::kFloat32;
  std::vector<std::size_t> shape;
  std::vector<std::byte> bytes;

  template <typename T> const T* data() const { return reinterpret_cast<const T*>(bytes.data()); }
};

// What a graph takes or gives. A size of -1 is free; the batch is, after an export with dynamic_batch=True.
struct Port {
  std::string name;
  Type type;
  std::vector<std::int64_t> shape;
};

struct Options {
  std::string device = "CPU";         // a device of OpenVINO; of XLA a number, by default 0
  std::string precision = "float32";  // or "bfloat16": in which type it may compute
  int threads = 0;                    // of OpenVINO; 0 for its own choice. XLA takes those of the environment's NPROC
  std::string cache;                  // of OpenVINO: a directory for what was compiled; empty for none
  std::string engine = "openvino";    // or "xla"
  std::string plugin;                 // of XLA: the plugin's library; empty for the environment's SBPJAX_PJRT_PLUGIN
};

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;

  // Load what was exported to a directory.
  static Status Load(const std::string& directory, const Options& options, Graph* graph);

  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;

  // Run it on inputs by name, and give its outputs in their order.
  Status Run(const std::map<std::string, View>& inputs, std::vector<Tensor>* outputs) const;

  // The same into memory of the caller's, one view for each output; nothing is copied.
  Status RunInto(const std::map<std::string, View>& inputs, const std::vector<View>& outputs) const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace sbpjax

#endif  // SBPJAX_GRAPH_H_
