"""What one run of a call leaves, and whether two runs leave the same."""

from __future__ import annotations

import dataclasses
import functools
import warnings
import zlib
from collections.abc import Callable

import numpy as np

from tests.support.generate import Call, numpy_dtype

from . import rounding
from .compare import TOLERANCE, Different, equal, least_accurate
from .libraries import Library, Local, Plain, Torch
from .spec import Spec

KINDS = (IndexError, KeyError, NotImplementedError, AttributeError, TypeError, ValueError, RuntimeError)


@functools.cache
def torch() -> Torch:
    """Return the peer."""
    return Torch()


@functools.cache
def local() -> Local:
    """Return sbpjax on one device."""
    return Local()


@dataclasses.dataclass
class Outcome:
    """What one run of a call left: plain values of the result and gradients, or the error."""

    result: object = None
    grads: list | None = None
    error: Exception | None = None


def attempt(run: Callable[[], Outcome]) -> Outcome:
    """Return what a run leaves, its error included."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return run()
        except KINDS as error:
            return Outcome(error=error)


def cotangent(plain: Plain, salt: int = 0) -> np.ndarray:
    """Return fixed random numbers shaped like a result; float32 holds them, so that they are the same in any dtype."""
    shape = plain.array.shape
    rng = np.random.default_rng([zlib.crc32(repr(shape).encode()), salt])
    values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if plain.dtype.startswith("complex") else 0)
    narrow = np.complex64 if np.iscomplexobj(values) else np.float32
    return np.asarray(values).astype(narrow).astype(numpy_dtype(plain.dtype))


def run(library: Library, fn, call: Call, *, grad: bool, double: bool = False) -> Outcome:
    """Run a call, and its gradients (first, or second) where the results have any."""

    def body():
        args, kwargs, leaves = library.build(call, grad)
        out = fn(*args, **kwargs)
        grads = gradients(library, out, leaves, double) if leaves else None
        return Outcome(library.plain(out), grads)

    return attempt(body)


def gradients(library: Library, out, leaves, double: bool = False, wrap=None):
    """Return plain gradients of results in leaves for fixed cotangents; None where nothing requires grad."""
    live = [t for t in library.tensors(out) if t.requires_grad]
    if not live:
        return None
    wrap = wrap or library.tensor
    given = [wrap(cotangent(library.plain(t))) for t in live]
    grad = library.package.autograd.grad
    found = grad(live, leaves, given, allow_unused=True, create_graph=double)
    if double:
        again = [(i, g) for i, g in enumerate(found) if g is not None and g.requires_grad]
        if not again:
            return None
        given = [wrap(cotangent(library.plain(g), 7 + i)) for i, g in again]
        found = grad([g for _, g in again], leaves, given, allow_unused=True)
    return [library.plain(g) if g is not None else None for g in found]


def same_outcome(
    got: Outcome, want: Outcome, call: Call, spec: Spec, *, scale: float = 1.0, again: Callable | None = None
) -> None:
    """Raise `Different` unless two outcomes agree: values and gradients, or the type of the error.

    Args:
        got: what sbpjax left.
        want: what it should be.
        call: the call.
        spec: its spec.
        scale: how many times the tolerances count.
        again: returns the outcome of another call where ``want`` comes from; results that differ are then compared by
            the size of its rounding errors.
    """
    try:
        _compare(got, want, call, spec, scale)
    except Different:
        if again is None or got.error is not None or want.error is not None:
            raise

        def results(other: Call):
            found = again(other)
            return None if found.error is not None else [found.result, found.grads]

        errors = rounding.errors(results, call, [want.result, want.grads])
        if errors is None:
            raise
        _compare(got, want, call, spec, scale, errors)


def _compare(got: Outcome, want: Outcome, call: Call, spec: Spec, scale: float, errors=(0.0, 0.0)) -> None:
    if want.error is not None:
        kind = next(k for k in KINDS if isinstance(want.error, k))
        if got.error is None:
            raise Different(f"no error; wanted {kind.__name__}: {first_line(want.error)}")
        kinds = (kind, TypeError) if kind is AttributeError else kind  # PyTorch's Python functions miss an attribute
        if not isinstance(got.error, kinds):
            raise Different(f"{got.error!r}; wanted {kind.__name__}: {first_line(want.error)}")
        return
    if got.error is not None:
        raise Different(f"{type(got.error).__name__}: {got.error}") from got.error
    floor = least_accurate(call.inputs())
    tol = tolerances(spec, scale)
    equal(got.result, want.result, tol=tol, floor=floor, error=errors[0])
    if (got.grads is None) != (want.grads is None):
        raise Different(f"gradients: {got.grads}; wanted {want.grads}")
    for i, (g, w) in enumerate(zip(got.grads or (), want.grads or (), strict=True)):
        leaf = [x for x in call.inputs() if x.differentiable][i]
        zeros = Plain(leaf.dtype, np.zeros_like(leaf.base))
        error = errors[1][i] if isinstance(errors[1], list) else 0.0
        equal(g or zeros, w or zeros, tol=tol, floor=floor, what=f"gradient of tensor {i}", size=1.0, error=error)


def tolerances(spec: Spec, scale: float) -> dict:
    """Return the tolerances of a spec, ``scale`` times as wide."""
    return {name: scale * value for name, value in {**TOLERANCE, **(spec.tol or {})}.items()}


def first_line(error: Exception) -> str:
    """Return the first line of an error's text."""
    return (str(error).splitlines() or [""])[0]


def flat(result) -> list:
    """Return the values in nested lists and tuples."""
    return [p for r in result for p in flat(r)] if isinstance(result, (list, tuple)) else [result]
