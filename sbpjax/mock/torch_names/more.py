"""Names of `torch` itself that sbpjax has none of its own for."""

from __future__ import annotations

import math
from typing import Any

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
