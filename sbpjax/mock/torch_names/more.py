"""Names of `torch` itself that sbpjax has none of its own for."""

from __future__ import annotations

import math
from typing import Any

from sbpjax import naming
from sbpjax.errors import OutOfMemoryError as OutOfMemoryError
from sbpjax.functions.settings import contiguous_format
from sbpjax.tensor.autocast import get_autocast_dtype as _get_autocast_dtype
from sbpjax.tensor.autocast import is_autocast_cache_enabled as is_autocast_cache_enabled
from sbpjax.tensor.autocast import is_autocast_enabled as _is_autocast_enabled

from .absent import absent
from .foreach import TABLE as _FOREACH
from .futures import Future as Future
from .jit import ScriptModule as ScriptModule
from .version import TorchVersion as TorchVersion

SymInt, SymFloat, SymBool = int, float, bool


def compiled_with_cxx11_abi() -> bool:
    """Return True."""
    return True


def _assert(condition, message: str) -> None:
    """Raise AssertionError unless a condition holds."""
    if not condition:
        raise AssertionError(message)


def _check(cond, message=None) -> None:
    """Raise RuntimeError unless a condition holds."""
    if not cond:
        raise RuntimeError(message() if callable(message) else message or "Expected cond to be True")


def _check_is_size(i, message=None) -> None:
    """Raise RuntimeError unless a number is at least 0."""
    _check(i >= 0, message)


def sym_int(a) -> int:
    """Return the number as int."""
    return int(a)


def sym_float(a) -> float:
    """Return the number as float."""
    return float(a)


def sym_max(a, b):
    """Return the larger number."""
    return max(a, b)


def sym_min(a, b):
    """Return the smaller number."""
    return min(a, b)


def is_vulkan_available() -> bool:
    """Return False."""
    return False


class __config__:
    """How the program was built."""

    @staticmethod
    def show() -> str:
        """Return the versions as text."""
        import jax

        return f"sbpjax {naming.VERSION}, jax {jax.__version__}"

    @staticmethod
    def parallel_info() -> str:
        """Return the number of devices as text."""
        import jax

        return f"{jax.local_device_count()} devices"


legacy_contiguous_format = contiguous_format


def sym_not(a) -> bool:
    """Return whether a condition does not hold."""
    return not a


def sym_ite(b, t, f):
    """Return one of two values, by a condition."""
    return t if b else f


def sym_sum(args):
    """Return the sum of some numbers."""
    return sum(args)


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


def _check_index(cond, message=None) -> None:
    """Raise IndexError unless a condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None) -> None:
    """Raise ValueError unless a condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None) -> None:
    """Raise TypeError unless a condition holds."""
    _check_with(TypeError, cond, message)


def _assert_async(input, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError if a number in a tensor is zero; within a traced program nothing is checked."""
    from sbpjax.tensor.mode import mode

    if mode.lift is None and not bool(input):
        raise RuntimeError(assert_msg)


def _shape_as_tensor(self):
    """Return the sizes as a vector of int64."""
    from .onnx_operators import shape_as_tensor

    return shape_as_tensor(self)


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
    from sbpjax.functions import settings

    if not settings.are_deterministic_algorithms_enabled():
        return 0
    return 1 if settings.is_deterministic_algorithms_warn_only_enabled() else 2


def set_deterministic_debug_mode(debug_mode) -> None:
    """Set what `get_deterministic_debug_mode` returns: a number, or ``"default"``, ``"warn"``, ``"error"``."""
    from sbpjax.functions import settings

    number = {"default": 0, "warn": 1, "error": 2}.get(debug_mode, debug_mode)
    if number not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1 or 2, but got {debug_mode}")
    settings.use_deterministic_algorithms(number > 0, warn_only=number == 1)


def get_device_module(device=None):
    """Return the module of a kind of device: `torch.cuda`, `torch.cpu` and their like."""
    import importlib
    import sys

    from sbpjax import cuda
    from sbpjax.tensor import device as devices

    name = "torch" if "torch" in sys.modules else "sbpjax"
    kind = device or ("cuda" if cuda.is_available() else "cpu")
    return importlib.import_module(f"{name}.{devices.device(kind).type}")


def _functional(name: str) -> Any:
    """Return a function of modules that PyTorch also has at its top."""
    from sbpjax.functions import nn as functional

    return getattr(functional, name)


_ALSO_AT_THE_TOP = frozenset(
    (
        "adaptive_avg_pool1d adaptive_max_pool1d alpha_dropout avg_pool1d binary_cross_entropy_with_logits bilinear "
        "channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
        "cosine_embedding_loss cosine_similarity ctc_loss dropout feature_alpha_dropout group_norm hardshrink "
        "hinge_embedding_loss instance_norm kl_div layer_norm margin_ranking_loss max_pool1d max_pool2d max_pool3d "
        "pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss relu_ rms_norm rrelu rrelu_ selu_ "
        "threshold_ triplet_margin_loss"
    ).split()
)
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
        "UntypedStorage TypedStorage ByteStorage CharStorage ShortStorage IntStorage LongStorage HalfStorage "
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
_NUMBERS = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None}


def __getattr__(name: str) -> Any:
    if name in _NUMBERS:
        return _NUMBERS[name]
    if name in _ALSO_AT_THE_TOP:
        return _functional(name)
    if name in ("Stream", "Event"):
        from sbpjax import cuda

        return getattr(cuda, name)
    if name in _FOREACH:
        return _FOREACH[name]
    if name in _ABSENCES:
        if name not in _made:
            _made[name] = absent(*_ABSENCES[name])
        return _made[name]
    raise AttributeError(name)
