// The time of a call by this library against plain calls of PJRT's C API on the same program, in turns in one process.
//
//   latency_xla DIRECTORY CALLS PLUGIN
//
// Both run a program of one float input, on ones, with the weights on the device.

#include <dlfcn.h>
#include <pjrt_c_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../src/exported.h"
#include "sbpjax/graph.h"

namespace {

const PJRT_Api* api;

void Check(PJRT_Error* error) {
  if (error == nullptr) return;
  PJRT_Error_Message_Args said{PJRT_Error_Message_Args_STRUCT_SIZE, nullptr, error, nullptr, 0};
  api->PJRT_Error_Message(&said);
  std::fprintf(stderr, "%.*s\n", static_cast<int>(said.message_size), said.message);
  std::exit(1);
}

void Await(PJRT_Event* event) {
  PJRT_Event_Await_Args wait{PJRT_Event_Await_Args_STRUCT_SIZE, nullptr, event};
  Check(api->PJRT_Event_Await(&wait));
  PJRT_Event_Destroy_Args drop{PJRT_Event_Destroy_Args_STRUCT_SIZE, nullptr, event};
  Check(api->PJRT_Event_Destroy(&drop));
}

void Drop(PJRT_Buffer* buffer) {
  PJRT_Buffer_Destroy_Args drop{PJRT_Buffer_Destroy_Args_STRUCT_SIZE, nullptr, buffer};
  Check(api->PJRT_Buffer_Destroy(&drop));
}

PJRT_Buffer* Put(PJRT_Client* client, PJRT_Device* device, const void* data, const std::vector<std::int64_t>& shape) {
  PJRT_Client_BufferFromHostBuffer_Args put{};
  put.struct_size = PJRT_Client_BufferFromHostBuffer_Args_STRUCT_SIZE;
  put.client = client;
  put.data = data;
  put.type = PJRT_Buffer_Type_F32;
  put.dims = shape.data();
  put.num_dims = shape.size();
  put.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
  put.device = device;
  Check(api->PJRT_Client_BufferFromHostBuffer(&put));
  PJRT_Event_Destroy_Args drop{PJRT_Event_Destroy_Args_STRUCT_SIZE, nullptr, put.done_with_host_buffer};
  Check(api->PJRT_Event_Destroy(&drop));
  return put.buffer;
}

template <typename F> double Microseconds(F&& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

std::size_t Count(const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "latency_xla DIRECTORY CALLS PLUGIN\n"), 1;
  const int calls = std::atoi(argv[2]);
  sbpjax::Options options;
  options.engine = "xla";
  options.plugin = argv[3];
  sbpjax::Graph graph;
  const sbpjax::Status status = sbpjax::Graph::Load(argv[1], options, &graph);
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.message().c_str()), 1;

  sbpjax::Exported exported;
  sbpjax::ReadExported(argv[1], &exported);
  void* library = dlopen(argv[3], RTLD_NOW);
  api = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"))();
  PJRT_Client_Create_Args create{};
  create.struct_size = PJRT_Client_Create_Args_STRUCT_SIZE;
  Check(api->PJRT_Client_Create(&create));
  PJRT_Client_AddressableDevices_Args devices{};
  devices.struct_size = PJRT_Client_AddressableDevices_Args_STRUCT_SIZE;
  devices.client = create.client;
  Check(api->PJRT_Client_AddressableDevices(&devices));
  PJRT_Device* device = devices.addressable_devices[0];
  PJRT_Program program{};
  program.struct_size = PJRT_Program_STRUCT_SIZE;
  program.code = exported.artifact.data();
  program.code_size = exported.artifact.size();
  program.format = "mlir";
  program.format_size = 4;
  PJRT_Client_Compile_Args compile{};
  compile.struct_size = PJRT_Client_Compile_Args_STRUCT_SIZE;
  compile.client = create.client;
  compile.program = &program;
  compile.compile_options = "\x1a\x04\x20\x01\x28\x01";  // one replica of one partition
  compile.compile_options_size = 6;
  Check(api->PJRT_Client_Compile(&compile));

  std::vector<float> x(Count(exported.inputs[0].shape), 1.0f), y(Count(exported.outputs[0].shape));
  std::vector<PJRT_Buffer*> arguments;
  std::size_t place = 0;
  for (const sbpjax::Argument& one : exported.arguments) {
    if (one.input >= 0) place = arguments.size();
    arguments.push_back(one.input >= 0 ? nullptr : Put(create.client, device, one.data, one.shape));
  }
  const auto theirs = [&] {
    arguments[place] = Put(create.client, device, x.data(), exported.inputs[0].shape);
    PJRT_Buffer* output = nullptr;
    PJRT_Buffer* const* in = arguments.data();
    PJRT_Buffer** out = &output;
    PJRT_ExecuteOptions how{};
    how.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
    PJRT_LoadedExecutable_Execute_Args execute{};
    execute.struct_size = PJRT_LoadedExecutable_Execute_Args_STRUCT_SIZE;
    execute.executable = compile.executable;
    execute.options = &how;
    execute.argument_lists = &in;
    execute.num_devices = 1;
    execute.num_args = arguments.size();
    execute.output_lists = &out;
    Check(api->PJRT_LoadedExecutable_Execute(&execute));
    PJRT_Buffer_ToHostBuffer_Args fetch{};
    fetch.struct_size = PJRT_Buffer_ToHostBuffer_Args_STRUCT_SIZE;
    fetch.src = output;
    fetch.dst = y.data();
    fetch.dst_size = y.size() * sizeof(float);
    Check(api->PJRT_Buffer_ToHostBuffer(&fetch));
    Await(fetch.event);
    Drop(output);
    Drop(arguments[place]);
  };
  std::vector<std::size_t> shape(exported.inputs[0].shape.begin(), exported.inputs[0].shape.end());
  const std::map<std::string, sbpjax::View> inputs{{exported.inputs[0].name, sbpjax::View::Of(x.data(), shape)}};
  std::vector<sbpjax::Tensor> outputs;
  const auto ours = [&] { graph.Run(inputs, &outputs); };
  for (int i = 0; i < 20; ++i) ours(), theirs();
  std::vector<double> a, b;
  for (int i = 0; i < calls; ++i) {
    a.push_back(Microseconds(ours));
    b.push_back(Microseconds(theirs));
  }
  std::printf("%.2f %.2f %.4f\n", Median(a), Median(b), Median(a) / Median(b));
  return 0;
}
