"""Names of PyTorch and OneFlow that have no effect here, by module, as a table.

    torch.onnx.is_in_onnx_export()      # False
    torch.compiler.mark_dynamic(x, 0)   # does nothing
    torch.fx.Tracer()                   # NotInJaxError, with the replacement

`ANSWERS` has the functions, `VALUES` names with other values, `ABSENT` names whose use raises an error. `SPACES` are
modules of absent names alone, besides those of the other tables. A module ``x`` of the tables can be imported from here
as ``no_effect.x``; those of the same name in PyTorch and OneFlow are one.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import jax

from sbpjax._core.compat.cuda import devices as cuda
from sbpjax._core.functions import printing
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import Generator
from sbpjax._core.tensor.handle.device import device
from sbpjax._core.tensor.handle.dtype import dtype
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.size import Size
from sbpjax.errors import OutOfMemoryError
from sbpjax.nn import hooks, init
from sbpjax.nn.module import Module

from .torch_names.absent import make_absent_class, make_absent_getattr
from .torch_names.subclass import DisableTorchFunctionSubclass, call_plain
from .torch_names.types import is_of_type


def do_nothing(*args: Any, **options: Any) -> None:
    """Do nothing."""


def return_false(*args: Any, **options: Any) -> bool:
    """Return False."""
    return False


def return_true(*args: Any, **options: Any) -> bool:
    """Return True."""
    return True


def return_zero(*args: Any, **options: Any) -> int:
    """Return 0."""
    return 0


def return_one(*args: Any, **options: Any) -> int:
    """Return 1."""
    return 1


def return_argument(fn: Any = None, *args: Any, **options: Any) -> Any:
    """Return the function, class or module itself; without one, a decorator that does so."""
    return decorator() if fn is None or isinstance(fn, bool) else fn


def decorator(*args: Any, **options: Any) -> Callable:
    """Return a decorator that returns the function itself."""
    return lambda function: function


def tracing() -> bool:
    """Return whether a program is being traced now."""
    return mode.capture is not None


def synchronize(*args: Any) -> None:
    """Wait until everything that was launched has run."""
    jax.effects_barrier()


def call(public_api: Callable, relevant_args: Any, *args: Any, **options: Any) -> Any:
    """Call the function: no class of tensors overrides functions here."""
    return public_api(*args, **options)


class _Names(type):
    """The type of a class whose attributes are their own names."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return name


class FlopCounterMode(contextlib.nullcontext):
    """A block whose flops PyTorch counts op by op: XLA counts those of a compiled program, this counts none."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(self)

    def get_total_flops(self) -> int:
        """Return 0."""
        return 0

    def get_flop_counts(self) -> dict:
        """Return nothing."""
        return {}


def parse_to(*args: Any, **kwargs: Any) -> tuple:
    """Return device, dtype, non_blocking and memory_format of the arguments of ``module.to``."""
    found = {"device": None, "dtype": None, "non_blocking": False, "memory_format": None, **kwargs}
    for arg in args:
        if isinstance(arg, Tensor):
            found.update(device=arg.device, dtype=arg.dtype)
        elif isinstance(arg, dtype):
            found["dtype"] = arg
        elif isinstance(arg, bool):
            found["non_blocking"] = arg
        elif arg is not None:
            found["device"] = arg
    if found["device"] is not None:
        found["device"] = device(found["device"])
    return tuple(found[name] for name in ("device", "dtype", "non_blocking", "memory_format"))


class DispatchKey(metaclass=_Names):
    """The keys of PyTorch's dispatcher: ``DispatchKey.CPU`` is ``"CPU"``."""


class DispatchKeySet(frozenset):
    """A set of keys, of a key or of others: ``DispatchKeySet(a) | DispatchKeySet(b)``."""

    def __new__(cls, keys: Any = ()) -> Any:
        return super().__new__(cls, [keys] if isinstance(keys, str) else keys)

    def has(self, key: str) -> bool:
        """Return whether a key is in the set."""
        return key in self


class ScriptModule(Module):
    """A base for modules of one's own; `script` and `trace` return their argument, which is none of these."""


def make_empty_class(name: str, base: type = object) -> type:
    """Return a class that nothing is of."""
    return type(name, (base,), {"__doc__": "Nothing is of this class."})


_FX = (
    "torch.fx captures a program in a representation of its own; here programs are jaxprs",
    "graph = nn.Graph(...); graph.plan()  # or jax.make_jaxpr of a function from nn.to_pure(module)",
)
_GraphModule = make_absent_class("torch.fx.GraphModule", *_FX)

ANSWERS: dict[str, dict[Callable, str]] = {
    "C": {
        do_nothing: "_get_tracing_state _log_api_usage_once",
        tracing: "_is_tracing _are_functorch_transforms_active",
        return_false: "_is_torch_function_mode_enabled",
        contextlib.nullcontext: "_ExcludeDispatchKeyGuard",
        lambda: device("cuda" if cuda.is_available() else "cpu"): "_get_accelerator",
    },
    "compiler": {
        tracing: "is_compiling is_dynamo_compiling is_exporting",
        return_argument: "disable allow_in_graph assume_constant_result disallow_in_graph forbid_in_graph",
        do_nothing: "graph_break reset mark_dynamic mark_static mark_static_address maybe_mark_dynamic "
        "cudagraph_mark_step_begin",
    },
    "cpu": {
        return_true: "is_available is_initialized",
        return_one: "device_count",
        do_nothing: "set_device",
        synchronize: "synchronize",
        contextlib.nullcontext: "current_stream stream",
    },
    "cuda": {return_false: "is_current_stream_capturing", lambda call, **_: call(): "_lazy_call"},
    "dynamo": {return_false: "is_compile_supported"},
    "functional": {call: "handle_torch_function"},
    "fx": {return_argument: "wrap", bool: "guard_or_false guard_or_true statically_known_true"},
    "jit": {
        return_argument: "script trace ignore unused export interface script_method script_if_tracing "
        "_script_if_tracing _overload _overload_method _copy_to_script_wrapper",
        return_false: "is_scripting is_tracing",
    },
    "no_device": {
        return_false: "is_available is_initialized is_bf16_supported is_current_stream_capturing",
        return_zero: "device_count memory_allocated max_memory_allocated memory_reserved max_memory_reserved "
        "current_allocated_memory driver_allocated_memory recommended_max_memory",
        do_nothing: "empty_cache synchronize reset_peak_memory_stats reset_max_memory_allocated init",
    },
    "onnx": {return_false: "is_in_onnx_export", do_nothing: "register_custom_op_symbolic"},
    "overrides": {
        return_false: "has_torch_function has_torch_function_unary has_torch_function_variadic",
        call: "handle_torch_function",
    },
    "python_dispatch": {return_false: "is_traceable_wrapper_subclass"},
    "sysconfig": {
        cuda.is_available: "with_cuda",
        return_true: "with_mlir with_xla has_rpc_backend_grpc has_rpc_backend_local",
        return_false: "with_rdma",
    },
    "torch": {do_nothing: "clear_autocast_cache"},
}

VALUES: dict[str, dict[str, Any]] = {
    "C": {
        **{"TensorBase": Tensor, "_TensorBase": Tensor, "Generator": Generator, "device": device, "dtype": dtype},
        **{"Size": Size, "DisableTorchFunction": DisableTorchFunctionSubclass},
        **{"DisableTorchFunctionSubclass": DisableTorchFunctionSubclass, "_disabled_torch_function_impl": call_plain},
        **{"DispatchKey": DispatchKey, "DispatchKeySet": DispatchKeySet, "_TensorMeta": type(Tensor)},
        **dict.fromkeys(("_has_xpu", "_has_mps", "_has_cuda", "_has_mkldnn"), False),
    },
    "compiler": {
        "config": SimpleNamespace(
            suppress_errors=False, cache_size_limit=8, recompile_limit=8, verbose=False, disable=False
        ),
        "utils": SimpleNamespace(is_compiling=tracing),
        "OptimizedModule": make_empty_class("OptimizedModule"),
        "TransformGetItemToIndex": contextlib.nullcontext,
    },
    "C_nn": {"_parse_to": parse_to},
    "config": {"show": lambda: "sbpjax on JAX and XLA\n", "parallel_info": lambda: f"{os.cpu_count()} cores\n"},
    "cpu": {"current_device": lambda: "cpu"},
    "cpp_extension": {"CUDA_HOME": None, "ROCM_HOME": None},
    "distributed_rpc": {"_require_initialized": return_argument, "is_available": return_false},
    "flop_counter": {"FlopCounterMode": FlopCounterMode},
    "module_hooks": {
        "_global_forward_hooks": hooks.GLOBAL_FORWARD,
        "_global_forward_pre_hooks": hooks.GLOBAL_FORWARD_PRE,
        "_global_backward_hooks": hooks.GLOBAL_BACKWARD,
        "_global_backward_pre_hooks": hooks.GLOBAL_BACKWARD_PRE,
        "_global_parameter_registration_hooks": hooks.GLOBAL_PARAMETER,
        "_global_buffer_registration_hooks": hooks.GLOBAL_BUFFER,
        "_global_module_registration_hooks": hooks.GLOBAL_MODULE,
    },
    "collate": {"np_str_obj_array_pattern": re.compile("[SaUO]")},
    "tensor_str": {"PRINT_OPTS": printing.options, "_tensor_str": lambda self, indent: printing.text_of(self)},
    "cuda": {"OutOfMemoryError": OutOfMemoryError, "_initialized": True},
    "flex_attention": {"_DEFAULT_SPARSE_BLOCK_SIZE": 128},
    "fx": {
        "Node": make_empty_class("Node"),
        "Proxy": make_empty_class("Proxy"),
        "GraphModule": _GraphModule,
        "symbolic_trace": _GraphModule,
    },
    "init": {"_calculate_fan_in_and_fan_out": init.fans},
    "jit": {
        "Final": Final,
        "ScriptModule": ScriptModule,
        "RecursiveScriptModule": make_empty_class("RecursiveScriptModule", ScriptModule),
        "ScriptFunction": make_empty_class("ScriptFunction"),
        "TracerWarning": make_empty_class("TracerWarning", Warning),  # ultralytics filters it at import
        "annotate": lambda the_type, the_value: the_value,
        **dict.fromkeys(("isinstance", "_isinstance"), is_of_type),
        **dict.fromkeys(("BroadcastingList1", "BroadcastingList2", "BroadcastingList3"), list),
    },
    "sysconfig": {"cmake_build_type": lambda: "Release"},
    "torch": {"SymInt": int, "SymFloat": float, "SymBool": bool, "ScriptModule": ScriptModule},
}

_QUANTIZED = "quantised layers are kernels of PyTorch's own"
_PLAIN_LAYERS = "sbpjax.nn.QatConv2d, sbpjax.nn.FakeQuantization"
_DENSE = ("tensors are dense here", "a dense tensor, or index_add and gather")
_ONE_SHAPE = ("tensors have one shape here", "nn.utils.rnn.pad_sequence(rows, batch_first=True)")
_RECORDED = ("CUDA graphs record kernel launches; here a whole program is compiled", "nn.Graph, or sbpjax.compile")

ABSENT: dict[str, list[tuple[str, str, str]]] = {  # names, the reason, and the replacement
    "cuda": [
        ("CUDAGraph graph", *_RECORDED),
        ("StreamContext", "streams are a GPU runtime of its own", "call the function"),
    ],
    "functional": [("ScalingType", "products of scaled numbers are kernels of PyTorch's own", "x @ w, in bfloat16")],
    "jit": [
        ("load", "TorchScript is a runtime of its own", "sbpjax.load_graph(path)  # of a graph.export(path)"),
        ("save", "TorchScript is a runtime of its own", "graph.export(path)  # of an nn.Graph"),
    ],
    "overrides": [
        (
            "TorchFunctionMode BaseTorchFunctionMode",
            "no mode stands between a call and its function here",
            "call a function of your own; hooks of modules",
        )
    ],
    "flex_attention": [
        (
            "BlockMask AuxRequest create_block_mask create_mask flex_attention or_masks and_masks",
            "flex attention generates kernels for PyTorch",
            "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
        )
    ],
    "torch": [
        (
            "sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor "
            "sparse_compressed_tensor hsmm sspaddmm sparse_csc sparse_bsr sparse_bsc smm "
            "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo",
            *_DENSE,
        ),
        ("jagged _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned", *_ONE_SHAPE),
        (
            "TypedStorage ByteStorage CharStorage ShortStorage IntStorage LongStorage HalfStorage "
            "BFloat16Storage FloatStorage DoubleStorage BoolStorage Storage",
            "memory belongs to JAX",
            "x.numpy()",
        ),
        (
            "uint1 uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 int3 int4 int5 int6 int7 quint8 qint8 qint32 quint4x2 "
            "quint2x4 complex32 chalf bits8 bits16 bits1x8 bits2x4 bits4x2",
            "JAX has no such dtype",
            "sbpjax.uint8, sbpjax.int8",
        ),
        (
            "per_tensor_affine per_channel_affine per_tensor_symmetric per_channel_symmetric "
            "per_channel_affine_float_qparams qscheme",
            _QUANTIZED,
            "sbpjax.nn.FakeQuantization",
        ),
        (
            "PyTorchFileReader PyTorchFileWriter classes TensorType",
            "it is of PyTorch's own core",
            "the function itself",
        ),
    ],
}

_LAUNCHER = "python -m sbpjax.distributed.launch script.py, and a global module"
SPACES: dict[str, tuple[str, str, str]] = {  # the module in PyTorch, the reason, and the replacement
    "cpp_extension": (
        "utils.cpp_extension",
        "extensions are compiled against PyTorch's own runtime",
        "torch.library.custom_op(name) of a Python function of tensors",
    ),
    "ao": ("ao", _QUANTIZED, _PLAIN_LAYERS),
    "distributions": (
        "distributions",
        "only the distributions of neural networks are here",
        "NumPyro's, through sbpjax.wrap_jax: docs/how_to/flax_and_jax.md",
    ),
    "distributed_optim": ("distributed.optim", "states of optimizers are split by layouts here", _LAUNCHER),
    "distributed_elastic": ("distributed.elastic", "processes are started by a launcher here", _LAUNCHER),
    "sharded": (
        "distributed",
        "sharded tensors are global tensors here: a placement and an sbp",
        "x.to_global(placement, sbp)",
    ),
    "distributed_rpc": (
        "distributed.rpc",
        "processes run the same program here",
        "sbpjax.distributed.send, recv",
    ),
    "export": (
        "export",
        "exported programs hold PyTorch's own graphs",
        "graph.export(path)  # of an nn.Graph, as StableHLO",
    ),
    "testing_internal": ("testing._internal", "it tests PyTorch's own dispatcher", "torch.testing.assert_close"),
    "python_dispatch": ("utils._python_dispatch", "no dispatcher calls a mode here", "a function of your own; hooks"),
    "dynamo": ("_dynamo", "programs are traced by JAX", "sbpjax.compile(fn), or nn.Graph"),
    "fx": ("fx", *_FX),
    "nested": ("nested", *_ONE_SHAPE),
    "no_device": ("xpu", "there is no device of this kind", "if torch.xpu.is_available(): ..."),
    "onnx": (
        "onnx",
        "ONNX files are written from PyTorch's own graphs",
        "graph.export(path)  # of an nn.Graph, as StableHLO",
    ),
    "prune": (
        "nn.utils.prune",
        "a pruned parameter is a product with a mask",
        "parametrize.register_parametrization(module, 'weight', Mask())",
    ),
    "sparse": ("sparse", *_DENSE),
    "subclasses": ("_subclasses", "JAX traces programs", "jax.eval_shape, or device='meta'"),
    "flop_counter": (
        "utils.flop_counter",
        "it counts the ops of PyTorch's dispatcher",
        "jax.jit(fn).lower(*args).cost_analysis()['flops']",
    ),
}

_PLACES = {"flex_attention": "torch.nn.attention.flex_attention", "functional": "torch.nn.functional", "torch": "torch"}


def _make_module(name: str) -> ModuleType:
    module = ModuleType(f"{__name__}.{name}", "Names without effect here.")
    fields = vars(module)
    for answer, names in ANSWERS.get(name, {}).items():
        fields.update(dict.fromkeys(names.split(), answer))
    fields.update(VALUES.get(name, {}))
    for names, why, instead in ABSENT.get(name, ()):
        place = _PLACES.get(name, f"torch.{name}")
        fields.update({last: make_absent_class(f"{place}.{last}", why, instead) for last in names.split()})
    if name in SPACES:
        place, why, instead = SPACES[name]
        fields["__getattr__"] = make_absent_getattr(f"torch.{place}", why, instead)
    return module


for _name in {**ANSWERS, **VALUES, **ABSENT, **SPACES}:
    sys.modules[f"{__name__}.{_name}"] = _make_module(_name)
