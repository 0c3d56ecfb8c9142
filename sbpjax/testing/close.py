"""`assert_close`: comparison of two values up to rounding, as in ``torch.testing``.

    assert_close(model(x), expected)           # tensors, numbers, and sequences and mappings of them

Values are close if ``|actual - expected| <= atol + rtol * |expected|``. Without tolerances those of the less accurate
of the two dtypes count; shape, dtype and device are compared too.

Source: the tolerances by dtype are those of the documentation of ``torch.testing.assert_close``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.from_data import as_tensor
from sbpjax.errors import OpTypeError, OpValueError

# rtol and atol
DEFAULTS = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise unless two values are close.

    Args:
        actual: a tensor of any sbp, an array, a number, or a sequence or mapping of such.
        expected: of the same kind.
        allow_subclasses: whether their classes may differ, if both are tensors.
        rtol: relative tolerance; given together with ``atol``, by default by dtype.
        atol: absolute tolerance.
        equal_nan: whether NaN is close to NaN.
        check_device: compare devices, or placements.
        check_dtype: compare dtypes.
        check_layout: for PyTorch's spelling: every tensor is strided.
        check_stride: compare strides.
        msg: the error's text, or a function of the text.

    Raises:
        AssertionError: the values are not close.
        ValueError: one of ``rtol`` and ``atol`` is given without the other.
    """
    if (rtol is None) != (atol is None):
        rule = "rtol and atol must both be specified or both be left out"
        raise OpValueError("assert_close(...)", f"rtol={rtol}, atol={atol}", rule, "rtol=1e-5, atol=1e-5")
    checks = {"device": check_device, "dtype": check_dtype, "stride": check_stride}
    tolerances = None if rtol is None or atol is None else (rtol, atol)
    found = _difference(actual, expected, "", tolerances, equal_nan, checks, allow_subclasses)
    if found is not None:
        raise AssertionError(found if msg is None else msg(found) if callable(msg) else msg)


def _difference(
    actual, expected, where: str, tolerances, equal_nan: bool, checks: dict, subclasses: bool
) -> str | None:
    """Return the difference between two values, None if they are close."""
    rest = (tolerances, equal_nan, checks, subclasses)
    at = f" at {where}" if where else ""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if actual.keys() != expected.keys():
            return f"The keys of the mappings do not match{at}: {sorted(actual.keys() ^ expected.keys(), key=str)}"
        places = [(key, f"{where}[{key!r}]") for key in expected]
    elif _is_sequence(expected) and _is_sequence(actual):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch{at}: {len(actual)} != {len(expected)}"
        places = [(i, f"{where}[{i}]") for i in range(len(expected))]
    else:
        if not subclasses and type(actual) is not type(expected):
            return f"The classes do not match{at}: {type(actual).__name__} and {type(expected).__name__}"
        return _tensor_difference(actual, expected, at, tolerances, equal_nan, checks)
    found = (_difference(actual[key], expected[key], inner, *rest) for key, inner in places)
    return next((text for text in found if text is not None), None)


def _is_sequence(value) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _tensor_difference(actual, expected, at: str, tolerances, equal_nan: bool, checks: dict) -> str | None:
    numbers = not isinstance(actual, Tensor) and not isinstance(expected, Tensor)
    if numbers and (actual is None or expected is None):
        return None if actual is expected else f"None mismatch{at}: {actual!r} is not {expected!r}"
    x, y = _tensor(actual), _tensor(expected)
    if x.shape != y.shape:
        return f"The values for attribute 'shape' do not match{at}: {tuple(x.shape)} != {tuple(y.shape)}"
    places = [t.placement if t.is_global else t.device for t in (x, y)]
    if checks["device"] and places[0] != places[1]:
        return f"The values for attribute 'device' do not match{at}: {places[0]} != {places[1]}"
    if checks["dtype"] and not numbers and x.dtype != y.dtype:
        return f"The values for attribute 'dtype' do not match{at}: {x.dtype} != {y.dtype}"
    if checks["stride"] and x.stride() != y.stride():
        return f"The values for attribute 'stride()' do not match{at}: {x.stride()} != {y.stride()}"
    known = [DEFAULTS.get(t.dtype.name, (0.0, 0.0)) for t in (x, y)]
    rtol, atol = [max(pair) for pair in zip(*known, strict=True)] if tolerances is None else tolerances
    return _value_difference(_wide(x), _wide(y), at, rtol, atol, equal_nan)


def _tensor(value: Any) -> Tensor:
    try:
        return value if isinstance(value, Tensor) else as_tensor(value)
    except (TypeError, ValueError):
        rule = "tensors, arrays, numbers, and sequences and mappings of them are compared"
        raise OpTypeError("assert_close(actual, expected)", f"a {type(value).__name__}", rule, "pass tensors") from None


def _wide(x: Tensor) -> np.ndarray:
    array = x.detach().numpy()
    return array if array.dtype.kind in "biuc" else array.astype(np.float64)


def _value_difference(x: np.ndarray, y: np.ndarray, at: str, rtol: float, atol: float, equal_nan: bool) -> str | None:
    close = np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan) if rtol or atol or equal_nan else x == y
    if close.all():
        return None
    kind = np.complex128 if x.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        apart = np.where(close, 0.0, np.abs(x.astype(kind) - y.astype(kind)))
        share = np.where(close, 0.0, apart / np.abs(y.astype(kind)))
    if x.ndim == 0:
        lines = [f"Scalars are not close{at}!", "", f"Expected {y.item()} but got {x.item()}."]
        lines += [f"Absolute difference: {apart} (up to {atol} allowed)"]
        return "\n".join([*lines, f"Relative difference: {share} (up to {rtol} allowed)"])
    count = int((~close).sum())
    lines = [f"Tensor-likes are not {'close' if rtol or atol else 'equal'}{at}!", ""]
    lines += [f"Mismatched elements: {count} / {x.size} ({100 * count / x.size:.1f}%)"]
    for name, values, bound in (("absolute", apart, atol), ("relative", share, rtol)):
        largest = int(np.argmax(np.nan_to_num(values, nan=-1.0)))  # NaN if all that differ are
        index = tuple(int(i) for i in np.unravel_index(largest, x.shape))
        lines.append(f"Greatest {name} difference: {values[index]} at index {index} (up to {bound} allowed)")
    return "\n".join(lines)
