// XLA by the C API of PJRT: any plugin that exports GetPjrtApi runs the program that Python runs.
//
// Weights go to the device once, when the graph is loaded. A call puts its inputs there, executes, and brings the
// outputs back; on a CPU inputs are read in place.

#include <dlfcn.h>
#include <pjrt_c_api.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "engine.h"
#include "exported.h"

namespace sbpjax {
namespace {

const std::pair<Type, PJRT_Buffer_Type> kTypes[] = {
    {Type::kBool, PJRT_Buffer_Type_PRED},    {Type::kInt8, PJRT_Buffer_Type_S8},
    {Type::kUint8, PJRT_Buffer_Type_U8},     {Type::kInt16, PJRT_Buffer_Type_S16},
    {Type::kUint16, PJRT_Buffer_Type_U16},   {Type::kInt32, PJRT_Buffer_Type_S32},
    {Type::kUint32, PJRT_Buffer_Type_U32},   {Type::kInt64, PJRT_Buffer_Type_S64},
    {Type::kUint64, PJRT_Buffer_Type_U64},   {Type::kFloat16, PJRT_Buffer_Type_F16},
    {Type::kBfloat16, PJRT_Buffer_Type_BF16}, {Type::kFloat32, PJRT_Buffer_Type_F32},
    {Type::kFloat64, PJRT_Buffer_Type_F64},
};

PJRT_Buffer_Type ToPjrt(Type type) {
  for (const auto& [own, theirs] : kTypes) {
    if (own == type) return theirs;
  }
  return PJRT_Buffer_Type_INVALID;
}

// CompileOptionsProto {executable_build_options {device_ordinal: -1, num_replicas: 1, num_partitions: 1}}, in which
// XLA leaves the rest at its defaults.
const char kCompileOptions[] = "\x1a\x0f\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x01\x28\x01";

// A plugin and its client. A process has one of each plugin: a second client of an accelerator would find no memory.
class Plugin {
 public:
  explicit Plugin(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(std::string("cannot load the plugin: ") + dlerror());
    const auto found = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
    if (found == nullptr) throw std::runtime_error(path + " has no GetPjrtApi: it is no plugin of PJRT");
    api = found();
    const PJRT_Api_Version& version = api->pjrt_api_version;
    if (version.major_version != PJRT_API_MAJOR || api->struct_size < offsetof(PJRT_Api, PJRT_Buffer_CopyToDevice)) {
      throw std::runtime_error(path + " has version " + std::to_string(version.major_version) + "." +
                               std::to_string(version.minor_version) + " of PJRT's C API, this library speaks " +
                               std::to_string(PJRT_API_MAJOR) + "." + std::to_string(PJRT_API_MINOR));
    }
    PJRT_Plugin_Initialize_Args start{};
    start.struct_size = PJRT_Plugin_Initialize_Args_STRUCT_SIZE;
    Check(api->PJRT_Plugin_Initialize(&start));
    PJRT_Client_Create_Args create{};
    create.struct_size = PJRT_Client_Create_Args_STRUCT_SIZE;
    Check(api->PJRT_Client_Create(&create));
    client = create.client;
  }

  // Never destroyed: threads of a plugin may outlive whoever loaded it.
  static const Plugin& At(const std::string& path) {
    static std::mutex mutex;
    static auto* known = new std::map<std::string, const Plugin*>();
    std::lock_guard<std::mutex> lock(mutex);
    const Plugin*& found = (*known)[path];
    if (found == nullptr) found = new Plugin(path);
    return *found;
  }

  // Throw what a call said, if it said something.
  void Check(PJRT_Error* error) const {
    if (error == nullptr) return;
    PJRT_Error_Message_Args said{};
    said.struct_size = PJRT_Error_Message_Args_STRUCT_SIZE;
    said.error = error;
    api->PJRT_Error_Message(&said);
    const std::string message(said.message, said.message_size);
    PJRT_Error_Destroy_Args destroy{};
    destroy.struct_size = PJRT_Error_Destroy_Args_STRUCT_SIZE;
    destroy.error = error;
    api->PJRT_Error_Destroy(&destroy);
    throw std::runtime_error("XLA: " + message);
  }

  // Wait for an event, if there is one, and drop it.
  void Await(PJRT_Event* event) const {
    if (event == nullptr) return;
    PJRT_Event_Await_Args wait{};
    wait.struct_size = PJRT_Event_Await_Args_STRUCT_SIZE;
    wait.event = event;
    PJRT_Error* error = api->PJRT_Event_Await(&wait);
    PJRT_Event_Destroy_Args destroy{};
    destroy.struct_size = PJRT_Event_Destroy_Args_STRUCT_SIZE;
    destroy.event = event;
    api->PJRT_Event_Destroy(&destroy);
    Check(error);
  }

  PJRT_Device* Device(std::size_t number) const {
    PJRT_Client_AddressableDevices_Args ask{};
    ask.struct_size = PJRT_Client_AddressableDevices_Args_STRUCT_SIZE;
    ask.client = client;
    Check(api->PJRT_Client_AddressableDevices(&ask));
    if (number >= ask.num_addressable_devices) {
      throw std::runtime_error("no device " + std::to_string(number) + ": the plugin has " +
                               std::to_string(ask.num_addressable_devices));
    }
    return ask.addressable_devices[number];
  }

  std::string Platform() const {
    PJRT_Client_PlatformName_Args ask{};
    ask.struct_size = PJRT_Client_PlatformName_Args_STRUCT_SIZE;
    ask.client = client;
    Check(api->PJRT_Client_PlatformName(&ask));
    return std::string(ask.platform_name, ask.platform_name_size);
  }

  const PJRT_Api* api;
  PJRT_Client* client;
};

// A buffer on the device.
class Buffer {
 public:
  Buffer(const Plugin& plugin, PJRT_Buffer* buffer) : plugin_(&plugin), buffer_(buffer) {}
  Buffer(Buffer&& other) noexcept : plugin_(other.plugin_), buffer_(std::exchange(other.buffer_, nullptr)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (buffer_ == nullptr) return;
    PJRT_Buffer_Destroy_Args destroy{};
    destroy.struct_size = PJRT_Buffer_Destroy_Args_STRUCT_SIZE;
    destroy.buffer = buffer_;
    plugin_->api->PJRT_Buffer_Destroy(&destroy);
  }
  PJRT_Buffer* get() const { return buffer_; }

 private:
  const Plugin* plugin_;
  PJRT_Buffer* buffer_;
};

class Pjrt : public Engine {
 public:
  Pjrt(const Plugin& plugin, const std::string& directory, std::size_t device)
      : plugin_(plugin), device_(plugin.Device(device)), is_first_(device == 0), is_cpu_(plugin.Platform() == "cpu") {
    Exported exported;
    ReadExported(directory, &exported);
    CheckPlatform(exported);
    Compile(exported);
    inputs = exported.inputs;
    outputs = exported.outputs;
    CheckOutputs();
    if (exported.platforms.size() > 1) {
      constants_.push_back(Put(&platform_, Type::kInt64, {}, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall));
      arguments_.emplace_back(-1, constants_.back().get());
    }
    for (const Argument& one : exported.arguments) {
      if (one.input < 0) {
        constants_.push_back(
            Put(one.data, one.type, one.shape, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall));
        arguments_.emplace_back(-1, constants_.back().get());
      } else {
        arguments_.emplace_back(one.input, nullptr);
      }
    }
  }

  ~Pjrt() override {
    constants_.clear();
    if (program_ == nullptr) return;
    PJRT_LoadedExecutable_Destroy_Args destroy{};
    destroy.struct_size = PJRT_LoadedExecutable_Destroy_Args_STRUCT_SIZE;
    destroy.executable = program_;
    plugin_.api->PJRT_LoadedExecutable_Destroy(&destroy);
  }

  void Run(const std::vector<const View*>& given, std::vector<Tensor>* outputs) override {
    outputs->resize(this->outputs.size());
    std::vector<void*> into;
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      Tensor& made = (*outputs)[i];
      const Port& port = this->outputs[i];
      made.type = port.type;
      made.shape.assign(port.shape.begin(), port.shape.end());
      made.bytes.resize(BytesOf(port));
      into.push_back(made.bytes.data());
    }
    Call(given, into);
  }

  void RunInto(const std::vector<const View*>& given, const std::vector<View>& outputs) override {
    std::vector<void*> into;
    for (const View& view : outputs) into.push_back(view.data);
    Call(given, into);
  }

 private:
  static std::size_t BytesOf(const Port& port) {
    std::size_t bytes = SizeOf(port.type);
    for (const std::int64_t size : port.shape) bytes *= static_cast<std::size_t>(size);
    return bytes;
  }

  void CheckPlatform(const Exported& exported) {
    const std::string here = plugin_.Platform();
    for (std::size_t i = 0; i < exported.platforms.size(); ++i) {
      const std::string& one = exported.platforms[i];
      if (one == here || (one == "cuda" && here == "gpu")) {
        platform_ = static_cast<std::int64_t>(i);
        return;
      }
    }
    throw std::runtime_error("the graph was not exported for " + here + ": graph.export(..., platforms=[\"" + here + "\"])");
  }

  void Compile(const Exported& exported) {
    try {
      Compile(exported.artifact, "mlir");
    } catch (const std::exception&) {
      // A plugin may know an older StableHLO than the one that wrote this; XLA's own message changes less.
      if (exported.hlo.empty()) throw;
      Compile(exported.hlo, "hlo");
    }
  }

  void Compile(const std::string& code, const std::string& format) {
    PJRT_Program program{};
    program.struct_size = PJRT_Program_STRUCT_SIZE;
    program.code = const_cast<char*>(code.data());
    program.code_size = code.size();
    program.format = format.data();
    program.format_size = format.size();
    PJRT_Client_Compile_Args compile{};
    compile.struct_size = PJRT_Client_Compile_Args_STRUCT_SIZE;
    compile.client = plugin_.client;
    compile.program = &program;
    compile.compile_options = kCompileOptions;
    compile.compile_options_size = sizeof kCompileOptions - 1;
    plugin_.Check(plugin_.api->PJRT_Client_Compile(&compile));
    program_ = compile.executable;
  }

  void CheckOutputs() const {
    PJRT_LoadedExecutable_GetExecutable_Args get{};
    get.struct_size = PJRT_LoadedExecutable_GetExecutable_Args_STRUCT_SIZE;
    get.loaded_executable = program_;
    plugin_.Check(plugin_.api->PJRT_LoadedExecutable_GetExecutable(&get));
    PJRT_Executable_NumOutputs_Args count{};
    count.struct_size = PJRT_Executable_NumOutputs_Args_STRUCT_SIZE;
    count.executable = get.executable;
    PJRT_Error* error = plugin_.api->PJRT_Executable_NumOutputs(&count);
    PJRT_Executable_Destroy_Args destroy{};
    destroy.struct_size = PJRT_Executable_Destroy_Args_STRUCT_SIZE;
    destroy.executable = get.executable;
    plugin_.api->PJRT_Executable_Destroy(&destroy);
    plugin_.Check(error);
    if (count.num_outputs != outputs.size()) {
      throw std::runtime_error("the program gives " + std::to_string(count.num_outputs) + " arrays, the manifest says " +
                               std::to_string(outputs.size()));
    }
  }

  Buffer Put(const void* data, Type type, const std::vector<std::int64_t>& shape, PJRT_HostBufferSemantics how) const {
    PJRT_Client_BufferFromHostBuffer_Args put{};
    put.struct_size = PJRT_Client_BufferFromHostBuffer_Args_STRUCT_SIZE;
    put.client = plugin_.client;
    put.data = data;
    put.type = ToPjrt(type);
    put.dims = shape.data();
    put.num_dims = shape.size();
    put.host_buffer_semantics = how;
    put.device = device_;
    plugin_.Check(plugin_.api->PJRT_Client_BufferFromHostBuffer(&put));
    Buffer made(plugin_, put.buffer);
    if (how == PJRT_HostBufferSemantics_kImmutableZeroCopy) {
      // It is ready when the buffer is destroyed: not to be waited for here.
      PJRT_Event_Destroy_Args destroy{};
      destroy.struct_size = PJRT_Event_Destroy_Args_STRUCT_SIZE;
      destroy.event = put.done_with_host_buffer;
      plugin_.api->PJRT_Event_Destroy(&destroy);
    } else {
      plugin_.Await(put.done_with_host_buffer);
    }
    return made;
  }

  void Call(const std::vector<const View*>& given, const std::vector<void*>& into) const {
    // Buffers of the inputs go after those of the outputs, which have been read by then: whoever called may write to
    // its memory again.
    std::vector<Buffer> held;
    std::vector<PJRT_Buffer*> in;
    held.reserve(given.size());
    in.reserve(arguments_.size());
    for (const auto& [input, constant] : arguments_) {
      if (input >= 0) {
        const View& view = *given[static_cast<std::size_t>(input)];
        held.push_back(Put(view.data, view.type, inputs[static_cast<std::size_t>(input)].shape,
                           PJRT_HostBufferSemantics_kImmutableZeroCopy));
      }
      in.push_back(input < 0 ? constant : held.back().get());
    }
    std::vector<PJRT_Buffer*> out(outputs.size());
    PJRT_Buffer* const* in_list = in.data();
    PJRT_Buffer** out_list = out.data();
    PJRT_ExecuteOptions options{};
    options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
    PJRT_LoadedExecutable_Execute_Args execute{};
    execute.struct_size = PJRT_LoadedExecutable_Execute_Args_STRUCT_SIZE;
    execute.executable = program_;
    execute.options = &options;
    execute.argument_lists = &in_list;
    execute.num_devices = 1;
    execute.num_args = in.size();
    execute.output_lists = &out_list;
    execute.execute_device = is_first_ ? nullptr : device_;  // a program is compiled for the first one
    plugin_.Check(plugin_.api->PJRT_LoadedExecutable_Execute(&execute));
    std::vector<Buffer> made;
    made.reserve(out.size());
    for (PJRT_Buffer* buffer : out) made.emplace_back(plugin_, buffer);
    for (std::size_t i = 0; i < made.size(); ++i) Fetch(made[i].get(), outputs[i], into[i]);
  }

  void Fetch(PJRT_Buffer* buffer, const Port& port, void* into) const {
    std::vector<std::int64_t> minor_to_major(port.shape.size());
    for (std::size_t i = 0; i < minor_to_major.size(); ++i) {
      minor_to_major[i] = static_cast<std::int64_t>(minor_to_major.size() - 1 - i);
    }
    PJRT_Buffer_MemoryLayout layout{};
    layout.struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE;
    layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
    layout.tiled.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE;
    layout.tiled.minor_to_major = minor_to_major.data();
    layout.tiled.minor_to_major_size = minor_to_major.size();
    PJRT_Buffer_ToHostBuffer_Args fetch{};
    fetch.struct_size = PJRT_Buffer_ToHostBuffer_Args_STRUCT_SIZE;
    fetch.src = buffer;
    fetch.host_layout = is_cpu_ ? nullptr : &layout;  // accelerators lay arrays out in tiles
    fetch.dst = into;
    fetch.dst_size = BytesOf(port);
    plugin_.Check(plugin_.api->PJRT_Buffer_ToHostBuffer(&fetch));
    plugin_.Await(fetch.event);
  }

  const Plugin& plugin_;
  PJRT_Device* device_;
  bool is_first_, is_cpu_;
  PJRT_LoadedExecutable* program_ = nullptr;
  std::int64_t platform_ = 0;
  std::vector<Buffer> constants_;
  std::vector<std::pair<int, PJRT_Buffer*>> arguments_;  // the number of an input, or a constant
};

}  // namespace

std::unique_ptr<Engine> LoadPjrt(const std::string& directory, const Options& options) {
  if (options.precision != "float32") {
    throw std::runtime_error("XLA computes in the types of the program: export the model in bfloat16");
  }
  const char* told = std::getenv("SBPJAX_PJRT_PLUGIN");
  const std::string path = !options.plugin.empty() ? options.plugin : told != nullptr ? told : "";
  if (path.empty()) {
    throw std::runtime_error("XLA needs the library of a PJRT plugin: Options::plugin, or SBPJAX_PJRT_PLUGIN");
  }
  const bool is_number = !options.device.empty() && options.device.find_first_not_of("0123456789") == std::string::npos;
  const std::size_t device = is_number ? std::strtoul(options.device.c_str(), nullptr, 10) : 0;
  return std::make_unique<Pjrt>(Plugin::At(path), directory, device);
}

}  // namespace sbpjax
