"""Forms that compare sbpjax with itself: on placements under random sbps, and inside a compiled function."""

from __future__ import annotations

import dataclasses
import zlib

import numpy as np

from tests.support.generate import Call, Dtype, Input, walk

from .against_torch import ours
from .compare import Different
from .libraries import Library, Local, Placed, Plain, view_of
from .outcome import Outcome, attempt, cotangent, flat, local, run, same_outcome
from .spec import Spec

SUMMED = 8  # sums over other groupings: this many times the tolerance of one op


def layouts(spec: Spec, call: Call, mesh: str = "2x2", seed: int = 0, traced: bool = False) -> bool:
    """Compare a call under random sbps with the same call on one device."""
    if not spec.layouts or not any(x.base.ndim for x in call.inputs()):
        return False
    fn = ours(spec)
    plain = run(local(), fn, call, grad=spec.grad)
    if plain.error is not None:
        return False
    finite = _finite(plain, call) and not spec.name.endswith("_")  # a write into summands must be linear
    placed = Placed(mesh, np.random.default_rng([seed, zlib.crc32(mesh.encode())]), partial=finite)
    if traced:
        got = attempt(lambda: _traced(placed, fn, call, spec, plain))
    else:
        got = run_seeded(placed, fn, call, spec)
    values = iter(placed.values[: len(call.inputs())])
    moved = walk((call.args, call.kwargs), lambda x: _with(x, values))
    alone = run_seeded(local(), fn, Call(*moved), spec)
    try:
        same_outcome(got, alone, call, spec, scale=SUMMED)
    except Different as error:
        raise Different(f"on {mesh} under {placed.seen}: {error}") from error.__cause__
    return True


def run_seeded(library: Library, fn, call: Call, spec: Spec) -> Outcome:
    """Run a call with the random generator at one seed."""
    if spec.check is not None:
        local().package.manual_seed(7)
    return run(library, fn, call, grad=spec.grad and spec.check is None)


def _with(x, values):
    return dataclasses.replace(x, base=next(values)) if isinstance(x, Input) else x


def _finite(outcome: Outcome, call: Call) -> bool:
    plains = [p for p in (*flat(outcome.result), *(outcome.grads or ())) if isinstance(p, Plain)]
    arrays = [x.base for x in call.inputs()] + [p.array for p in plains]
    return all(np.isfinite(a.astype(np.complex128)).all() for a in arrays)


def traced(spec: Spec, call: Call) -> bool:
    """Compare a call inside a compiled function with the same call outside."""
    if not spec.traced or not call.inputs():
        return False
    fn = ours(spec)
    want = run_seeded(local(), fn, call, spec)
    if want.error is not None or not any(isinstance(p, Plain) for p in flat(want.result)):
        return False
    got = attempt(lambda: _traced(local(), fn, call, spec, want))
    if spec.check is not None and got.error is None:
        spec.check(got.result, call)  # a program draws from a stream of its own
        return True
    same_outcome(got, want, call, spec, scale=SUMMED)
    return True


def _traced(library: Local, fn, call: Call, spec: Spec, plain: Outcome) -> Outcome:
    """Return the outcome of a call and its gradients, computed by one compiled program."""
    package = library.package
    bases = [library.tensor(x.base) for x in call.inputs()]
    results = [p for p in flat(plain.result) if isinstance(p, Plain)]
    grad = spec.grad and spec.check is None and plain.grads is not None
    given = [library.tensor(cotangent(p)) if grad and _is_float(p.dtype) else None for p in results]

    def program(tensors, cotangents):
        following, leaves = iter(tensors), []

        def made(x):
            if isinstance(x, Dtype):
                return getattr(package, x.name)
            if not isinstance(x, Input):
                return x
            base = next(following)
            if grad and x.differentiable:
                base = base.detach().requires_grad_(True)
                leaves.append(base)
            return view_of(base.clone() if spec.name.endswith("_") else base, x.suffix)

        args, kwargs = walk((call.args, call.kwargs), made)
        out = fn(*args, **kwargs)
        live = [(t, c) for t, c in zip(library.tensors(out), cotangents, strict=True) if t.requires_grad]
        if not leaves or not live:
            return out, None
        return out, package.autograd.grad([t for t, _ in live], leaves, [c for _, c in live], allow_unused=True)

    if spec.check is not None:
        package.manual_seed(7)
    out, grads = package.compile(program)(bases, given)
    if grads is not None:
        grads = [None if g is None else library.plain(g) for g in grads]
    return Outcome(library.plain(out), grads)


def _is_float(name: str) -> bool:
    return name.startswith(("float", "bfloat", "complex"))


def traced_layouts(spec: Spec, call: Call, mesh: str = "2x2", seed: int = 0) -> bool:
    """Compare a call inside a compiled function on a placement with the same call on one device."""
    return spec.traced and spec.check is None and layouts(spec, call, mesh, seed, traced=True)
