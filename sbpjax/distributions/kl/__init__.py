"""Kullback-Leibler divergences: `kl_divergence`, and `register_kl` for a pair of classes."""

from . import across as across
from . import alike as alike
from . import vectors as vectors
from .registry import _KL_MEMOIZE as _KL_MEMOIZE
from .registry import _KL_REGISTRY as _KL_REGISTRY
from .registry import kl_divergence as kl_divergence
from .registry import register_kl as register_kl

__all__ = ["kl_divergence", "register_kl"]
