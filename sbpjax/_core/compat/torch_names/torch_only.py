"""Names of `torch` itself without counterpart in sbpjax."""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions.settings import contiguous_format
from sbpjax._core.tensor.amp.autocast import get_autocast_dtype as _get_autocast_dtype
from sbpjax._core.tensor.amp.autocast import is_autocast_cache_enabled as is_autocast_cache_enabled
from sbpjax._core.tensor.amp.autocast import is_autocast_enabled as _is_autocast_enabled
from sbpjax.errors import OutOfMemoryError as OutOfMemoryError

from .absent import absent
from .foreach import TABLE as _FOREACH
from .internal import _chunk_cat as _chunk_cat
from .internal import _native_batch_norm_legit as _native_batch_norm_legit
from .internal import _safe_softmax as _safe_softmax
from .internal import _segment_reduce as _segment_reduce
from .internal import _softmax_backward_data as _softmax_backward_data
from .internal import _unsafe_masked_index as _unsafe_masked_index
from .internal import _unsafe_masked_index_put_accumulate as _unsafe_masked_index_put_accumulate
from .internal import segment_reduce as segment_reduce
from .jit import ScriptModule as ScriptModule
from .storage import UntypedStorage as UntypedStorage
from .version import TorchVersion as TorchVersion

SymInt, SymFloat, SymBool = int, float, bool


def _assert(condition, message: str) -> None:
    """Raise AssertionError unless a condition holds."""
    if not condition:
        raise AssertionError(message)


def _check(cond, message=None) -> None:
    """Raise RuntimeError unless a condition holds."""
    if not cond:
        raise RuntimeError(message() if callable(message) else message or "Expected cond to be True")


legacy_contiguous_format = contiguous_format


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
    from sbpjax._core.tensor.handle.mode import mode

    if mode.capture is None and not bool(input):
        raise RuntimeError(assert_msg)


def _shape_as_tensor(self):
    """Return the sizes as a vector of int64."""
    from sbpjax._core.tensor.creation.from_data import tensor

    return tensor(self.shape, device=self.device)


def get_autocast_gpu_dtype():
    """Return the dtype that autocasting goes to on GPUs."""
    return _get_autocast_dtype("cuda")


def get_autocast_cpu_dtype():
    """Return the dtype that autocasting goes to on the CPU."""
    return _get_autocast_dtype("cpu")


def is_autocast_cpu_enabled() -> bool:
    """Return whether autocasting is on for the CPU."""
    return _is_autocast_enabled("cpu")


def clear_autocast_cache() -> None:
    """Do nothing: casts of weights are kept until the outermost block ends."""


def get_deterministic_debug_mode() -> int:
    """Return 2 where only deterministic algorithms are allowed, 1 where others warn, 0 otherwise."""
    from sbpjax._core.functions import settings

    if not settings.are_deterministic_algorithms_enabled():
        return 0
    return 1 if settings.is_deterministic_algorithms_warn_only_enabled() else 2


def get_device_module(device=None):
    """Return the module of a kind of device: `torch.cuda`, `torch.cpu` and their like."""
    import importlib
    import sys

    from sbpjax._core.compat.cuda.devices import is_available
    from sbpjax._core.tensor.handle import device as devices

    name = "torch" if "torch" in sys.modules else "sbpjax"
    kind = device or ("cuda" if is_available() else "cpu")
    return importlib.import_module(f"{name}.{devices.device(kind).type}")


_ABSENT = {
    "sparse tensors": (
        "sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor "
        "sparse_compressed_tensor dsmm hsmm sspaddmm sparse_csc sparse_bsr sparse_bsc smm "
        "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo",
        "tensors are dense here",
        "a dense tensor, or index_add and gather",
    ),
    "nested tensors": (
        "jagged _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned",
        "tensors have one shape here",
        "nn.utils.rnn.pad_sequence(rows, batch_first=True)",
    ),
    "storages": (
        "TypedStorage ByteStorage CharStorage ShortStorage IntStorage LongStorage HalfStorage "
        "BFloat16Storage FloatStorage DoubleStorage BoolStorage Storage",
        "memory belongs to JAX",
        "x.numpy()",
    ),
    "dtypes": (
        "uint1 uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 int3 int4 int5 int6 int7 quint8 qint8 qint32 quint4x2 "
        "quint2x4 complex32 chalf bits8 bits16 bits1x8 bits2x4 bits4x2",
        "JAX has no such dtype",
        "sbpjax.uint8, sbpjax.int8",
    ),
    "schemes of quantisation": (
        "per_tensor_affine per_channel_affine per_tensor_symmetric per_channel_symmetric "
        "per_channel_affine_float_qparams qscheme",
        "quantised layers are kernels of PyTorch's own",
        "sbpjax.nn.FakeQuantization",
    ),
    "the core": (
        "PyTorchFileReader PyTorchFileWriter classes TensorType",
        "it is of PyTorch's own core",
        "the function itself",
    ),
}
_ABSENCES = {
    name: (f"torch.{name}", why, instead) for names, why, instead in _ABSENT.values() for name in names.split()
}
_made: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    if name in ("Stream", "Event"):
        from sbpjax._core.compat.cuda import streams

        return getattr(streams, name)
    if name in _FOREACH:
        return _FOREACH[name]
    if name in _ABSENCES:
        if name not in _made:
            _made[name] = absent(*_ABSENCES[name])
        return _made[name]
    raise AttributeError(name)
