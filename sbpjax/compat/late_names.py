"""Names of `sbpjax` that are loaded when they are first asked for.

Importing sbpjax is measured, and few programs take a Fourier transform. So ``sbpjax.fft``, ``sbpjax.svd`` and their
like are no imports of the package's face: the table here says which module has a name, `attribute` fetches it then,
and the package keeps it. `names` adds them to ``dir(sbpjax)``. The face imports what runs an eager op; layers,
optimizers and graphs are late names as well (`tests/api/test_first_import.py`).

Tested in `tests/api`, which asks for every public name.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from sbpjax.functions import table
from sbpjax.tensor import Tensor

from . import rooms as _rooms  # noqa: F401  # from here on the modules of its table can be imported

ROOMS = (
    "_C",
    "_oneflow_internal",
    "amp",
    "asyncs",
    "auto",
    "autograd",
    "backends",
    "boxing",
    "checkpoint",
    "comm",
    "cuda",
    "distributed",
    "distributions",
    "fft",
    "func",
    "graph",
    "hub",
    "linalg",
    "mock_oneflow",
    "mock_torch",
    "nn",
    "one_embedding",
    "optim",
    "profiler",
    "special",
    "unittest",
    "utils",
)
INSIDE = ("data", "inspect", "tracing")  # rooms whose public names stand elsewhere; the stubs leave them out
HOMES = {  # ``name:own`` where a function may not bear its public name
    "sbpjax.tracing.cond": "cond",
    "sbpjax.tracing.vmap": "vmap",
    "sbpjax.tracing.wrap_jax": "wrap_jax",
    "sbpjax.distributed.threads": "simulate",
    "sbpjax.functions.settings": """are_deterministic_algorithms_enabled channels_last channels_last_3d
    contiguous_format
 convert_oneflow_dtype_to_numpy_dtype dtypes:all_dtypes e gen_tensor_buffer
 get_float32_matmul_precision get_default_device get_num_interop_threads get_num_threads inf
 is_deterministic_algorithms_warn_only_enabled layout memory_format nan newaxis pi preserve_format
 record set_default_device set_default_tensor_type set_float32_matmul_precision set_flush_denormal
 set_num_interop_threads set_num_threads sparse_coo sparse_csr strided tensor_buffer
 tensor_buffer_to_tensor tensor_to_tensor_buffer typename use_deterministic_algorithms""",
    "sbpjax.functions.oneflow_c": "broadcast_like",
    "sbpjax.amp": "GradScaler",
    "sbpjax.data.save_load": "load save",
    "sbpjax.graph": "compile explain load_graph visualize",
    "sbpjax.nn.functional": """adaptive_max_pool1d:adaptive_max_pool1d_with_indices alpha_dropout batch_norm ctc_loss
 dropout embedding_bag feature_alpha_dropout instance_norm kl_div layer_norm rms_norm""",
}
METHODS = {  # those that are methods of `Tensor` too
    "sbpjax.nn.init": "kaiming_normal_ kaiming_uniform_ orthogonal_ xavier_normal_ xavier_uniform_",
}
_HOME = {}
for _module, _several in HOMES.items():
    for _name in _several.split():
        _public, _, _own = _name.partition(":")
        _HOME[_public] = (_module, _own or _public)


def attribute(name: str) -> Any:
    """Return a name of the package that was not loaded yet.

    Raises:
        AttributeError: the package has no such name.
    """
    if table.has("", name):
        found = table.found("", name)
    elif name == "fx":
        found = importlib.import_module("sbpjax.compat.torch_names.fx")
    elif name in (*ROOMS, *INSIDE):
        found = importlib.import_module(f"sbpjax.{name}")
    elif name in _HOME:
        from sbpjax.tensor.wrong_call import told_once

        module, own = _HOME[name]
        found = told_once(getattr(importlib.import_module(module), own))
    else:
        from sbpjax.world.absent import absent

        raise absent("", name)
    setattr(sys.modules["sbpjax"], name, found)
    return found


def names() -> list[str]:
    """Return what ``dir(sbpjax)`` shows: what is loaded and what can be."""
    return sorted({*vars(sys.modules["sbpjax"]), *table.names(""), *ROOMS, *INSIDE, *_HOME})


def _late(module: str, name: str):
    def method(self, *args, **options):
        from sbpjax.tensor.wrong_call import told_once

        found = told_once(getattr(importlib.import_module(module), name))
        setattr(Tensor, name, found)
        return found(self, *args, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Return `sbpjax.{name}` of this tensor."
    return method


for _module, _several in METHODS.items():
    for _name in _several.split():
        setattr(Tensor, _name, _late(_module, _name))
