"""Spectral normalisation, older form: a forward pre-hook that divides a weight by its largest singular value.

The module keeps ``<name>_orig`` as the parameter and ``<name>_u``, ``<name>_v`` as buffers; ``<name>`` is computed
before every forward. `sbpjax.nn.utils.parametrizations.spectral_norm` is the newer form.
"""

from __future__ import annotations

from typing import Any, TypeVar

from sbpjax._core.functions import nn as F
from sbpjax._core.functions import random as random_ops
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import Parameter

M = TypeVar("M", bound=Module)


class SpectralNorm:
    """The forward pre-hook that computes a normalised weight.

    Args:
        name: the parameter.
        n_power_iterations: iterations per forward in training.
        dim: the dim of the outputs.
        eps: keeps norms from 0.
    """

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float):
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix of one row per output."""
        if self.dim:
            weight = weight.permute(self.dim, *(d for d in range(weight.ndim) if d != self.dim))
        return weight.reshape(weight.shape[0], -1)

    def compute(self, module: Module, iterate: bool) -> Tensor:
        """Return the normalised weight, the singular vectors moved on first if `iterate`."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = self.matrix(weight)
        if iterate:
            with no_grad():
                still = matrix.detach()
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(still.t() @ u, dim=0, eps=self.eps))
                    u.copy_(F.normalize(still @ v, dim=0, eps=self.eps))
        return weight / (u.clone() * (matrix @ v.clone())).sum()

    def __call__(self, module: Module, inputs: Any) -> None:
        object.__setattr__(module, self.name, self.compute(module, module.training))


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a weight by its largest singular value before every forward; return the module.

    Args:
        module: the module; it is changed.
        name: the parameter.
        n_power_iterations: iterations per forward in training.
        eps: keeps norms from 0.
        dim: the dim of the outputs; None is 0, and 1 for transposed convolutions.
    """
    operation = f"spectral_norm({type(module).__name__}, {name!r})"
    if _hook_of(module, name) is not None:
        rule = f"Cannot register two spectral_norm hooks on the same parameter {name}"
        fail("shape", operation, "a normalised parameter", rule, "remove_spectral_norm(module) first")
    if n_power_iterations <= 0:
        rule = f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
        fail("value", operation, f"n_power_iterations={n_power_iterations}", rule, "n_power_iterations=1")
    weight = module._parameters.get(name)
    if weight is None:
        rule = f"it has no parameter {name!r}"
        fail("value", operation, f"parameters {list(module._parameters)}", rule, "spectral_norm(layer, 'weight')")
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    with no_grad():
        matrix = hook.matrix(weight.detach())
        u, v = (random_ops.randn_like(matrix.narrow(d, 0, 1).reshape(-1)) for d in (1, 0))
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    module.register_buffer(f"{name}_u", F.normalize(u, dim=0, eps=eps))
    module.register_buffer(f"{name}_v", F.normalize(v, dim=0, eps=eps))
    object.__setattr__(module, name, weight.detach())
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make a normalised weight an ordinary parameter again, with its present value; return the module."""
    key = _hook_of(module, name)
    if key is None:
        rule = f"spectral_norm of '{name}' not found in {module}"
        fail("value", f"remove_spectral_norm(..., {name!r})", "no such hook", rule, "spectral_norm(module) first")
    hook = module._forward_pre_hooks.pop(key)[0]
    with no_grad():
        weight = hook.compute(module, False).detach()
    module.__dict__.pop(name, None)
    for end in ("orig", "u", "v"):
        delattr(module, f"{name}_{end}")
    module.register_parameter(name, Parameter(weight))
    return module


def _hook_of(module: Module, name: str) -> Any:
    for key, (hook, *_) in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            return key
    return None
