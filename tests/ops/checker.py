"""One checker for all ops: value, dtype, shape and gradients against torch's autograd.

A test file lists cases, each an op, the torch function with the same meaning, inputs and static attributes::

    CASES = [case(ew.exp, torch.exp, F(3, 4)), case(rd.sum, torch.sum, F(3, 4), dim=1), ...]
    test_values = run(CASES)

Inputs are NumPy arrays (`F` floats, `I` integers, `B` bools), numbers or None. The op runs inside `jax.jit` with the
numbers as arguments, which is how tensors call it: there a number is a weakly typed scalar.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

# Relative to the largest magnitude in the compared array; float32 sums are ordered differently, hence not 1 ulp.
TOLERANCE = {
    "float64": 1e-12,
    "float32": 3e-6,
    "bfloat16": 1e-2,
    "float16": 1e-3,
    "complex64": 3e-6,
    "complex128": 1e-12,
}
BF16 = jnp.bfloat16


def F(*shape, dtype=np.float32, low=None, high=None, seed=0):
    """Return normal (or, with bounds, uniform) floats of ``shape``."""
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape) if low is None else rng.uniform(low, high, size=shape)
    return np.asarray(x).astype(dtype)


def I(*shape, low=0, high=5, dtype=np.int64, seed=0):  # noqa: E743
    """Return integers in [low, high) of ``shape``."""
    return np.asarray(np.random.default_rng([seed, *shape]).integers(low, high, size=shape)).astype(dtype)


def B(*shape, seed=0):
    """Return random bools of ``shape``."""
    return np.asarray(np.random.default_rng([seed, *shape]).random(shape) < 0.5)


def A(*values, dtype=np.float32):
    """Return the given values as a 1-d array."""
    return np.array(values, dtype)


@dataclasses.dataclass(frozen=True)
class Case:
    """One comparison; see the fields of `case`."""

    fn: Callable
    ref: Callable
    inputs: tuple
    attrs: dict
    grad: bool
    tol: float | None
    ref_attrs: dict
    const: tuple

    @property
    def id(self) -> str:
        """Name the op, its inputs and its attributes."""
        inputs = ",".join(
            f"{x.dtype.name}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in self.inputs
        )
        attrs = ",".join(f"{k}={v}" for k, v in self.attrs.items())
        return f"{self.fn.__name__}-{inputs}-{attrs}".replace(" ", "")


def case(
    fn, ref, *inputs, grad: bool = True, tol: float | None = None, ref_attrs: dict | None = None, const=(), **attrs
) -> Case:
    """Describe one comparison.

    Args:
        fn: the op.
        ref: the torch function; called as ``ref(*inputs, **attrs)``.
        inputs: arrays, numbers or None.
        grad: compare gradients too (of all float arrays).
        tol: relative tolerance, where the default of the dtype does not fit, with a reason beside the case.
        ref_attrs: torch's keywords, where they are not those of the op.
        const: inputs whose gradient torch does not have.
        attrs: the static attributes.
    """
    return Case(fn, ref, inputs, attrs, grad, tol, attrs if ref_attrs is None else ref_attrs, const)


def beside_torch(fn, *inputs, **attrs) -> Case:
    """Describe the comparison with the function of the same name in torch."""
    return case(fn, getattr(torch, fn.__name__), *inputs, **attrs)


def run(cases: list[Case], per_op: int | None = None):
    """Return a parametrized test over the cases; with ``per_op`` so many of each op, the others marked exhaustive."""
    groups: dict = {}
    for c in cases:
        groups.setdefault(c.fn, []).append(c)
    chosen = []
    for group in groups.values():
        order = np.random.default_rng(len(group)).permutation(len(group))
        few = {id(group[i]) for i in order[: per_op or len(group)]}
        chosen += [c if id(c) in few else pytest.param(c, marks=pytest.mark.exhaustive) for c in group]

    @pytest.mark.parametrize("case", chosen, ids=lambda c: c.id)
    def test(case):
        check(case)

    return test


def to_torch(x: Any):
    """Return a NumPy array as a torch tensor, bfloat16 included; other things unchanged."""
    if not isinstance(x, np.ndarray):
        return x
    if x.dtype == BF16:
        return torch.from_numpy(x.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(x.copy())


def to_numpy(x: torch.Tensor) -> np.ndarray:
    """Return a torch tensor as a NumPy array, bfloat16 included."""
    x = x.detach().resolve_conj()
    return x.float().numpy().astype(BF16) if x.dtype == torch.bfloat16 else x.numpy()


def torch_dtype(dtype):
    """Return the torch dtype of a NumPy dtype."""
    return torch.bfloat16 if np.dtype(dtype) == BF16 else torch.from_numpy(np.zeros(0, dtype)).dtype


def check(case: Case) -> None:
    """Compare one case."""
    diff = tuple(
        i
        for i, x in enumerate(case.inputs)
        if isinstance(x, np.ndarray) and (x.dtype == BF16 or x.dtype.kind in "fc") and i not in case.const
    )
    tensors = [to_torch(x) for x in case.inputs]
    if case.grad:
        for i in diff:
            tensors[i].requires_grad_(True)
    ref_attrs = {k: torch_dtype(v) if isinstance(v, np.dtype) else v for k, v in case.ref_attrs.items()}
    want = case.ref(*tensors, **ref_attrs)
    want = list(want) if isinstance(want, (tuple, list)) else [want]
    rng = np.random.default_rng(1)
    cotangents = [_cotangent(rng, w) for w in want]
    live = [i for i, w in enumerate(want) if case.grad and w.requires_grad]
    want_grads = []
    if live:
        want_grads = torch.autograd.grad(
            [want[i] for i in live],
            [tensors[i] for i in diff],
            [to_torch(cotangents[i]) for i in live],
            allow_unused=True,
        )
    got, got_grads = _ours(case, diff if live else (), live, cotangents)
    assert len(got) == len(want), f"{len(got)} outputs, torch has {len(want)}"
    tol = _tolerance(case)
    for g, w in zip(got, want, strict=True):
        compare(g, to_numpy(w), tol)
    for i, g, w in zip(diff, got_grads, want_grads, strict=bool(live)):
        w = np.zeros(case.inputs[i].shape, case.inputs[i].dtype) if w is None else to_numpy(w)
        compare(g, w, tol, f"gradient of input {i}")


def _cotangent(rng, w):
    """Return random numbers in the shape and dtype of an output; None for integers and bools."""
    if not (w.is_floating_point() or w.is_complex()):
        return None
    drawn = rng.normal(size=tuple(w.shape))
    return np.asarray(drawn + 1j * rng.normal(size=drawn.shape) if w.is_complex() else drawn).astype(to_numpy(w).dtype)


def _tolerance(case: Case) -> float | None:
    """Return the case's own tolerance, or the loosest of its float inputs' dtypes (it computes no better than that)."""
    names = [x.dtype.name for x in case.inputs if isinstance(x, np.ndarray) and x.dtype.name in TOLERANCE]
    return case.tol if case.tol is not None or not names else max(TOLERANCE[n] for n in names)


def _ours(case: Case, diff, live, cotangents):
    def program(*inputs):
        def forward(*chosen):
            full = list(inputs)
            for i, x in zip(diff, chosen, strict=True):
                full[i] = x
            out = case.fn(*full, **case.attrs)
            return list(out) if isinstance(out, (tuple, list)) else [out]

        if not diff:
            return forward(), []
        out, pullback = jax.vjp(lambda *c: [forward(*c)[i] for i in live], *(inputs[i] for i in diff))
        grads = [jnp.conj(g) for g in pullback([np.conj(cotangents[i]) for i in live])]  # torch's are the conjugates
        return forward(*(inputs[i] for i in diff)), grads

    outs, grads = jax.jit(program)(*(jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in case.inputs))
    for out in outs:
        assert not jax.typeof(out).weak_type, "the result has a weak type"
    return [np.asarray(x) for x in outs], [np.asarray(x) for x in grads]


def compare(got: np.ndarray, want: np.ndarray, tol: float | None = None, what: str = "value") -> None:
    """Assert equal dtype and shape, and equal values to ``tol`` times the largest finite magnitude."""
    assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, torch has {want.dtype}"
    assert got.shape == want.shape, f"{what}: shape {got.shape}, torch has {want.shape}"
    if got.dtype != BF16 and got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    tol = max(TOLERANCE[got.dtype.name], tol or 0.0)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    finite = np.abs(want[np.isfinite(want)])
    scale = float(finite.max(initial=0.0))
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol * min(scale, 1.0), err_msg=what)


@functools.cache
def special(dtype=np.float32) -> np.ndarray:
    """Return the floats at which functions have corners: both zeros, infinities, NaN, halves, small and large."""
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0, -1.0, 1e-30, 3.0, -7.0, 30.0]
    return np.array(values).astype(dtype)
