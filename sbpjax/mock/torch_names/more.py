"""Names of `torch` itself that sbpjax has none of its own for."""

from __future__ import annotations

import math
import os
from typing import Any

from .version import TorchVersion as TorchVersion


class layout:
    """How elements lie in memory; all tensors here are strided."""

    def __init__(self, name: str = "strided") -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


class memory_format:
    """The order of dims in memory; XLA chooses it, so every format is accepted and changes nothing."""

    def __init__(self, name: str = "contiguous_format") -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
contiguous_format = memory_format("contiguous_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
preserve_format = memory_format("preserve_format")
SymInt, SymFloat, SymBool = int, float, bool

_settings: dict[str, Any] = {"precision": "highest", "deterministic": False, "interop": 1}


def typename(obj) -> str:
    """Return the name of an object's class, with its module."""
    if hasattr(obj, "type") and callable(obj.type):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    return f"{cls.__module__}.{cls.__qualname__}"


def is_storage(obj) -> bool:
    """Return False: nothing is of a storage class."""
    return False


def get_float32_matmul_precision() -> str:
    """Return the precision of float32 products."""
    return _settings["precision"]


def set_float32_matmul_precision(precision: str) -> None:
    """Set the precision of float32 products: ``"highest"``, ``"high"`` or ``"medium"``, as JAX's matmul precision."""
    import jax

    names = {"highest": "highest", "high": "tensorfloat32", "medium": "bfloat16"}
    _settings["precision"] = precision
    jax.config.update("jax_default_matmul_precision", names[precision])


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accept the wish: XLA's programs on CPU and TPU are deterministic."""
    _settings["deterministic"] = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Return what `use_deterministic_algorithms` was last given."""
    return _settings["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return False."""
    return False


def set_num_threads(n: int) -> None:
    """Accept a number of threads; XLA's pool is sized when the backend starts, see `sbpjax.env`."""


def get_num_threads() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def get_num_interop_threads() -> int:
    """Return the number of threads that launch ops."""
    return _settings["interop"]


def set_num_interop_threads(n: int) -> None:
    """Accept a number of threads; ops are launched by the thread that calls them."""
    _settings["interop"] = n


def set_flush_denormal(mode: bool) -> bool:
    """Return False: XLA decides it."""
    return False


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


def is_inference(input) -> bool:
    """Return False: tensors made in inference mode are as any other."""
    return False


def _functional(name: str) -> Any:
    """Return a function of modules that PyTorch also has at its top."""
    from sbpjax.nn import functional

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
_NUMBERS = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None}


def __getattr__(name: str) -> Any:
    if name in _NUMBERS:
        return _NUMBERS[name]
    if name in _ALSO_AT_THE_TOP:
        return _functional(name)
    raise AttributeError(name)
