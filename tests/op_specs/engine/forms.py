"""The ways in which one call is tested; each raises `Different` or returns whether there was anything to test.

``forward``   value, dtype, shape and first gradients, against PyTorch
``corners``   the same at NaN, infinities, zeros and ties, where PyTorch has a value
``double``    second derivatives in float64 (not at kinks, where they are a convention), against PyTorch
``method``    ``x.op(...)``
``inplace``   ``x.op_(...)``, on a view of a base: what the base holds afterwards, gradients through the write
``out``       ``op(..., out=t)``
``dtypes``    the dtype that any mixture of dtypes promotes to (nothing is computed here: abstract tensors)
``errors``    wrong dims, shapes, types and keywords: the same builtin error type
``alias``     a write to the result shows in the input, where it does in PyTorch
``layouts``   on 2, 4, 2×2 and 2×3 devices under random sbps, values and gradients are those of one device
``traced``    inside `sbpjax.compile`, the same; ``traced_layouts``: on placements
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
import zlib
from collections.abc import Callable

import numpy as np

from sbpjax.testing.generate import Call, Dtype, Gen, Input, numpy_dtype, walk

from . import rounding
from .compare import TOLERANCE, Different, equal, least_accurate
from .excuses import finite_corners
from .libraries import Library, Local, Placed, Plain, Torch, view_of
from .spec import Spec

KINDS = (IndexError, KeyError, NotImplementedError, AttributeError, TypeError, ValueError, RuntimeError)
SUMMED = 8  # sums over other groupings: this many times the tolerance of one op


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


# -------------------------------------------------------------------------------------------------- against PyTorch


def forward(spec: Spec, call: Call) -> bool:
    """Compare value and first gradients."""
    if spec.check is not None:
        got = run(local(), spec.function(local()), call, grad=False)
        if got.error is not None:
            raise Different(f"{type(got.error).__name__}: {got.error}") from got.error
        spec.check(got.result, call)
        return True
    want = run(torch(), _peer(spec), call, grad=spec.grad)
    if want.error is not None and _lacks(want.error):
        return False
    differentiable = spec.grad
    if want.error is not None and "derivative for" in str(want.error):  # a step function without a zero derivative
        differentiable = False
        want = run(torch(), _peer(spec), call, grad=False)
    got = run(local(), _ours(spec), call, grad=differentiable and want.error is None)
    same_outcome(got, want, call, spec, again=functools.partial(run, torch(), _peer(spec), grad=differentiable))
    return True


def _lacks(error: Exception) -> bool:
    """Return whether PyTorch lacks a kernel on the CPU, or stumbled over itself: that says nothing of what is right."""
    return "not implemented for" in str(error) or "INTERNAL ASSERT FAILED" in str(error)


def _ours(spec: Spec):
    found = spec.function(local())
    if found is None:
        raise Different(f"sbpjax has no {spec.name}")
    return found


def _peer(spec: Spec):
    found = spec.function(torch(), of_peer=True)
    if found is None:
        raise LookupError(f"PyTorch has no {spec.name}: its spec needs a reference")
    return found


def corners(spec: Spec, call: Call) -> bool:
    """Compare value and first gradients where the inputs are what the spec's author would avoid."""
    if spec.check is not None or not any(x.differentiable for x in call.inputs()):
        return False
    want = run(torch(), _peer(spec), call, grad=spec.grad)
    if want.error is not None:  # some of PyTorch's kernels refuse NaN; what is refused is not what this form asks
        return False
    got = run(local(), _ours(spec), call, grad=spec.grad)
    same_outcome(got, want, call, spec, again=functools.partial(run, torch(), _peer(spec), grad=spec.grad))
    return True


def double(spec: Spec, call: Call) -> bool:
    """Compare second derivatives."""
    if not (spec.grad and spec.double) or spec.check is not None or not any(x.differentiable for x in call.inputs()):
        return False
    want = run(torch(), _peer(spec), call, grad=True, double=True)
    if want.error is not None or want.grads is None:
        return False
    got = run(local(), _ours(spec), call, grad=True, double=True)
    if got.error is None and got.grads is None:  # a derivative that is constant here, zero there
        got.grads = [None] * len(want.grads)
    again = functools.partial(run, torch(), _peer(spec), grad=True, double=True)
    same_outcome(got, want, call, spec, scale=100, again=again)
    return True


def _method_call(name: str):
    def method(x, *args, **kwargs):
        return getattr(x, name)(*args, **kwargs)

    return method


def method(spec: Spec, call: Call) -> bool:
    """Compare ``x.op(...)``."""
    if not (spec.method and call.args and isinstance(call.args[0], Input)) or spec.name.startswith("Tensor."):
        return False
    if spec.reference is not None or spec.check or spec.invariant or not hasattr(torch().package.Tensor, spec.last):
        return False
    want = run(torch(), _method_call(spec.last), call, grad=False)
    if want.error is not None:
        return False
    got = run(local(), _method_call(spec.last), call, grad=False)
    same_outcome(got, want, call, spec, again=functools.partial(run, torch(), _method_call(spec.last), grad=False))
    return True


def inplace(spec: Spec, call: Call) -> bool:
    """Compare ``x.op_(...)`` on a view of a base: the result, the base, and gradients."""
    name = spec.last if spec.last.endswith("_") else f"{spec.last}_"
    if not spec.inplace or spec.reference or spec.check or not call.args or not isinstance(call.args[0], Input):
        return False
    if not hasattr(torch().package.Tensor, name):
        return False

    def outcome(library: Library, grad: bool, call: Call) -> Outcome:
        args, kwargs, leaves = library.build(call, grad)
        first = call.args[0]
        base = (leaves[0] if first.differentiable and grad else library.tensor(first.base)).clone()
        x = view_of(base, first.suffix)
        out = getattr(x, name)(*args[1:], **kwargs)
        grads = gradients(library, [base], leaves) if leaves else None
        return Outcome([library.plain(out), library.plain(base), out is x], grads)

    grad = spec.grad
    want = attempt(lambda: outcome(torch(), grad, call))
    if want.error is not None and (_lacks(want.error) or isinstance(want.error, TypeError)):
        return False
    if want.error is not None and "derivative for" in str(want.error):  # PyTorch has none for this form
        grad = False
        want = attempt(lambda: outcome(torch(), grad, call))
    got = attempt(lambda: outcome(local(), grad, call))
    same_outcome(got, want, call, spec, again=lambda other: attempt(lambda: outcome(torch(), grad, other)))
    return True


def out(spec: Spec, call: Call) -> bool:
    """Compare ``op(..., out=t)``."""
    if spec.name.startswith("nn.functional."):
        return False  # there out= is no documented option
    if (
        not spec.out
        or spec.reference
        or spec.check
        or spec.invariant
        or "out" in call.kwargs
        or spec.name.startswith("Tensor.")
    ):
        return False

    def outcome(library: Library, fn, like) -> Outcome:
        args, kwargs, _ = library.build(call, grad=False)
        targets = [library.tensor(np.zeros_like(p.array)) for p in like]
        result = fn(*args, out=targets[0] if len(targets) == 1 else tuple(targets), **kwargs)
        same_objects = [a is b for a, b in zip(library.tensors(result), targets, strict=True)]
        return Outcome([[library.plain(t) for t in targets], same_objects])

    peer = _peer(spec)
    plain = run(torch(), peer, call, grad=False)
    if plain.error is not None:
        return False
    like = [p for p in _flat(plain.result) if isinstance(p, Plain)]
    if not like:
        return False
    want = attempt(lambda: outcome(torch(), peer, like))
    if want.error is not None:
        return False
    same_outcome(attempt(lambda: outcome(local(), _ours(spec), like)), want, call, spec)
    return True


def _flat(result) -> list:
    return [p for r in result for p in _flat(r)] if isinstance(result, (list, tuple)) else [result]


def dtypes(spec: Spec, call: Call) -> bool:
    """Compare dtypes and shapes of results for any mixture of dtypes; here nothing is computed."""
    if spec.check is not None or spec.reference is not None or not spec.traced or not call.inputs():
        return False
    want = run(torch(), _peer(spec), call, grad=False)
    if want.error is not None:
        return False

    def shapes(result):
        return walk(result, lambda p: (p.dtype, p.array.shape) if isinstance(p, Plain) else None)

    def ours() -> Outcome:
        package = local().package
        with package.abstract():
            args, kwargs, _ = Shapes().build(call, grad=False)
            found = _ours(spec)(*args, **kwargs)
        return Outcome(_abstract(found, package))

    got = attempt(ours)
    if isinstance(got.error, local().package.errors.AbstractError):
        return False  # it reads values
    if got.error is not None:
        raise Different(f"{type(got.error).__name__}: {got.error}") from got.error
    wanted = _lists(shapes(want.result))
    if got.result != wanted:
        raise Different(f"dtypes and shapes {got.result}; wanted {wanted}")
    return True


def _abstract(found, package):
    if isinstance(found, package.Tensor):
        return (found.dtype.name, tuple(found.shape))
    return [_abstract(x, package) for x in found] if isinstance(found, (list, tuple)) else None


def _lists(found):
    """Return a result with lists for the tuples that hold tensors."""
    if isinstance(found, (list, tuple)) and not (len(found) == 2 and isinstance(found[0], str)):
        return [_lists(x) for x in found]
    return found


class Shapes(Local):
    """Sbpjax on tensors without elements."""

    def tensor(self, array: np.ndarray):
        return self.package.empty(array.shape, dtype=getattr(self.package, array.dtype.name))


def errors(spec: Spec, call: Call) -> bool:
    """Compare the error type of a wrong call."""
    if spec.check is not None or spec.reference is not None:
        return False
    want = run(torch(), _peer(spec), call, grad=False)
    if want.error is None or _lacks(want.error):
        return False
    same_outcome(run(local(), _ours(spec), call, grad=False), want, call, spec)
    return True


def alias(spec: Spec, call: Call) -> bool:
    """Compare what a write to the result does to the input."""
    if not spec.aliases:
        return False

    def outcome(library: Library, fn) -> Outcome:
        args, kwargs, _ = library.build(call, grad=False)
        results = library.tensors(fn(*args, **kwargs))
        for i, r in enumerate(results):
            r.fill_(i + 1)
        return Outcome([library.plain(x) for x in library.tensors(list(args))])

    want = attempt(lambda: outcome(torch(), _peer(spec)))
    same_outcome(attempt(lambda: outcome(local(), _ours(spec))), want, call, spec)
    return True


# ------------------------------------------------------------------------------------------ against its own result


def layouts(spec: Spec, call: Call, mesh: str = "2x2", seed: int = 0, traced: bool = False) -> bool:
    """Compare a call under random sbps with the same call on one device."""
    if not spec.layouts or not any(x.base.ndim for x in call.inputs()):
        return False
    fn = _ours(spec)
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
    plains = [p for p in (*_flat(outcome.result), *(outcome.grads or ())) if isinstance(p, Plain)]
    arrays = [x.base for x in call.inputs()] + [p.array for p in plains]
    return all(np.isfinite(a.astype(np.complex128)).all() for a in arrays)


def traced(spec: Spec, call: Call) -> bool:
    """Compare a call inside a compiled function with the same call outside."""
    if not spec.traced or not call.inputs():
        return False
    fn = _ours(spec)
    want = run_seeded(local(), fn, call, spec)
    if want.error is not None or not any(isinstance(p, Plain) for p in _flat(want.result)):
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
    results = [p for p in _flat(plain.result) if isinstance(p, Plain)]
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


FORMS: dict[str, Callable] = {
    "forward": forward,
    "corners": corners,
    "double": double,
    "method": method,
    "inplace": inplace,
    "out": out,
    "dtypes": dtypes,
    "errors": errors,
    "alias": alias,
    "layouts": layouts,
    "traced": traced,
    "traced_layouts": traced_layouts,
}


def draw(spec: Spec, form: str, seed, replay=None) -> tuple[Gen, Call] | None:
    """Draw the call that a form is to test; None if the draw has nothing for that form."""
    options: dict = {}
    if form == "double":
        options = {"floats": ("float64",), "ties": False}  # at a kink a second derivative is what one calls it
    elif form == "corners":
        options = {"floats": ("float32", "float64"), "corners": "finite" if finite_corners(spec.name) else "all"}
    elif form == "dtypes":
        options = {"wild": True, "views": False}
    elif form == "errors":
        options["fault"] = ("dim", "shape", "type", "keyword", "missing")[int(np.random.default_rng(seed).integers(5))]
        options["views"] = False
    g = Gen(seed, replay=replay, **options)
    made = spec.make(g)
    if form == "errors":
        made = broken(spec, made, options["fault"], g.hit)
    return None if made is None else (g, made)


def broken(spec: Spec, call: Call, fault: str, hit: bool) -> Call | None:
    """Return a call with a fault in it, None if the fault does not fit."""
    if fault in ("dim", "shape"):
        return call if hit else None
    if fault == "keyword":
        return Call(call.args, {**call.kwargs, "no_such_option": 1})
    if not call.args or not isinstance(call.args[0], Input) or spec.name.startswith("Tensor."):
        return None
    return Call(("a", *call.args[1:]) if fault == "type" else call.args[:-1], call.kwargs)
