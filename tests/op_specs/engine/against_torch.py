"""The forms that compare a call with PyTorch; each raises `Different` or returns whether there was anything to test."""

from __future__ import annotations

import functools

import numpy as np

from tests.support.generate import Call, Input, walk

from .compare import Different
from .libraries import Library, Local, Plain, view_of
from .outcome import Outcome, attempt, flat, gradients, local, run, same_outcome, torch
from .spec import Spec


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
    got = run(local(), ours(spec), call, grad=differentiable and want.error is None)
    same_outcome(got, want, call, spec, again=functools.partial(run, torch(), _peer(spec), grad=differentiable))
    return True


def _lacks(error: Exception) -> bool:
    """Return whether PyTorch lacks a kernel on the CPU, or stumbled over itself: that says nothing of what is right."""
    return "not implemented for" in str(error) or "INTERNAL ASSERT FAILED" in str(error)


def ours(spec: Spec):
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
    got = run(local(), ours(spec), call, grad=spec.grad)
    same_outcome(got, want, call, spec, again=functools.partial(run, torch(), _peer(spec), grad=spec.grad))
    return True


def double(spec: Spec, call: Call) -> bool:
    """Compare second derivatives."""
    if not (spec.grad and spec.double) or spec.check is not None or not any(x.differentiable for x in call.inputs()):
        return False
    want = run(torch(), _peer(spec), call, grad=True, double=True)
    if want.error is not None or want.grads is None:
        return False
    got = run(local(), ours(spec), call, grad=True, double=True)
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
    like = [p for p in flat(plain.result) if isinstance(p, Plain)]
    if not like:
        return False
    want = attempt(lambda: outcome(torch(), peer, like))
    if want.error is not None:
        return False
    same_outcome(attempt(lambda: outcome(local(), ours(spec), like)), want, call, spec)
    return True


def dtypes(spec: Spec, call: Call) -> bool:
    """Compare dtypes and shapes of results for any mixture of dtypes; here nothing is computed."""
    if spec.check is not None or spec.reference is not None or not spec.traced or not call.inputs():
        return False
    want = run(torch(), _peer(spec), call, grad=False)
    if want.error is not None:
        return False

    def shapes(result):
        return walk(result, lambda p: (p.dtype, p.array.shape) if isinstance(p, Plain) else None)

    def abstractly() -> Outcome:
        package = local().package
        with package.abstract():
            args, kwargs, _ = Shapes().build(call, grad=False)
            found = ours(spec)(*args, **kwargs)
        return Outcome(_abstract(found, package))

    got = attempt(abstractly)
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
    same_outcome(run(local(), ours(spec), call, grad=False), want, call, spec)
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
    same_outcome(attempt(lambda: outcome(local(), ours(spec))), want, call, spec)
    return True
