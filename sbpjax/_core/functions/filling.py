"""In-place fills: random distributions, and Python functions of every element."""

from __future__ import annotations

import math

import numpy as np

from sbpjax._core.compiler.eager.evaluator.setting import compiled
from sbpjax._core.tensor.creation.convert import fetch_to_host
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.indexing import with_layout_of
from sbpjax._core.tensor.storage.inplace import COPY, inplace
from sbpjax.errors import OpError


@compiled
def geometric_(self: Tensor, p: float, *, generator=None) -> Tensor:
    """Write numbers of trials up to the first success, of probability ``p``."""
    if not 0 < p < 1:
        rule = f"geometric_ expects p to be in (0, 1), but got p={p}"
        raise OpError(f"x.geometric_({p})", f"p={p}", rule, "x.geometric_(0.5)")
    u = self.detach().new_empty(*self.shape, dtype=_float_of(self)).uniform_(generator=generator)
    found = ((1 - u).log() / math.log1p(-p)).ceil().clamp(min=1)
    return inplace(self, COPY, (found.to(self.dtype),))


@compiled
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator=None) -> Tensor:
    """Write floats whose logarithms are normal."""
    if std <= 0:
        rule = f"log_normal_ expects std > 0.0, but found std={std}"
        raise OpError(f"x.log_normal_({mean}, {std})", f"std={std}", rule, "x.log_normal_(1, 2)")
    drawn = self.detach().clone().normal_(mean, std, generator=generator)
    return inplace(self, COPY, (drawn.exp(),))


def _float_of(x: Tensor):
    return x.dtype if x.dtype.is_floating_point else dtypes.float32


def apply_(self: Tensor, callable) -> Tensor:
    """Write a Python function of each element into this tensor, on the host."""
    return _map_elements(self, callable, ())


def map_(self: Tensor, tensor: Tensor, callable) -> Tensor:
    """Write a Python function of each element and another tensor's into this tensor, on the host."""
    return _map_elements(self, callable, (tensor,))


def map2_(self: Tensor, x: Tensor, y: Tensor, callable) -> Tensor:
    """Write a Python function of each element and those of two other tensors into this tensor, on the host."""
    return _map_elements(self, callable, (x, y))


def _map_elements(self: Tensor, function, others: tuple) -> Tensor:
    sources = [
        np.broadcast_to(fetch_to_host(x.detach()), tuple(self.shape)).reshape(-1).tolist() for x in (self, *others)
    ]
    values = np.array([function(*each) for each in zip(*sources, strict=True)]).astype(self.dtype.np)
    return self.copy_(with_layout_of(values.reshape(tuple(self.shape)), self))
