"""Layout independence of one op: under random layouts, value and gradients are those of one device.

The cases are those that `tests/ops` compares with PyTorch: every op of the public surface, with inputs and attributes
at which it has something to get wrong. Here the same op runs through the SBP compiler.
"""

from __future__ import annotations

import functools
import importlib
import zlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.eager import global_ops
from sbpjax.sbp import algebra
from tests.independence.layouts import lay_out, random_codes
from tests.ops.checker import BF16, TOLERANCE, Case

SUMMED = 8  # sums over other groupings: this many times the tolerance of one op against PyTorch


@functools.cache
def all_cases() -> tuple[Case, ...]:
    """Return the cases of every module below `tests/ops` that have an array to lay out."""
    found, folder = [], Path(__file__).parent.parent
    for path in sorted((folder / "ops").rglob("test_*.py"), key=lambda path: path.name):
        module = importlib.import_module(".".join(("tests", *path.relative_to(folder).with_suffix("").parts)))
        for value in vars(module).values():
            for mark in getattr(value, "pytestmark", ()):
                if mark.name == "parametrize" and mark.args[0] == "case":
                    found += [c for c in mark.args[1] if isinstance(c, Case) and _has_array(c)]
    return tuple(found)


def _has_array(case: Case) -> bool:
    return any(isinstance(x, np.ndarray) and x.ndim for x in case.inputs)


# Modules of ops that few programs call, and their tests.
RARE = """decompose solve matrix_norm fft signal special complex distance stats place pairs fused boxes
 test_decompose test_fft test_special test_pairs test_distance test_stats test_place test_fused""".split()
EVERY = 6


def sample(per_op: int) -> list[Case]:
    """Return up to ``per_op`` cases of every op, of one in `EVERY` among rare ones; the same ones in every run."""
    groups: dict = {}
    for case in all_cases():
        groups.setdefault(case.fn, []).append(case)
    chosen = []
    for group in groups.values():
        fn = group[0].fn
        if fn.__module__.rpartition(".")[2] in RARE and _seed(fn.__name__) % EVERY:
            continue
        order = np.random.default_rng(_seed(group[0].fn.__name__)).permutation(len(group))
        chosen += [group[i] for i in order[:per_op]]
    return chosen


def _seed(text: str) -> int:
    return zlib.crc32(text.encode())


def check(case: Case, mesh: str, turn: int = 0) -> None:
    """Run a case under random layouts and compare value and gradients with one device."""
    rng = np.random.default_rng([_seed(case.id), _seed(mesh), turn])
    outs = _alone(functools.partial(case.fn, **case.attrs), case.inputs)
    cotangents = [np.asarray(rng.normal(size=o.shape)).astype(o.dtype) for o in outs if _is_float(o.dtype)]
    backward = _backward_of(case, outs)
    grads = _alone(backward, [*case.inputs, *cotangents]) if backward is not None else []
    partial = all(_finite(x) for x in (*case.inputs, *outs, *grads))
    given = [_laid_out(x, mesh, rng, partial) for x in case.inputs]
    _compare(case, case.fn, tuple(case.attrs.items()), given, case.id, mesh)
    if backward is not None:
        given += [_laid_out(g, mesh, rng, partial) for g in cotangents]
        _compare(case, backward, (), given, f"gradients of {case.id}", mesh)


def _alone(fn, inputs) -> list:
    """Return the outputs of a function on one device."""
    with np.errstate(all="ignore"):
        return _flat(jax.jit(fn)(*[_on_device(x) for x in inputs]))


def _finite(x) -> bool:
    return not _is_float(np.asarray(x).dtype) or bool(np.isfinite(np.asarray(x).astype(np.complex128)).all())


def _laid_out(x, mesh: str, rng, partial: bool):
    """Return ``(array, layout, logical)`` of an input; numbers and 0-d arrays stay local.

    Partial sums are drawn for finite cases alone: a summand times infinity is NaN though the sum's product is not.
    """
    if not isinstance(x, np.ndarray) or not x.ndim:
        return _on_device(x), None, x
    codes = random_codes(rng, x.ndim, 1 if mesh == "1d" else 2)
    return lay_out(x, mesh, codes if partial else tuple(algebra.B if c == algebra.P else c for c in codes), rng)


def _compare(case: Case, fn, static, given, what: str, mesh: str) -> None:
    arrays, layouts, logical = zip(*given, strict=True)
    wanted = _alone(functools.partial(fn, **dict(static)), logical)
    if all(x is None for x in layouts):
        return
    outs, out_layouts = global_ops.execute(fn, static, arrays, layouts)
    ins = [None if x is None else algebra.nd_name(x.codes) for x in layouts]
    seen = f"{what} on {mesh}: {ins} -> {[algebra.nd_name(x.codes) for x in out_layouts]}"
    for array, layout, want in zip(outs, out_layouts, wanted, strict=True):
        same(conversions.to_logical(array, layout), want, case, seen)


def _backward_of(case: Case, outs):
    """Return the function of inputs and cotangents that gives the gradients of float arrays; None if there are none."""
    arrays = [i for i, x in enumerate(case.inputs) if isinstance(x, np.ndarray) and x.ndim and _is_float(x.dtype)]
    needs = tuple(i for i in arrays if i not in case.const)
    live = tuple(i for i, o in enumerate(outs) if _is_float(o.dtype))
    if not case.grad or not needs or not live:
        return None
    return _backward(case.fn, tuple(case.attrs.items()), needs, live, len(case.inputs))


@functools.cache
def _backward(fn, static, needs, live, count):
    """Return the function of inputs and cotangents that gives the gradients of the inputs ``needs``."""

    def backward(*everything):
        inputs, cotangents = everything[:count], everything[count:]

        def forward(*chosen):
            full = list(inputs)
            for i, x in zip(needs, chosen, strict=True):
                full[i] = x
            outs = _flat(fn(*full, **dict(static)))
            return tuple(outs[i] for i in live)

        return jax.vjp(forward, *[inputs[i] for i in needs])[1](tuple(cotangents))

    return backward


def _flat(result) -> list:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _on_device(x):
    return jnp.asarray(x) if isinstance(x, np.ndarray) else x


def _is_float(dtype) -> bool:
    return dtype == BF16 or np.dtype(dtype).kind in "fc"


def same(got, want, case: Case, seen: str) -> None:
    """Assert equal values, up to the order of floating-point sums."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape, (
        f"{seen}: {got.dtype}{got.shape} {want.dtype}{want.shape}"
    )
    if not _is_float(want.dtype):
        np.testing.assert_array_equal(got, want, err_msg=seen)
        return
    names = {x.dtype.name for x in case.inputs if isinstance(x, np.ndarray)} | {want.dtype.name}
    tolerance = SUMMED * max(case.tol or 0.0, *(TOLERANCE.get(n, 0.0) for n in names))
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    scale = float(np.abs(want[np.isfinite(want)]).max(initial=0.0))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale, err_msg=seen)
