"""`Op`: a pure function with its static attributes, compiled once; `Entry`: its backward, made by liveness.

Worked case: for ``mul(x, y)`` where only ``x`` requires grad, the jaxpr of the vjp is ``g * y``. It reads ``y`` and
not ``x``, so `Entry.keep` is ``(1,)``: a recorded op saves ``y`` alone, and its backward runs a cached program on
``(y, g)``. For ``add`` nothing is saved. This is the *recompute form*: what the backward needs of the forward's
intermediate values it computes again.
"""

from __future__ import annotations

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Var, jaxpr_as_fun
from jax.interpreters import partial_eval as pe

_OPS: dict = {}
_MAX_OPS = 50_000


class Op:
    """A pure function of arrays with fixed static attributes.

    Attributes:
        fn: the function over logical arrays, called ``fn(*arrays, **dict(static))``.
        static: ``(name, value)`` pairs.
        traced: the function with its attributes bound.
        call: the compiled function.
        entries: backward entries by ``(which inputs need grad, avals)``.
    """

    __slots__ = ("call", "check", "entries", "fn", "name", "static", "traced")

    def __init__(self, fn, static: tuple = (), name: str | None = None) -> None:
        self.fn = fn
        self.static = static
        self.name = name or getattr(fn, "__name__", "op")
        self.traced = _closed(fn, dict(static), self.name) if static else fn
        self.entries = {}
        self.check = _VERSION_CHECK.get(self.name, "inputs")

    def __getattr__(self, name: str):
        """Make `call` on first use: importing sbpjax makes hundreds of ops, a program uses a few."""
        if name != "call":
            raise AttributeError(name)
        traced = self.traced

        def call(*arrays):  # a fresh function per Op: jit's cache is keyed by the function
            return traced(*arrays)

        call.__name__ = self.name
        self.call = jax.jit(call)
        return self.call


def _closed(fn, keywords: dict, name: str):
    def closed(*arrays):
        return fn(*arrays, **keywords)

    closed.__name__ = name
    return closed


# What PyTorch saves for backward where this package saves something else; it decides which in-place write is an error.
_SAVES_OUTPUT = "exp exp2 expm1 sigmoid tanh tan sqrt rsqrt reciprocal relu softmax log_softmax cumprod".split()
_SAVES_NO_INPUT = "sort topk max_dim min_dim cummax cummin median_dim kthvalue sum mean".split()
_VERSION_CHECK: dict[str, str] = {**dict.fromkeys(_SAVES_OUTPUT, "outputs"), **dict.fromkeys(_SAVES_NO_INPUT, "none")}


def op_of(fn, static: tuple = ()) -> Op:
    """Return the one `Op` of a function and its static attributes."""
    # the classes tell 2 from 2.0 and True, which are equal as keys
    key = (fn, static, *[value.__class__ for _, value in static]) if static else fn
    found = _OPS.get(key)
    if found is None:
        if len(_OPS) >= _MAX_OPS:  # programs with ever-changing attributes must not grow without bound
            _OPS.clear()
        found = _OPS[key] = Op(fn, static)
    return found


class Entry:
    """The backward of an op at given avals.

    Attributes:
        needs: the inputs that get a gradient.
        keep: the inputs the backward reads, so the recorded op saves them.
        diff_outs: the outputs that can have a cotangent.
        n_out: the number of outputs; 0 dims of structure: a single array has 1.
        single: whether the function returns one array rather than a tuple.
        passed: where some gradients of `first` are cotangents as they come, per gradient the cotangent's number or
            None; None where there are none such. A compiled program would copy them.
        rest: the backward of the other gradients; None if there are no others.
    """

    __slots__ = (
        "_structs",
        "_variants",
        "diff_outs",
        "first",
        "keep",
        "keep_all",
        "n_out",
        "needs",
        "op",
        "out_structs",
        "passed",
        "rest",
        "single",
    )

    def __init__(self, op: Op, needs: tuple[int, ...], structs: tuple) -> None:
        self.op = op
        self.needs = needs
        self._structs = structs
        out = jax.eval_shape(op.traced, *structs)
        self.single = not isinstance(out, (tuple, list))
        outs = (out,) if self.single else tuple(out)
        self.out_structs = outs
        self.n_out = len(outs)
        self.diff_outs = tuple(i for i, o in enumerate(outs) if _is_float(o.dtype))
        self._variants = {}
        self.first = self.rest = self.passed = None
        self.keep = ()
        if self.diff_outs and needs:
            jaxpr, used = self._program(self.diff_outs)
            present = [i for i, s in enumerate(structs) if s is not None]
            self.keep = tuple(i for i, u in zip(present, used[: len(present)], strict=True) if u)
            self.first = self._variant(self.diff_outs, jaxpr, used)
            self._variants[self.diff_outs] = self.first
            self._pass_through(*jaxpr, used)
        self.keep_all = self.keep == tuple(range(len(structs)))

    def variant(self, mask: tuple[int, ...]) -> Op:
        """Return the backward for cotangents of the outputs in ``mask``; the others count as zero."""
        found = self._variants.get(mask)
        if found is None:
            found = self._variants[mask] = self._variant(mask, *self._program(mask))
        return found

    def _program(self, mask: tuple[int, ...]):
        """Return the closed jaxpr of the vjp, without dead code, and which of (inputs, cotangents) it reads."""
        op, needs, structs = self.op, self.needs, self._structs
        present = [i for i, s in enumerate(structs) if s is not None]

        def backward(*arguments):
            primals = [None] * len(structs)
            for i, value in zip(present, arguments, strict=False):
                primals[i] = value
            cotangents = arguments[len(present) :]

            def forward(*wanted):
                merged = list(primals)
                for i, value in zip(needs, wanted, strict=True):
                    merged[i] = value
                out = op.traced(*merged)
                outs = (out,) if self.single else out
                return tuple(outs[i] for i in mask)

            grads = jax.vjp(forward, *[primals[i] for i in needs])[1](tuple(map(_conjugate, cotangents)))
            return tuple(map(_conjugate, grads))

        cotangents = [jax.ShapeDtypeStruct(self.out_structs[i].shape, self.out_structs[i].dtype) for i in mask]
        closed = jax.make_jaxpr(backward)(*[structs[i] for i in present], *cotangents)
        jaxpr, used = pe.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
        return (jaxpr, closed.consts), tuple(used)

    def _pass_through(self, jaxpr, consts, used) -> None:
        """Find the gradients that are cotangents as they come, and make a program of the others."""
        present = sum(s is not None for s in self._structs)
        cotangents = [k - present for k, u in enumerate(used) if u and k >= present]
        number = dict(zip(jaxpr.invars[len(jaxpr.invars) - len(cotangents) :], cotangents, strict=True))
        passed = tuple([number.get(v) if isinstance(v, Var) else None for v in jaxpr.outvars])
        if all(k is None for k in passed):
            return
        self.passed = passed
        wanted = [k is None for k in passed]
        if any(wanted):
            fewer, reads = pe.dce_jaxpr(jaxpr, wanted)
            still = iter(reads)
            self.rest = self._variant(self.diff_outs, (fewer, consts), tuple([u and next(still) for u in used]))

    def _variant(self, mask: tuple[int, ...], program, used) -> Op:
        jaxpr, consts = program
        present = [i for i, s in enumerate(self._structs) if s is not None]
        reads = {i for i, u in zip(present, used[: len(present)], strict=True) if u}
        picks = [k for k, i in enumerate(self.keep) if i in reads]
        picks += [len(self.keep) + k for k, u in enumerate(used[len(present) :]) if u]
        run = jaxpr_as_fun(ClosedJaxpr(jaxpr, consts))

        def backward(*arguments):
            return tuple(run(*[arguments[k] for k in picks]))

        backward.__name__ = f"{self.op.name}_backward"
        return Op(backward)


def _conjugate(x):
    """Turn JAX's gradient of a complex value into PyTorch's, or back: one is the conjugate of the other."""
    return jax.lax.conj(x) if np.issubdtype(x.dtype, np.complexfloating) else x


def _is_float(dtype) -> bool:
    return np.issubdtype(dtype, np.inexact) or jax.dtypes.issubdtype(dtype, np.floating)


def struct_of(aval):
    """Return the `ShapeDtypeStruct` of an aval, weak type included; None stays None."""
    if aval is None:
        return None
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def entry_of(op: Op, needs: tuple[int, ...], avals: tuple) -> Entry:
    """Return the backward of ``op`` at ``avals`` (None for an absent input), made on first use."""
    key = (needs, avals)
    found = op.entries.get(key)
    if found is None:
        found = op.entries[key] = Entry(op, needs, tuple(struct_of(a) for a in avals))
    return found
