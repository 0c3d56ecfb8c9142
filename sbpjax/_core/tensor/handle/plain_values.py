"""Arguments by protocol: sequences, mappings and numbers of other packages as lists, dicts and Python's numbers.

    plain(ListConfig([3, 3]))        [3, 3]      omegaconf's lists are sequences, and neither lists nor tuples
    plain(Fraction(1, 10))           0.1
    plain(np.array(0.9))             0.9

Functions look for lists, dicts and floats, which almost all calls have. A call that failed is repeated
with plain values (`_core.tensor.calls.argument_errors`), so a call that works pays nothing.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

_PLAIN = frozenset((int, float, bool, complex, str, bytes, type(None), slice, type(Ellipsis)))


def number_of(value: Any) -> Any:
    """Return a number of another package as Python's own; None if it is not a number."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.item() if value.ndim == 0 and value.dtype.kind in "biufc" else None
    if not isinstance(value, (numbers.Number, Decimal)):
        return None
    for base in (bool, int, float, complex):
        if isinstance(value, base):
            return base(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) or isinstance(value, Decimal):
        return float(value)
    return complex(value) if isinstance(value, numbers.Complex) else None  # type: ignore[arg-type]


def to_python_value(value: Any) -> Any:
    """Return a value with its sequences, mappings and numbers as Python's own; the value itself if nothing changes."""
    kind = value.__class__
    if kind in _PLAIN:
        return value
    if kind in (list, tuple):
        items = [to_python_value(item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else kind(items)
    if kind is dict:
        found = {key: to_python_value(item) for key, item in value.items()}
        return value if all(found[key] is item for key, item in value.items()) else found
    number = number_of(value)
    if number is not None:
        return number
    # Tensors, modules and arrays have a length and items as well, and are no sequences.
    if isinstance(value, Sequence) and not isinstance(value, (list, tuple, str, bytes, bytearray)):
        return [to_python_value(item) for item in value]
    if isinstance(value, Mapping) and not isinstance(value, dict):
        return {key: to_python_value(item) for key, item in value.items()}
    return value
