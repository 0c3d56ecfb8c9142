"""Settings and constants: layouts, memory formats, default types, threads, determinism.

Some settings have no effect with XLA: memory formats are accepted and leave a tensor unchanged, and programs are
deterministic on the CPU and on TPUs in any case.
"""

from __future__ import annotations

import math
import os

import jax
import numpy as np

from sbpjax._core import naming
from sbpjax._core.compiler.eager.evaluator import setting as evaluation
from sbpjax._core.tensor.dispatch.traced import TracedLayout
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.device import default_jax_device
from sbpjax._core.tensor.handle.device import device as Device
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import NotInJaxError, OpError, OpTypeError
from sbpjax.sbp.layout import Layout

e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None


class layout:
    """Storage scheme of a tensor's elements; all tensors here are dense, that is strided.

    Args:
        name: its name.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{naming.package()}.{self.name}"


class _strided(layout):
    """The layout of dense tensors: equal to `Tensor.layout` of any tensor, a `Layout` if global and None if local."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, (Layout, TracedLayout, _strided))

    def __hash__(self) -> int:
        return hash(self.name)


class memory_format(layout):
    """The order of a tensor's dims in memory; accepted everywhere, and left to XLA."""

    __slots__ = ()


strided, sparse_coo, sparse_csr = _strided("strided"), layout("sparse_coo"), layout("sparse_csr")
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")


# ------------------------------------------------------------------------------------------------------------ dtypes


def all_dtypes() -> list[dtypes.dtype]:
    """Return every element type."""
    return list(dtypes.ALL)


def convert_oneflow_dtype_to_numpy_dtype(oneflow_dtype: dtypes.dtype) -> np.dtype:
    """Return the NumPy dtype behind an element type."""
    return dtypes.as_dtype(oneflow_dtype).np


_DEFAULT_TYPES = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16"}
_DEFAULT_TYPES["BFloat16Tensor"] = "bfloat16"


def set_default_tensor_type(tensor_type) -> None:
    """Set the default dtype by a tensor type, ``sbpjax.DoubleTensor`` or ``"torch.DoubleTensor"``.

    Raises:
        TypeError: it is none of the floating-point types.
    """
    name = tensor_type if isinstance(tensor_type, str) else getattr(tensor_type, "__name__", repr(tensor_type))
    found = _DEFAULT_TYPES.get(name.rsplit(".", 1)[-1])
    if found is None:
        rule = "only floating-point types are supported as the default type"
        operation = f"set_default_tensor_type({name})"
        raise OpTypeError(operation, name, rule, "set_default_tensor_type(sbpjax.FloatTensor)")
    dtypes.set_default_dtype(getattr(dtypes, found))


def typename(obj) -> str:
    """Return the name of an object's type; of a tensor as PyTorch writes it."""
    if isinstance(obj, Tensor):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    module = getattr(cls, "__module__", None)
    return cls.__qualname__ if module in (None, "builtins") else f"{module}.{cls.__qualname__}"


# ----------------------------------------------------------------------------------------------------------- devices


def set_default_device(device) -> None:
    """Set the default device of new tensors; None goes back to JAX's own choice."""
    mode.device = None if device is None else Device(device)


def get_default_device():
    """Return the default device of new tensors."""
    return Device(default_jax_device()) if mode.device is None else mode.device


# ---------------------------------------------------------------------------------------------------- threads, math

_settings = {"threads": None, "interop": None, "precision": None, "deterministic": False, "warn_only": False}


def get_num_threads() -> int:
    """Return the number of threads set for the CPU backend."""
    return _settings["threads"] or int(os.environ.get("NPROC", 0) or os.cpu_count() or 1)


def set_num_threads(num: int) -> None:
    """Set the number of threads; XLA reads it when it starts, so it has effect only before the first tensor.

    Raises:
        RuntimeError: the number is not positive.
    """
    if not isinstance(num, int) or num <= 0:
        rule = "set_num_threads expects a positive integer"
        raise OpError(f"set_num_threads({num})", repr(num), rule, "set_num_threads(4)")
    _settings["threads"] = num


def get_num_interop_threads() -> int:
    """Return the number of threads that run ops side by side."""
    return _settings["interop"] or get_num_threads()


def set_num_interop_threads(num: int) -> None:
    """Store a number of threads; XLA schedules ops itself."""
    _settings["interop"] = num


_PRECISION = {"highest": "highest", "high": "high", "medium": "default"}


def set_float32_matmul_precision(precision: str) -> None:
    """Set how float32 products are computed on accelerators: ``"highest"``, ``"high"`` or ``"medium"``."""
    if precision not in _PRECISION:
        rule = f"precision is one of {', '.join(_PRECISION)}"
        raise OpError(f"set_float32_matmul_precision({precision!r})", repr(precision), rule, '"high"')
    jax.config.update("jax_default_matmul_precision", _PRECISION[precision])
    _settings["precision"] = precision


def get_float32_matmul_precision() -> str:
    """Return the value of `set_float32_matmul_precision`; by default, XLA's precision on the default device.

    That is ``"highest"`` on CPU, ``"high"`` (TF32) on GPUs and ``"medium"`` (bfloat16) on TPUs.
    """
    by_platform = {"cpu": "highest", "tpu": "medium"}
    return _settings["precision"] or by_platform.get(jax.default_backend(), "high")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Let every eager op run as a compiled program, also at its first calls, which NumPy computes otherwise on the CPU.

    A program gives the same bits in every run on the CPU and on TPUs in any case. With this setting two calls of an op
    do so within a run too, however often it was called before.

    Args:
        mode: whether all ops are compiled.
        warn_only: stored.
    """
    _settings["deterministic"], _settings["warn_only"] = bool(mode), bool(warn_only)
    evaluation.allow(not mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Return the setting of `use_deterministic_algorithms`."""
    return _settings["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether `use_deterministic_algorithms` was given ``warn_only``."""
    return _settings["warn_only"]


def set_flush_denormal(mode: bool) -> bool:
    """Return False: XLA decides on denormal numbers."""
    return False


# --------------------------------------------------------------------------------------- OneFlow's buffers of tensors


def _no_buffer(name: str):
    def buffer(*args, **options):
        """Raise: tensors of tensors of several shapes do not exist here."""
        rule = "arrays of XLA hold numbers of one dtype; a tensor of tensors of several shapes cannot exist"
        fix = "keep a Python list of tensors, or nn.utils.rnn.pad_sequence(tensors, batch_first=True)"
        raise NotInJaxError(f"{name}(...)", f"{len(args)} arguments", rule, fix)

    buffer.__name__ = buffer.__qualname__ = name
    return buffer


tensor_buffer_to_tensor, tensor_to_tensor_buffer, gen_tensor_buffer = (
    _no_buffer(n) for n in ("tensor_buffer_to_tensor", "tensor_to_tensor_buffer", "gen_tensor_buffer")
)


class _NoDtype:
    """An element type of OneFlow that no array here can have; using it as a dtype is an error."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{naming.package()}.{self.name}"

    @property
    def dtype(self):
        """Raise: see the class."""
        rule = f"{self.name} is no element type of an array; known are {', '.join(d.name for d in dtypes.ALL)}"
        raise NotInJaxError(f"dtype=sbpjax.{self.name}", self.name, rule, "a list of tensors")


tensor_buffer, record = _NoDtype("tensor_buffer"), _NoDtype("record")
