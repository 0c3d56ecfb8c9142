"""Range checks of optimizer options."""

from __future__ import annotations

import inspect
from typing import Any

from sbpjax._core.runtime.signature_errors import keyword_fix, strip_signature
from sbpjax._core.tensor import Tensor
from sbpjax.errors import OpTypeError, OpValueError
from sbpjax.optim.options import Choices, Implementation


def at_least_zero(name: str, value: Any) -> None:
    """Raise a ValueError for a negative number or NaN; of a tensor the size is checked, its value is not read."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            seen = f"{value.dtype.name}{list(value.shape)}"
            raise OpValueError(f"{name}=tensor(...)", seen, f"Tensor {name} must be 1-element", f"{name}=tensor(0.01)")
    elif not value >= 0:
        word = _WORDS.get(name, name)
        rule = f"Invalid {word}: {value}; it must be at least 0"
        raise OpValueError(f"{name}={value!r}", f"{value!r}", rule, f"{name}=0.01")


def in_unit_range(name: str, value: Any) -> None:
    """Raise a ValueError unless a number is in [0, 1]."""
    if not 0 <= value <= 1:
        rule = f"Invalid {name} value: {value}; it must be in [0, 1]"
        raise OpValueError(f"{name}={value!r}", f"{value!r}", rule, f"{name}=0.9")


def params_type(seen: Any, rule: str) -> OpTypeError:
    """Return the error for parameters of a wrong type."""
    return OpTypeError("making an optimizer", f"{type(seen).__name__}", rule, _FIX)


def params_value(seen: str, rule: str, fix: str = "") -> OpValueError:
    """Return the error for parameters that cannot be optimized."""
    return OpValueError("making an optimizer", seen, rule, fix or _FIX)


def checked_implementation(optimizer: type, implementation: Any) -> dict[str, Any]:
    """Return all of PyTorch's implementation choices, so that a group has the same keys as PyTorch's.

    Raises:
        OpTypeError: the option does not exist.
        OpValueError: ``differentiable=True``.
    """
    name, unknown = optimizer.__name__, sorted(set(implementation) - _CHOICES)
    if unknown:
        signature = strip_signature(inspect.signature(optimizer.__init__), made=True)
        fix = keyword_fix(unknown[0], [*signature.parameters, *_CHOICES], f"{name}{signature}")
        rule = f"{name}.__init__() got an unexpected keyword argument {unknown[0]!r}"
        raise OpTypeError(f"{name}({unknown[0]}=...)", f"options {unknown}", rule, fix)
    if implementation.get("differentiable"):
        rule = "an update writes parameters in place, so no gradient flows through it"
        fix = "sbpjax.func.grad over a step written with plain tensor operations"
        raise OpValueError(f"{name}(differentiable=True)", "differentiable=True", rule, fix)
    return {**_DEFAULT_CHOICES, **implementation}


def is_on(value: Any) -> bool:
    """Return whether an option takes part in the formula; one that is no plain number always does."""
    return not isinstance(value, (int, float)) or value != 0


def betas_in_range(betas: Any) -> None:
    """Raise a ValueError unless both decay rates are in [0, 1)."""
    for index, beta in enumerate(betas):
        if not 0 <= beta < 1:
            rule = f"Invalid beta parameter at index {index}: {beta}; it must be in [0, 1)"
            raise OpValueError(f"betas={betas!r}", f"{beta!r}", rule, "betas=(0.9, 0.999)")


_DEFAULT_CHOICES = {"foreach": None, "capturable": False, "differentiable": False, "fused": None}
_CHOICES = {*Choices.__annotations__, *Implementation.__annotations__}

_WORDS = {
    "lr": "learning rate",
    "momentum": "momentum value",
    "weight_decay": "weight_decay value",
    "eps": "epsilon value",
}

_FIX = "sbpjax.optim.AdamW(model.parameters(), lr=1e-3)"
