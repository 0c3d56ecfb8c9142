"""Complex tensors: parts, conjugates, angles; ``real``, ``imag``, ``conj`` and `view_as_real` are views.

``z.real.zero_()`` writes through to ``z``, as in PyTorch, and so does a write to ``z.conj()``. Each is a view step with
a partner that puts a value back. `is_conj` counts the conjugating steps: a tensor that was conjugated twice is none.
"""

from __future__ import annotations

import numpy as np

from sbpjax._core.tensor.calls.binding import must_be_tensor
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage import view_steps, views
from sbpjax._core.tensor.storage.storage import steps_of
from sbpjax.errors import OpError


def real(input: Tensor) -> Tensor:
    """Return a view of the real part; a real tensor itself."""
    return views.view_of(input, view_steps.real_part) if input.dtype.is_complex else input


def imag(input: Tensor) -> Tensor:
    """Return a view of the imaginary part of a complex tensor."""
    if not input.dtype.is_complex:
        rule = "imag is only implemented for tensors with complex dtypes"
        raise OpError("imag(x)", f"a {input.dtype!r} tensor", rule, "zeros_like(x)")
    return views.view_of(input, view_steps.imag_part)


def conj(input: Tensor) -> Tensor:
    """Return a view of the complex conjugate; a real tensor itself."""
    return views.view_of(input, view_steps.conj) if input.dtype.is_complex else input


def is_conj(input: Tensor) -> bool:
    """Return whether the tensor is a conjugated view."""
    return sum(step[0] is view_steps.conj for step in steps_of(input)) % 2 == 1


def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself, or a copy of a conjugated view."""
    return input.clone() if is_conj(input) else input


def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor itself: no view here is negated without being computed."""
    must_be_tensor("resolve_neg", input)
    return input


def is_neg(input: Tensor) -> bool:
    """Return False: no view here is negated without being computed."""
    must_be_tensor("is_neg", input)
    return False


def view_as_real(input: Tensor) -> Tensor:
    """Return a view of a complex tensor with real and imaginary parts along a new last dim."""
    if not input.dtype.is_complex:
        rule = "view_as_real is only supported for complex tensors"
        raise OpError("view_as_real(x)", f"a {input.dtype!r} tensor", rule, "x.to(sbpjax.complex64)")
    if is_conj(input):
        rule = "view_as_real doesn't work on unresolved conjugated tensors"
        raise OpError("view_as_real(x)", "a conjugated view", rule, "view_as_real(x.resolve_conj())")
    return views.view_of(input, view_steps.as_real)


def view_as_complex(input: Tensor) -> Tensor:
    """Return a view of a real tensor, whose last dim of size 2 holds real and imaginary parts, as complex numbers."""
    if input.dtype.np not in (np.dtype(np.float32), np.dtype(np.float64)) or not input.ndim or input.shape[-1] != 2:
        rule = "view_as_complex is only supported for float and double tensors whose last dim has size 2"
        seen = f"{input.dtype.name}{list(input.shape)}"
        raise OpError("view_as_complex(x)", seen, rule, "x.float().reshape(-1, 2)")
    return views.view_of(input, view_steps.as_complex)


def setter_of(part):
    """Return the setter of the real or the imaginary part."""

    def setter(self: Tensor, value) -> None:
        part(self).copy_(value) if isinstance(value, Tensor) else part(self).fill_(value)

    return setter
