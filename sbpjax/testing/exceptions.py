"""Cases that differ from PyTorch on purpose, each with its reason; `tests/testing` holds that all of them still occur.

An entry excuses an op (or several) in one form when a function of the call and the error says so.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Excuse:
    """A class of cases that differ.

    Attributes:
        names: the ops, separated by blanks; ``*`` for all.
        form: the form of testing, or ``*``.
        when: whether a ``(call, error)`` is of this class.
        reason: why it is so.
        witness: a case of it: name, form, seed, number.
    """

    names: str
    form: str
    when: Callable
    reason: str
    witness: tuple[str, str, int, int]


EXCUSES: tuple[Excuse, ...] = (
    Excuse(
        "logical_and logical_or logical_xor logical_not",
        "inplace",
        lambda call, error: "gradient" in str(error),
        "what they overwrite has no gradient; PyTorch passes the gradient on as if nothing had been written",
        ("logical_and", "inplace", 11, 1),
    ),
    Excuse(
        "kron",
        "forward",
        lambda call, error: "view size is not compatible" in str(error),
        "PyTorch's refuses some strides, since it views its result; here every kron has a value",
        ("kron", "forward", 15, 1),
    ),
    Excuse(
        "native_layer_norm",
        "forward",
        lambda call, error: "result[1]" in str(error) and "e-17, tolerance" in str(error),
        "a mean that cancels: the order of additions decides about a last bit of the summands",
        ("native_layer_norm", "forward", 13, 0),
    ),
)


# Ops whose inputs are finite in the form "corners", and why.
FINITE_CORNERS = {
    "*conv[123]d *conv_transpose[123]d *conv_tbc fft.* stft istft *.stft *.istft linalg.lu_solve lu_solve linalg.lstsq "
    "linalg.householder_product orgqr": "products with zeros are formed or left out as the algorithm likes, and "
    "transforms and solvers mix a NaN into results that do not depend on it",
    "native_layer_norm": "PyTorch's running mean of two infinities is NaN",
    "Tensor.byte Tensor.char Tensor.int Tensor.long Tensor.short": "C++ leaves open which integer a NaN becomes",
    "special.legendre_polynomial_p": "PyTorch 2.13 returns what its memory held before for NaN",
}


def finite_corners(name: str) -> bool:
    """Return whether an op is not tested at NaN and infinities, see `FINITE_CORNERS`."""
    return any(fnmatch.fnmatch(name, pattern) for patterns in FINITE_CORNERS for pattern in patterns.split())


def excused(name: str, form: str, call, error) -> Excuse | None:
    """Return the entry that a failing case belongs to, if there is one."""
    for entry in EXCUSES:
        if entry.form in ("*", form) and (entry.names == "*" or name in entry.names.split()):
            if entry.when(call, error):
                return entry
    return None
