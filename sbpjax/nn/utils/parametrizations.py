"""Predefined parametrisations: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from typing import Any

from sbpjax._core import functions
from sbpjax._core.functions import nn as F
from sbpjax._core.functions.linear_algebra import linalg
from sbpjax._core.functions.random import randn_like
from sbpjax._core.ops.dims import fail
from sbpjax._core.ops.linalg.decompose import reflections
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import creation
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.errors import OpNotSupportedError
from sbpjax.nn.module import Module
from sbpjax.nn.utils.parametrize import register_parametrization
from sbpjax.nn.utils.weight_norm import dim_of, lengths, scale_slices


class _WeightNorm(Module):
    """`g` and `v` as the weight ``g * v / |v|``."""

    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return dispatch.run(op_of(scale_slices, (("dim", self.dim),)), (weight_v, weight_g))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the lengths and the weight itself."""
        return dispatch.run(op_of(lengths, (("dim", self.dim),)), (weight,)), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Make a weight a length and a direction, ``original0`` and ``original1``; return the module.

    Args:
        module: the module; it is changed.
        name: the parameter.
        dim: the dim whose slices have lengths of their own; None or -1 for one length of the whole.

    Raises:
        IndexError: the weight has no such dim.
    """
    weight = getattr(module, name, None)
    if isinstance(weight, Tensor):
        dim = dim_of(f"weight_norm({type(module).__name__}, {name!r})", weight, dim)
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """Weight divided by its largest singular value, found by power iteration as training goes on."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        operation = "spectral_norm(...)"
        if not -weight.ndim <= dim < weight.ndim:
            rule = f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}])"
            fail("index", operation, f"dim={dim}", rule, "dim=0")
        if n_power_iterations <= 0:
            rule = f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            fail("value", operation, f"n_power_iterations={n_power_iterations}", rule, "n_power_iterations=1")
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:
            with no_grad():
                matrix = self._matrix(weight.detach())
                u, v = (matrix.detach().narrow(d, 0, 1).reshape(-1) for d in (1, 0))
                self.register_buffer("_u", F.normalize(randn_like(u), dim=0, eps=eps))
                self.register_buffer("_v", F.normalize(randn_like(v), dim=0, eps=eps))
                self._iterate(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        if self.dim:
            weight = weight.permute(self.dim, *(d for d in range(weight.ndim) if d != self.dim))
        return weight.flatten(1)

    def _iterate(self, matrix: Tensor, times: int) -> None:
        for _ in range(times):
            self._u.copy_(F.normalize(matrix @ self._v, dim=0, eps=self.eps))
            self._v.copy_(F.normalize(matrix.t() @ self._u, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            with no_grad():
                self._iterate(matrix.detach(), self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return weight / (u * (matrix @ v)).sum()

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the value: it is assumed to be normalised."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value; return the module.

    Args:
        module: the module; it is changed.
        name: the parameter.
        n_power_iterations: iterations per forward in training.
        eps: keeps norms from 0.
        dim: the dim of the outputs; None is 0, and 1 for transposed convolutions.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        rule = f"Module '{type(module).__name__}' has no parameter or buffer with name '{name}'"
        fail("value", "spectral_norm(module)", f"parameters {list(module._parameters)}", rule, "name='weight'")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


class _Orthogonal(Module):
    """Orthogonal matrix computed from another: by exponential, Cayley map, or Householder product."""

    def __init__(self, how: str, base: Any):
        super().__init__()
        self.how = how
        self.register_buffer("base", base)

    def forward(self, X: Tensor) -> Tensor:
        rows, columns = X.shape[-2:]
        wide = rows < columns
        if wide:
            X, rows, columns = X.transpose(-1, -2), columns, rows
        if self.how == "householder":
            A = X.tril(-1)
            tau = 2.0 / (1.0 + (A * A).sum(dim=-2))
            Q = linalg.householder_product(A, tau)
            Q = Q * X.diagonal(dim1=-2, dim2=-1).unsqueeze(-2)
        else:
            A = X.tril()
            if rows != columns:
                A = functions.cat([A, A.new_zeros(*A.shape[:-1], rows - columns)], dim=-1)
            A = A - A.transpose(-1, -2)
            if self.how == "matrix_exp":
                Q = linalg.matrix_exp(A)
            else:
                one = creation.eye(rows, dtype=A.dtype)
                Q = linalg.solve(one - A * 0.5, one + A * 0.5)
            if rows != columns:
                Q = Q[..., :columns]
        if self.base is not None:
            Q = self.base @ Q
        return Q.transpose(-1, -2) if wide else Q

    def right_inverse(self, Q: Tensor) -> Tensor:
        """Use the orthogonal matrix nearest to a given one as the base of the parameter."""
        rows, columns = Q.shape[-2:]
        tall = Q.transpose(-1, -2) if rows < columns else Q
        if self.how == "householder":
            A, tau = dispatch.run(op_of(reflections), (tall,))
            signs = A.diagonal(dim1=-2, dim2=-1).sign() * functions.where(tau == 0, -1.0, 1.0).to(A.dtype)
            A = A.tril(-1) + creation.eye(*A.shape[-2:], dtype=A.dtype) * signs.unsqueeze(-2)
            return A.transpose(-1, -2) if rows < columns else A
        if self.base is None:
            raise OpNotSupportedError(
                "assigning to an orthogonal tensor",
                f"orthogonal_map={self.how!r} without a base",
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False.",
                "orthogonal(..., use_trivialization=True)",
            )
        found, upper = linalg.qr(tall, mode="complete")
        signs = upper.diagonal(dim1=-2, dim2=-1).sign()
        found[..., : tall.shape[-1]] *= signs.unsqueeze(-2)
        self.base.copy_(found)
        return -creation.eye(rows, columns, dtype=Q.dtype).expand(Q.shape).clone()


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Make a matrix orthogonal (its shorter side orthonormal); return the module.

    Args:
        module: the module; it is changed.
        name: the parameter, of at least 2 dims.
        orthogonal_map: ``"matrix_exp"``, ``"cayley"`` or ``"householder"``; None is the exponential.
        use_trivialization: parametrise relative to the orthogonal matrix nearest to the present value.
    """
    weight = getattr(module, name, None)
    operation = f"orthogonal({type(module).__name__}, {name!r})"
    if not isinstance(weight, Tensor) or weight.ndim < 2:
        rule = "Expected a matrix or batch of matrices"
        fail("value", operation, f"parameters {list(module._parameters)}", rule, "orthogonal(nn.Linear(4, 4))")
    how = orthogonal_map or "matrix_exp"
    if how not in ("matrix_exp", "cayley", "householder"):
        rule = 'orthogonal_map has to be one of "matrix_exp", "cayley", "householder"'
        fail("value", operation, f"orthogonal_map={how!r}", rule, "orthogonal_map='cayley'")
    base = None
    if use_trivialization and how != "householder":
        size = max(weight.shape[-2:])
        base = creation.eye(size, dtype=weight.dtype).expand(*weight.shape[:-2], size, size).clone()
    return register_parametrization(module, name, _Orthogonal(how, base), unsafe=True)
