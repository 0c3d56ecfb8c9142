#include "exported.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include "json.h"

namespace sbpjax {
namespace {

const std::map<std::string, Type>& Types() {
  static const std::map<std::string, Type> types{
      {"bool", Type::kBool},       {"int8", Type::kInt8},         {"uint8", Type::kUint8},     {"int16", Type::kInt16},
      {"uint16", Type::kUint16},   {"int32", Type::kInt32},       {"uint32", Type::kUint32},   {"int64", Type::kInt64},
      {"uint64", Type::kUint64},   {"float16", Type::kFloat16},   {"bfloat16", Type::kBfloat16},
      {"float32", Type::kFloat32}, {"float64", Type::kFloat64},
  };
  return types;
}

bool Read(const std::string& path, std::string* into) {
  std::ifstream file(path, std::ios::binary);
  if (!file.good()) return false;
  into->assign(std::istreambuf_iterator<char>(file), {});
  return true;
}

Type TypeNamed(const std::string& name) {
  const auto found = Types().find(name);
  if (found == Types().end()) throw std::runtime_error("a type that is not known here: " + name);
  return found->second;
}

Port PortOf(const Json& leaf) {
  Port port{leaf["path"].text, TypeNamed(leaf["dtype"].text), {}};
  for (const Json& size : leaf["shape"].items) {
    if (size.kind != Json::Kind::kNumber) {
      throw std::runtime_error("a free batch is for OpenVINO: export it without dynamic_batch=True for XLA");
    }
    port.shape.push_back(static_cast<std::int64_t>(size.number));
  }
  return port;
}

std::vector<Port> PortsOf(const Json& side) {
  std::vector<Port> ports;
  for (const Json& leaf : side["leaves"].items) {
    if (leaf.find("static") == nullptr) ports.push_back(PortOf(leaf));
  }
  return ports;
}

// The weights of a safetensors file: 8 bytes of length, a header in JSON, and the numbers.
class Weights {
 public:
  explicit Weights(const std::string& file) : file_(file) {
    std::uint64_t length = 0;
    if (file.size() < sizeof length) throw std::runtime_error("the weights are cut off");
    std::memcpy(&length, file.data(), sizeof length);
    if (length > file.size() - sizeof length) throw std::runtime_error("the weights are cut off");
    header_ = Json::Parse(file.substr(sizeof length, length));
    start_ = sizeof length + length;
  }

  Argument Constant(const Json& facts) const {
    Argument made;
    made.type = TypeNamed(facts["dtype"].text);
    std::size_t bytes = SizeOf(made.type);
    for (const Json& size : facts["shape"].items) {
      made.shape.push_back(static_cast<std::int64_t>(size.number));
      bytes *= static_cast<std::size_t>(size.number);
    }
    const std::string& name = facts["path"].text;
    const Json& offsets = header_[name]["data_offsets"];
    const auto begin = static_cast<std::size_t>(offsets[0].number), end = static_cast<std::size_t>(offsets[1].number);
    if (end < begin || end - begin != bytes || end > file_.size() - start_) {
      throw std::runtime_error("the weight " + name + " has another size");
    }
    made.data = file_.data() + start_ + begin;
    return made;
  }

 private:
  const std::string& file_;
  Json header_;
  std::size_t start_;
};

void Fill(const std::string& directory, const Json& manifest, Exported* into) {
  const Json& state = manifest["state"];
  if (!manifest["placement"].is_null()) throw std::runtime_error("a graph on several devices does not run from C++");
  if (!state["order"].items.empty()) throw std::runtime_error("a graph that writes its state does not run from C++");
  if (manifest["program"]["random"].number != 0) throw std::runtime_error("a graph of random numbers does not run from C++");
  into->inputs = PortsOf(manifest["inputs"]);
  into->outputs = PortsOf(manifest["outputs"]);
  for (const Json& name : manifest["program"]["platforms"].items) into->platforms.push_back(name.text);
  if (!Read(directory + "/" + manifest["weights"]["file"].text, &into->weights)) {
    throw std::runtime_error("the file of the weights is missing");
  }
  // A program takes a seed, state, numbers of optimizers, inputs and captured tensors, of which it keeps what it reads.
  const Weights weights(into->weights);
  std::vector<Argument> all(1);
  all[0].type = Type::kInt64;
  all[0].shape = {2};
  all[0].data = into->seed;
  for (const Json& slot : state["inputs"].items) {
    if (slot["stacked"].number != 0) {
      throw std::runtime_error("layers are stacked: graph.config.enable_block_scan(False) before the export");
    }
    all.push_back(weights.Constant(state["tensors"][static_cast<std::size_t>(slot["tensors"][0].number)]));
  }
  if (!state["numbers"].items.empty()) throw std::runtime_error("a graph that trains does not run from C++");
  for (std::size_t i = 0; i < into->inputs.size(); ++i) {
    Argument made;
    made.input = static_cast<int>(i);
    made.type = into->inputs[i].type;
    made.shape = into->inputs[i].shape;
    all.push_back(made);
  }
  for (const Json& facts : state["captured"].items) all.push_back(weights.Constant(facts));
  for (const Json& kept : manifest["program"]["kept"].items) {
    const auto i = static_cast<std::size_t>(kept.number);
    if (i >= all.size()) throw std::runtime_error("the program takes more than the manifest says");
    into->arguments.push_back(all[i]);
  }
}

}  // namespace

void ReadExported(const std::string& directory, Exported* into) {
  std::string text;
  if (!Read(directory + "/manifest.json", &text)) {
    throw std::runtime_error("no " + directory + "/manifest.json: graph.export(directory, ...) writes it");
  }
  if (!Read(directory + "/program.mlirbc", &into->artifact)) {
    throw std::runtime_error("no " + directory + "/program.mlirbc: export the graph again");
  }
  Read(directory + "/program.hlo.pb", &into->hlo);
  try {
    Fill(directory, Json::Parse(text), into);
  } catch (const std::exception& error) {
    throw std::runtime_error("cannot load " + directory + ": " + error.what());
  }
}

}  // namespace sbpjax
