"""When two results are equal: dtype, shape and structure exactly, values to the accuracy of the dtype.

Tolerances are relative to each value and, for what nearly cancels, to the largest one in the array (at most 1): float32
sums may be ordered differently, hence a few units in the last place. A spec may have its own, with a reason. Where
more cancels than a result shows, PyTorch's own rounding error says how much (`rounding`).
"""

from __future__ import annotations

import numpy as np

from tests.support.generate import BF16

from .libraries import Plain

TOLERANCE = {
    "float64": 1e-11,
    "float32": 5e-6,
    "bfloat16": 1.6e-2,
    "float16": 2e-3,
    "complex64": 5e-6,
    "complex128": 1e-11,
}
# Denormal numbers count as zeros on CPUs, as XLA computes.
LEAST = {n: float(np.finfo(n).tiny) for n in ("float32", "float64", "complex64", "complex128")}


class Different(AssertionError):
    """Two results are not equal."""


def equal(
    got,
    want,
    *,
    tol: dict | None = None,
    what: str = "result",
    floor: str | None = None,
    size: float = 0.0,
    error: float | list = 0.0,
) -> None:
    """Raise `Different` unless two plain results are equal.

    Args:
        got: what sbpjax gave.
        want: what it should be.
        tol: tolerances by dtype, where a spec has its own.
        what: names the values in the message.
        floor: a dtype; the result is no more accurate than that.
        size: the magnitude of what was added up, where the result alone does not show it: the cotangents of gradients.
        error: how far rounding may move values, one number or one per result (`rounding`).
    """
    if isinstance(want, Plain):
        if not isinstance(got, Plain):
            raise Different(f"{what}: {got!r} is no tensor; wanted {want!r}")
        _tensors(got, want, {**TOLERANCE, **(tol or {})}, what, floor, size, error if isinstance(error, float) else 0.0)
    elif isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            raise Different(f"{what}: {got!r}; wanted {want!r}")
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            each = error[i] if isinstance(error, list) else error
            equal(g, w, tol=tol, what=f"{what}[{i}]", floor=floor, size=size, error=each)
    elif isinstance(want, float) and isinstance(got, float):
        if not np.isclose(got, want, rtol=1e-6, atol=1e-8, equal_nan=True):
            raise Different(f"{what}: {got!r}; wanted {want!r}")
    elif type(got) is not type(want) or got != want:
        raise Different(f"{what}: {got!r}; wanted {want!r}")


def _tensors(got: Plain, want: Plain, tolerance: dict, what: str, floor: str | None, size: float, error: float) -> None:
    if got.dtype != want.dtype:
        raise Different(f"{what}: dtype {got.dtype}; wanted {want.dtype}")
    if got.array.shape != want.array.shape:
        raise Different(f"{what}: shape {list(got.array.shape)}; wanted {list(want.array.shape)}")
    if want.dtype not in TOLERANCE:
        if not np.array_equal(got.array, want.array):
            raise Different(f"{what}: {got!r}; wanted {want!r}")
        return
    rtol = max(tolerance[want.dtype], tolerance.get(floor or "", 0.0))
    wide = np.complex128 if want.dtype.startswith("complex") else np.float64
    g, w = got.array.astype(wide), want.array.astype(wide)
    finite = np.abs(w[np.isfinite(w)])
    atol = max(rtol * max(size, min(float(finite.max(initial=0.0)), 1.0)), error, LEAST.get(want.dtype, 0.0))
    if not np.allclose(g, w, rtol=rtol, atol=atol, equal_nan=True):
        raise Different(f"{what}: {got!r}; wanted {want!r}; off by {_off(g, w):.3g}, tolerance {rtol:.3g}")


def _off(got: np.ndarray, want: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        difference = np.abs(got - want)
    return float(np.nanmax(np.where(np.isfinite(difference), difference, np.nan), initial=0.0))


def least_accurate(inputs) -> str | None:
    """Return the least accurate float dtype among inputs, None if there is none."""
    order = ["bfloat16", "float16", "float32", "complex64"]
    names = {("bfloat16" if x.base.dtype == BF16 else x.base.dtype.name) for x in inputs}
    return next((n for n in order if n in names), None)
