"""Transforms to triangular and to positive definite matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Size, Tensor
from sbpjax.errors import DistributionError
from sbpjax.nn import functional as F

from .. import constraints
from ..utils import tril_matrix_to_vec, vec_to_tril_matrix
from .base import Transform, too_few_dims
from .pointwise import _Plain


class LowerCholeskyTransform(_Plain):
    """The lower triangle, with the exponentials of the diagonal."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """``L Lᵀ`` of `LowerCholeskyTransform`'s L."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.transpose(-2, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(sbpjax.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """n (n - 1) / 2 numbers to the Cholesky factor of a correlation matrix of n rows.

    The numbers fill the lower triangle row by row. In a row the squares of their tanh break a stick of length 1, as in
    `StickBreakingTransform`; the roots of the pieces, with the numbers' signs, are a row of length 1.

    Source: Stan reference manual, "Cholesky factors of correlation matrices".
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = sbpjax.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), -1)
        left = (1 - r.square()).sqrt().cumprod(-1)
        eye = sbpjax.ones_like(r[..., 0].detach()).diag_embed()
        return (r + eye) * F.pad(left[..., :-1], [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        left = F.pad((1 - y.square().cumsum(-1))[..., :-1], [1, 0], value=1.0)
        t = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        left = tril_matrix_to_vec(1 - y.square().cumsum(-1), -2)  # of the lower triangle as a function of the numbers
        stretched = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * left.log().sum(-1) + stretched

    def forward_shape(self, shape: Sequence[int]) -> Any:
        too_few_dims("CorrCholeskyTransform", shape, 1)
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            rule = "Input is not a flattened lower-diagonal number"
            raise DistributionError("CorrCholeskyTransform", f"{tuple(shape)}", rule, "1, 3, 6, 10, ...")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        too_few_dims("CorrCholeskyTransform", shape, 2)
        if shape[-2] != shape[-1]:
            raise DistributionError("CorrCholeskyTransform", f"{tuple(shape)}", "Input is not square", "(n, n)")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))
