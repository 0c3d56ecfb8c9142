"""`LKJCholesky`: random correlation matrices, by their Cholesky factors.

Source: Lewandowski, Kurowicka, Joe: Generating random correlation matrices based on vines and extended onion method
(2009), section 3 for the draws, page 1999 for the constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Tensor
from sbpjax.autograd import no_grad
from sbpjax.errors import DistributionError

from . import constraints
from .distribution import Distribution, noise
from .gamma import Beta
from .utils import broadcast_all


class LKJCholesky(Distribution):
    """Cholesky factors L of correlation matrices M = L Lᵀ, of density proportional to ``det(M)^(concentration - 1)``.

    Args:
        dim: the number of rows.
        concentration: 1 is all correlation matrices alike; larger ones are nearer to independence.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            rule = f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            raise DistributionError("LKJCholesky(dim)", f"{dim}", rule, "LKJCholesky(2)")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _row_lengths(self) -> Beta:
        """Return the distribution of the squared length of each row left of the diagonal; the first row's is unused.

        Of row i, counted from 0, it is a beta distribution of i / 2 and concentration + (dim - 1 - i) / 2. PyTorch
        takes i - 1/2 for the first number, so that its draws of three rows and more are not those of its density.
        """
        row = self._arange_last(self.dim - 1)
        row = sbpjax.cat([row[..., :1], row], -1)  # 0, 0, 1, ..., dim - 2
        most = self.concentration.detach().unsqueeze(-1) + 0.5 * (self.dim - 2)
        return Beta(0.5 * row + 0.5, most - 0.5 * row, validate_args=False)

    def _arange_last(self, n: int) -> Tensor:
        """Return 0, ..., n - 1 along a new last dim, where the concentration lies."""
        ones = sbpjax.ones_like(self.concentration.detach()).unsqueeze(-1).expand(*self.batch_shape, n)
        return ones.cumsum(-1) - 1

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            squares = self._row_lengths().sample(sample_shape).unsqueeze(-1)
            like = squares.expand(self._sample_size(sample_shape))
            normal = noise(like.shape, like).tril(-1)
            tiny = sbpjax.finfo(normal.dtype).tiny
            direction = normal / normal.square().sum(-1, True).sqrt().clamp(min=tiny)
            left = squares.sqrt() * direction
            return left + (1 - left.square().sum(-1)).clamp(min=tiny).sqrt().diag_embed()

    def log_prob(self, value: Any) -> Tensor:
        diagonal = self._check_value(value).diagonal(dim1=-2, dim2=-1)[..., 1:]
        n = self.dim - 1
        power = 2 * (self.concentration - 1).unsqueeze(-1) + (n - 1 - self._arange_last(n))
        alpha = self.concentration + 0.5 * n
        norm = 0.5 * n * math.log(math.pi) + sbpjax.mvlgamma(alpha - 0.5, n) - alpha.lgamma() * n
        return (power * diagonal.log()).sum(-1) - norm
