"""`Op`: a compiled pure function with static attributes; `Entry`: its backward, with the inputs it reads.

Worked case: for ``mul(x, y)`` where only ``x`` requires grad, the jaxpr of the vjp is ``g * y``. It reads ``y`` and
not ``x``, so `Entry.keep` is ``(1,)``: a recorded op saves ``y`` alone, and its backward runs a cached program on
``(y, g)``. For ``add`` nothing is saved. This is the *recompute form*: the backward
computes the intermediate values of the forward that it needs again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.interpreters import partial_eval as pe

from sbpjax._core.compiler.eager import disk_cache
from sbpjax._core.jax_private import ClosedJaxpr, Var, jaxpr_as_fun, trace_state_clean, without_cycles
from sbpjax._core.ops.input_checks import RULES, check
from sbpjax._core.programs.fp32_sums import with_wide_sums
from sbpjax._core.runtime import sizes
from sbpjax._core.runtime.ambient_mesh import hide_mesh, without_mesh
from sbpjax._core.runtime.compilation_cache import compile_uncached
from sbpjax._core.runtime.gc_pause import pause_gc
from sbpjax._core.runtime.lru_cache import LRUCache, most_programs
from sbpjax.sbp.abstract import of_aval

from ...compiler.eager import evaluator, recompile_log
from ...compiler.eager.background_compile import compile_backward
from ...compiler.eager.evaluator import setting
from ...compiler.eager.op_calls import Misses
from ..calls.argument_errors import check_attributes

_OPS = LRUCache(most_programs())
_MAX_ENTRIES = 128  # backwards of one op, two keys each


class Op:
    """A pure function of arrays with fixed static attributes.

    Attributes:
        fn: the function over logical arrays, called ``fn(*arrays, **dict(static))``.
        static: ``(name, value)`` pairs.
        traced: the function with its attributes bound.
        call: the compiled function; where it knows no program for its inputs, `misses` finds one.
        bound: a trace of the op, and the values of its symbolic sizes; None for an op of many shapes.
        entries: backward entries by ``(which inputs need grad, avals)``.
        family: the ops of the same function, see `_core.compiler.eager.evaluator.families`.
        shapes: of an op of one input, the outputs' avals by the input's, see `lazy_views`.
        programs: how many shapes it was compiled for.
        is_typed: whether it was traced for inputs whose types have explicit axes, see `explicit_axes`.
    """

    is_typed = False
    __slots__ = (
        "bound", "call", "check", "entries", "family", "fn", "misses", "name", "programs", "shapes", "static", "traced",
    )  # fmt: skip

    def __init__(self, fn, static: tuple = (), name: str | None = None) -> None:
        self.fn = fn
        self.static = static
        self.name = name or getattr(fn, "__name__", "op")
        # A user's own function may have the name of one of ours; it refuses nothing.
        of_ops = getattr(fn, "__module__", "").startswith(("sbpjax._core.ops.", "sbpjax._core.functions."))
        rule = fn.__name__ if of_ops and fn.__name__ in RULES else None
        self.traced = _bind_attributes(fn, dict(static), self.name, rule) if static or rule else fn
        self.entries = {}
        self.family = None
        self.shapes = {}
        self.bound = None
        self.programs = 0
        self.check = SAVES.get(self.name, "inputs")

    def __getattr__(self, name: str):
        """Make `call` and `misses` on first use: importing sbpjax makes hundreds of ops, a program uses a few."""
        if name not in ("call", "misses"):
            raise AttributeError(name)
        self.misses = Misses(self)
        self.call = self.misses.call
        return getattr(self, name)

    def function(self) -> Callable:
        """Return the function to compile, a fresh one each time: jit's cache is keyed by the function."""

        def call(*arrays):
            recompile_log.note_trace(self, arrays)
            results = self.traced(*arrays)
            sizes.check_trace(self.name, results)
            return results

        call.__name__ = self.name
        return call

    @hide_mesh
    def without_data(self, arrays: list):
        """Return what the op would return for these arrays, as `Abstract` payloads."""
        outs = jax.eval_shape(self.traced, *arrays)
        for out in jax.tree.leaves(outs):
            sizes.check_bytes(self.name, out.shape, out.dtype)
        return jax.tree.map(of_aval, outs)


def _bind_attributes(fn, keywords: dict, name: str, rule: str | None = None):
    """Return a function with its attributes bound; `rule` names the dtypes that it rejects, if any."""

    def call(*arrays):
        if rule is not None:
            check(rule, arrays)
        return fn(*arrays, **keywords)

    call.__name__ = name
    # Its name on disk, see `_core.compiler.eager.disk_cache`.
    call.made_of = ("closed", fn, tuple(keywords.items()))
    return call


# Ops of which PyTorch saves something else for backward, "outputs" or "none", by the op's name: this
# decides which in-place write is an error. Filled from the table of ops.
SAVES: dict[str, str] = {"put_row": "none"}
# The autocast policy of an op by its name, also from the table; see `_core.tensor.amp.lists`.
CASTS: dict[str, str] = {}


def op_of(fn, static: tuple = ()) -> Op:
    """Return the one `Op` of a function and its static attributes."""
    # the classes distinguish 2 from 2.0 and True, which are equal as keys
    key = (fn, static, *[value.__class__ for _, value in static]) if static else fn
    found = _OPS.get(key)
    # Bounded, as programs have attributes that always change: ``x[:i]``.
    if found is None:
        if static:
            check_attributes(fn, static)
        found = _OPS.promote_older(key) or _OPS.keep(key, Op(fn, static))
    return found


_KEPT = LRUCache(most_programs())
# In `_KEPT`: the op runs as others do.
_NOT_KEPT: Any = object()


def call_cached(op: Op, inputs: list, device=None):
    """Run an op on local arrays by a program that earlier processes may have compiled.

    For ops that create: a start makes many, of a few shapes each, and drawing random numbers takes long to lower.
    """
    # `jax_default_device` decides where an uncommitted input runs, and is not visible in the inputs.
    key = (op, device, jax.config.jax_default_device, *[(x.shape, x.dtype, x.aval.weak_type) for x in inputs])
    # In a trace the op becomes a part of the program.
    call = _KEPT.get(key) if trace_state_clean() else _NOT_KEPT
    if call is None:
        call = _KEPT.promote_older(key) or _KEPT.keep(key, _keep_program(op, inputs, device) or _NOT_KEPT)
    if call is not _NOT_KEPT:
        try:
            return call(*inputs)
        except (TypeError, ValueError):
            # An input is on another device, or a tracer: the program takes only the inputs it was compiled for.
            _KEPT[key] = _NOT_KEPT
    if device is None:
        return op.call(*inputs)
    with jax.default_device(device):
        return op.call(*inputs)


@hide_mesh
def _keep_program(op: Op, inputs: list, device):
    """Return a compiled program from disk, or make one for the next process; None if it cannot be kept."""
    where = jax.local_devices()[0] if device is None else device
    # A kept program is bound to its device; under a default device of the user's JAX chooses per call.
    if device is None and jax.config.jax_default_device is not None:
        return None
    for x in inputs:
        if not isinstance(x, jax.Array) or isinstance(x, jax.core.Tracer) or x.devices() != {where}:
            return None
    facts = tuple([(x.shape, str(x.dtype), bool(x.aval.weak_type)) for x in inputs])
    on_disk = disk_cache.key_of("local", op.traced, facts, (where.id, where.device_kind))
    if on_disk is None:
        return None
    found = disk_cache.load(on_disk)
    compiled = None if found is None else disk_cache.load_program(found, [where])
    call = None if compiled is None else disk_cache.fast_call(compiled)
    if call is None:
        with jax.default_device(where):
            # A function of its own: `op.call` may be compiled already.
            compiled = compile_uncached(Misses(op).jit_function(inputs).lower(*inputs))
        found = disk_cache.serialize_program(compiled)
        if found is not None:
            disk_cache.store(on_disk, found)
            call = disk_cache.fast_call(compiled)
    return call


# Linear in their input, so that their backward reads none of it; yet PyTorch records it there, and a second derivative
# is zeros. With others, such as ``x * 3``, an input without influence is an error in both.
KEEPS_INPUTS = frozenset(
    """avg_pool avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    pow_scalar pad nll_loss""".split()
)

# Ops whose further outputs are statistics, which have no gradient: their backward is traced once, for the first alone.
_STATISTICS = frozenset(("batch_norm",))

_ONE = jax.tree.structure(0)


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
        "_forward", "_source", "_structs", "_traces", "_variants", "diff_outs", "first", "keep", "keep_all", "n_out",
        "needs", "op", "out_structs", "passed", "rest", "single",
    )  # fmt: skip

    def __init__(self, op: Op, needs: tuple[int, ...], structs: tuple, on_disk: bool = False) -> None:
        self.op = op
        self.needs = needs
        self._structs = structs
        self._variants, self._traces = {}, {}
        self.first = self.rest = self.passed = self._source = self._forward = None
        key = disk_cache.key_of("backward", op.traced, needs, structs) if on_disk else None
        known = disk_cache.load(key)
        if known is None:
            outs, single = self._trace_forward()
            known = single, tuple([(o.shape, o.dtype) for o in outs]), None
        self.single, outs, used = known
        self.out_structs = tuple([jax.ShapeDtypeStruct(*o) for o in outs])
        self.n_out = len(outs)
        most = 1 if op.name in _STATISTICS else self.n_out
        self.diff_outs = tuple(i for i, o in enumerate(self.out_structs[:most]) if _is_float(o.dtype))
        self.keep = ()
        if self.diff_outs and needs:
            program = None
            if used is None:
                program, used = self._program(self.diff_outs)
                disk_cache.store(key, (self.single, outs, used))
            # The inputs that the vjp reads without its dead code: no op declares the needs of its backward.
            self.keep = tuple(i for i, u in zip(self._present(), used, strict=False) if u)
            name = getattr(op.fn, "__name__", "")
            if name in KEEPS_INPUTS and (name != "pad" or dict(op.static).get("mode", "constant") != "constant"):
                self.keep = tuple(sorted({*self.keep, *needs}))
            self.first = self._variants[self.diff_outs] = self._variant(self.diff_outs, program)
            if program is not None:
                self._pass_through(program, used)
        self.keep_all = self.keep == tuple(range(len(structs)))

    def bind(self, op: Op, sizes: dict[str, int], avals: tuple) -> Entry:
        """Return the entry of an op of the same family at avals, of one whose structs are symbolic."""
        bound = Entry.__new__(Entry)
        bound.op = op
        for name in ("needs", "single", "n_out", "diff_outs", "keep", "keep_all", "passed"):
            setattr(bound, name, getattr(self, name))
        bound._structs = tuple(map(struct_of, avals))
        bound.out_structs = tuple(
            [jax.ShapeDtypeStruct(evaluator.first_use.bind(o.shape, sizes), o.dtype) for o in self.out_structs]
        )
        bound._variants, bound._traces, bound._forward, bound._source = {}, {}, None, (self, sizes)
        bound.first = None if self.first is None else bound.variant(self.diff_outs)
        bound.rest = None if self.rest is None else bound._variant(self.diff_outs, None, "rest")
        return bound

    def variant(self, mask: tuple[int, ...]) -> Op:
        """Return the backward for cotangents of the outputs in ``mask``; the others count as zero."""
        found = self._variants.get(mask)
        if found is None:
            # A missing cotangent is not a zero array: a separate program leaves out everything that depends on it.
            program = self._program(mask)[0] if self._source is None else None
            found = self._variants[mask] = self._variant(mask, program)
        return found

    def accumulating_backward(self, places: tuple[int, ...]) -> Op:
        """Return `first` with further inputs, to be added to the gradients at ``places``."""
        found = self._variants.get((self.diff_outs, places))
        if found is None:
            plain, count = self.first, len(self.keep) + len(self.diff_outs)

            def backward(*arguments):
                grads = list(plain.traced(*arguments[:count]))
                for place, held in zip(places, arguments[count:], strict=True):
                    grads[place] = held + grads[place]
                return tuple(grads)

            backward.__name__ = plain.name
            found = self._variants[self.diff_outs, places] = Op(backward)
            if self._source is not None:
                source, sizes = self._source
                found.bound = source._trace_accumulation(places), sizes
        return found

    def _trace_accumulation(self, places: tuple[int, ...]) -> tuple:
        """Return the symbolic trace of an accumulating backward, and the tree of its results."""
        if places not in self._traces:
            structs = [self._structs[i] for i in self.keep] + [self.out_structs[i] for i in self.diff_outs]
            structs += [self._structs[self.needs[place]] for place in places]
            self._traces[places] = evaluator.families.trace(self.accumulating_backward(places), structs)
        return self._traces[places]

    def compile_ahead(self) -> None:
        """Compile the backward that will probably run in another thread, see `background_compile`."""
        op = self.first if self.passed is None else self.rest
        if op is not None:
            cotangents = [self.out_structs[i] for i in self.diff_outs]
            compile_backward(op.misses, [*[self._structs[i] for i in self.keep], *cotangents])

    def _present(self) -> list[int]:
        return [i for i, s in enumerate(self._structs) if s is not None]

    @without_mesh()  # one that a program of JAX needs first serves others too
    def _trace_forward(self) -> tuple[Sequence, bool]:
        """Trace the op, unless it was for a call; return the avals of its results, and whether it returns one array."""
        structs = self._structs
        known = evaluator.families.kept_trace(self.op, structs) if setting.is_on() else None
        if known is not None:
            self._forward, tree = known
            return self._forward.out_avals, tree == _ONE

        def forward(*arrays):
            given = iter(arrays)
            return self.op.traced(*[None if s is None else next(given) for s in structs])

        self._forward, shapes = jax.make_jaxpr(forward, return_shape=True)(*[s for s in structs if s is not None])
        return self._forward.out_avals, not isinstance(shapes, (tuple, list))

    @without_mesh()
    def _program(self, mask: tuple[int, ...]) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
        """Return the closed jaxpr of the vjp, without dead code, and which of (inputs, cotangents) it reads."""
        if self._forward is None:
            self._trace_forward()
        present, run = self._present(), jaxpr_as_fun(self._forward)
        places = [present.index(i) for i in self.needs]

        def backward(*arguments):
            primals, cotangents = list(arguments[: len(present)]), arguments[len(present) :]

            def forward(*wanted):
                merged = list(primals)
                for k, value in zip(places, wanted, strict=True):
                    merged[k] = value
                outs = run(*merged)
                return tuple([outs[i] for i in mask])

            at = tuple([primals[k] for k in places])
            # `jax.vjp` traces the jvp of each equation by itself, which takes twice as long.
            transposed = jax.linear_transpose(lambda *tangents: jax.jvp(forward, at, tangents)[1], *at)
            return tuple(map(_conjugate, transposed(tuple(map(_conjugate, cotangents)))))

        cotangents = [jax.ShapeDtypeStruct(self.out_structs[i].shape, self.out_structs[i].dtype) for i in mask]
        closed = jax.make_jaxpr(backward)(*[self._structs[i] for i in present], *cotangents)
        if jax.default_backend() == "cpu":
            closed = with_wide_sums(closed)
        # Not `jax.vjp`'s own residuals: a GPT's forward saves 6.0 MB so, and 14.6 MB with those (PyTorch 5.5).
        return _without_dead_code(closed, [True] * len(closed.jaxpr.outvars))

    def _pass_through(self, closed: ClosedJaxpr, used: tuple) -> None:
        """Find the gradients that are cotangents as they come, and make a program of the others."""
        present = len(self._present())
        number = {v: k for k, v in enumerate(closed.jaxpr.invars[present:])}
        passed = tuple([number.get(v) if isinstance(v, Var) else None for v in closed.jaxpr.outvars])
        if all(k is None for k in passed):
            return
        self.passed = passed
        if None in passed:
            self.rest = self._variant(self.diff_outs, self._drop_passed_gradients(closed), "rest")

    def _drop_passed_gradients(self, closed: ClosedJaxpr) -> ClosedJaxpr:
        """Return the program of the gradients that are not passed through."""
        return _without_dead_code(closed, [k is None for k in self.passed])[0]

    def _variant(self, mask: tuple[int, ...], program: ClosedJaxpr | None, part: str = "all") -> Op:
        """Return a backward as an op; its program is made when it is traced, if that was not yet done."""

        def of_inputs(program: ClosedJaxpr) -> ClosedJaxpr:
            """Return a program of the inputs that are kept, and the cotangents."""
            present, invars = self._present(), program.jaxpr.invars
            kept = [invars[present.index(i)] for i in self.keep] + invars[len(present) :]
            debug_info = program.jaxpr.debug_info.with_unknown_names()
            return ClosedJaxpr(program.jaxpr.replace(invars=kept, debug_info=debug_info), program.consts)

        def backward(*arguments):
            # On a second start the program is known by its inputs (`keep`, from disk), so it is traced only if it has
            # to be compiled anew.
            nonlocal program
            if program is None:
                found = self._program(mask)[0]
                program = of_inputs(self._drop_passed_gradients(found) if part == "rest" else found)
            return tuple(jaxpr_as_fun(program)(*arguments))

        backward.__name__ = f"{self.op.name}_backward"
        backward.made_of = ("backward", part, self.op.traced, self.needs, self._structs, mask)
        op = Op(backward)
        if program is not None:
            program = of_inputs(program)
            op.bound = (program, jax.tree.structure((0,) * len(program.jaxpr.outvars))), {}
        elif self._source is not None:
            source, sizes = self._source
            with without_cycles():
                op.bound = (source.rest if part == "rest" else source.variant(mask)).bound[0], sizes
        return op


def _without_dead_code(closed: ClosedJaxpr, wanted: list[bool]) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return a program of some outputs without dead code, and which inputs it reads: it has those that it does not."""
    jaxpr, used = pe.dce_jaxpr(closed.jaxpr, wanted)
    whole = jaxpr.replace(invars=closed.jaxpr.invars, debug_info=jaxpr.debug_info.with_unknown_names())
    return ClosedJaxpr(whole, closed.consts), tuple(used)


def _conjugate(x):
    """Turn JAX's gradient of a complex value into PyTorch's, or back: one is the conjugate of the other."""
    return jax.lax.conj(x) if np.issubdtype(x.dtype, np.complexfloating) else x


def _is_float(dtype) -> bool:
    # NumPy does not count bfloat16 and the float8 types as floats; JAX does.
    return np.issubdtype(dtype, np.inexact) or jax.dtypes.issubdtype(dtype, np.floating)


def struct_of(aval):
    """Return the `ShapeDtypeStruct` of an aval, weak type included; None stays None."""
    if aval is None:
        return None
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


@hide_mesh
def entry_of(op: Op, needs: tuple[int, ...], avals: tuple, on_disk: bool = False) -> Entry:
    """Return the backward of ``op`` at ``avals`` (None for an absent input), made on first use.

    With `on_disk` its inputs may be known from an earlier process, and nothing is traced until its program is.
    """
    key = (needs, avals)
    found = op.entries.get(key)
    if found is None:
        # The oldest first: shapes that ever change, such as those of a growing cache, do not come back.
        while len(op.entries) >= _MAX_ENTRIES:
            op.entries.pop(next(iter(op.entries)), None)
        with pause_gc():
            found = _bound_entry(op, needs, avals) if setting.is_on() else None
            if found is None:
                found = Entry(op, needs, tuple(struct_of(a) for a in avals), on_disk)
        op.entries[key] = found
        # The op has run, not only its shape inference, so its backward may run too; a bound one is evaluated first.
        if op.programs and not on_disk and found.first is not None and found._source is None:
            found.compile_ahead()
    return found


def _bound_entry(op: Op, needs: tuple[int, ...], avals: tuple) -> Entry | None:
    """Return the backward at ``avals`` made of a symbolic one, None if there is none."""
    found = evaluator.first_use.backward_of(op, needs, avals, Entry)
    return None if found is None else found[0].bind(op, found[1], avals)
