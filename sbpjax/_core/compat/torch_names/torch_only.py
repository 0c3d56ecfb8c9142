"""Names of `torch` itself without counterpart in sbpjax, or with more options."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from sbpjax._core.compat.cuda.devices import is_available as _has_gpu
from sbpjax._core.compat.cuda.streams import Event as Event
from sbpjax._core.compat.cuda.streams import Stream as Stream
from sbpjax._core.functions import settings as _settings
from sbpjax._core.functions.settings import contiguous_format as legacy_contiguous_format  # noqa: F401
from sbpjax._core.tensor.amp.autocast import get_autocast_dtype as _get_autocast_dtype
from sbpjax._core.tensor.amp.autocast import is_autocast_cache_enabled as is_autocast_cache_enabled
from sbpjax._core.tensor.amp.autocast import is_autocast_enabled as _is_autocast_enabled
from sbpjax._core.tensor.creation.from_data import tensor as _tensor
from sbpjax._core.tensor.handle.device import device as _device
from sbpjax._core.tensor.handle.mode import mode as _mode
from sbpjax._core.tracing.compiled import compile_function as _compile
from sbpjax.errors import OutOfMemoryError as OutOfMemoryError

from .foreach import find_foreach as _find_foreach
from .internal import _chunk_cat as _chunk_cat
from .internal import _native_batch_norm_legit as _native_batch_norm_legit
from .internal import _safe_softmax as _safe_softmax
from .internal import _segment_reduce as _segment_reduce
from .internal import _softmax_backward_data as _softmax_backward_data
from .internal import _unsafe_masked_index as _unsafe_masked_index
from .internal import _unsafe_masked_index_put_accumulate as _unsafe_masked_index_put_accumulate
from .internal import segment_reduce as segment_reduce
from .library import ops as ops
from .older.futures import Future as Future
from .serialization import load as load
from .serialization import save as save
from .sparse import dsmm as dsmm
from .sparse import sparse_coo_tensor as sparse_coo_tensor
from .sparse import sparse_csr_tensor as sparse_csr_tensor
from .sparse import spmm as spmm
from .storage import UntypedStorage as UntypedStorage
from .subclass import call_plain as _disabled_torch_function_impl  # noqa: F401
from .version import TorchVersion as TorchVersion


def _assert(condition, message: str) -> None:
    """Raise AssertionError unless a condition holds."""
    if not condition:
        raise AssertionError(message)


def _check(cond, message=None) -> None:
    """Raise RuntimeError unless a condition holds."""
    if not cond:
        raise RuntimeError(message() if callable(message) else message or "Expected cond to be True")


def _check_with(error_type, cond, message=None) -> None:
    """Raise an error of a type unless a condition holds."""
    if not cond:
        raise error_type(message() if callable(message) else message or "Expected cond to be True")


def _check_tensor_all_with(error_type, cond, message=None) -> None:
    """Raise an error of a type unless all elements of a tensor of bools are True."""
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond, message=None) -> None:
    """Raise RuntimeError unless all elements of a tensor of bools are True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert_async(input, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError if a number in a tensor is zero; within a traced program nothing is checked."""
    if _mode.capture is None and not bool(input):
        raise RuntimeError(assert_msg)


def _shape_as_tensor(self):
    """Return the sizes as a vector of int64."""
    return _tensor(self.shape, device=self.device)


def get_autocast_gpu_dtype():
    """Return the dtype that autocasting goes to on GPUs."""
    return _get_autocast_dtype("cuda")


def get_autocast_cpu_dtype():
    """Return the dtype that autocasting goes to on the CPU."""
    return _get_autocast_dtype("cpu")


def is_autocast_cpu_enabled() -> bool:
    """Return whether autocasting is on for the CPU."""
    return _is_autocast_enabled("cpu")


def get_deterministic_debug_mode() -> int:
    """Return 2 where only deterministic algorithms are allowed, 1 where others warn, 0 otherwise."""
    if not _settings.are_deterministic_algorithms_enabled():
        return 0
    return 1 if _settings.is_deterministic_algorithms_warn_only_enabled() else 2


def get_device_module(device=None):
    """Return the module of a kind of device: `torch.cuda`, `torch.cpu` and their like."""
    name = "torch" if "torch" in sys.modules else "sbpjax"
    kind = device or ("cuda" if _has_gpu() else "cpu")
    return importlib.import_module(f"{name}.{_device(kind).type}")


def compile(
    model=None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict | None = None,
    disable: bool = False,
) -> Any:
    """Return a function or module that runs as one compiled program, with gradients; see `_core.tracing.compiled`.

    Args:
        model: a function or module; None makes a decorator.
        fullgraph: accepted: a trace is always whole.
        dynamic: accepted: a new shape compiles anew.
        backend: accepted: XLA compiles.
        mode: accepted.
        options: accepted.
        disable: return the function as it is.
    """
    if model is None:
        return lambda function: compile(function, disable=disable)
    if disable:
        return model
    return _compile(model)


def __getattr__(name: str) -> Any:
    found = _find_foreach(name) if name.startswith("_foreach_") else None
    if found is None:
        raise AttributeError(name)
    return found
