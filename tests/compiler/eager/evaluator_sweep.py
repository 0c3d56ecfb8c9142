"""Random op calls, evaluated and compiled: ``python -m tests.compiler.eager.evaluator_sweep FIRST COUNT``.

Every program that the calls and their backwards run on one device is computed by NumPy and by XLA, and so is the
symbolic trace of its op and of its backward. Integers and
booleans must be equal, and so must be floats up to 2 units in the last place where a program rounds once. Other floats
may differ by 1e-6 for float32, by two roundings for 16-bit floats: of the largest result or input, or of what a sum
adds up, the sum of an input's magnitudes by the number of results; a sum of n numbers by sqrt(n) roundings, since XLA
adds some in their order (2.8e-6 for 2,000), while the evaluator's are within 2e-7 of the exact ones
(`test_long_sums_are_near_the_exact_ones`). Prints each difference, and counts of what was
evaluated and of primitives without a rule.
"""

from __future__ import annotations

import collections
import random
import sys
import warnings

import jax
import numpy as np

import sbpjax as flow
from sbpjax._core.compiler.eager import op_calls
from sbpjax._core.compiler.eager.evaluator import families, symbolic
from sbpjax._core.compiler.eager.evaluator.pointwise import RULES
from sbpjax._core.compiler.eager.evaluator.program import program_of
from sbpjax._core.jax_private import ArrayImpl, trace_state_clean
from sbpjax._core.programs.primitives import CALLS
from sbpjax._core.tensor.dispatch import op
from tests.op_specs.engine import SPECS
from tests.op_specs.engine.outcome import local
from tests.support.generate import Gen

TOLERANCE = {
    "float64": 1e-12,
    "complex128": 1e-12,
    "float32": 1e-6,
    "complex64": 1e-6,
    "bfloat16": 1.6e-2,
    "float16": 2e-3,
}


class Checked(op_calls.Misses):
    """Computes both ways."""

    found: collections.Counter = collections.Counter()
    differences: list = []

    def __init__(self, op):
        super().__init__(op)
        self.compiled = jax.jit(self._function)
        self.call = self._both

    def _both(self, *arrays):
        out = self.compiled(*arrays)
        if trace_state_clean() and all(
            x is None or isinstance(x, (ArrayImpl, np.ndarray, int, float, bool, complex)) for x in arrays
        ):
            self.compare(arrays, out)
        return out

    def compare(self, arrays, out):
        leaves = jax.tree.leaves(out)
        if any(not isinstance(x, ArrayImpl) for x in leaves):
            return
        closed = self.compiled.trace(*arrays).jaxpr
        given = [
            np.asarray(x, a.aval.dtype)
            for x, a in zip([x for x in arrays if x is not None], closed.jaxpr.invars, strict=True)
        ]
        run = program_of(closed, {})
        if run is None:
            self.found["compiled"] += 1
            for name in sorted(lacking(closed.jaxpr)):
                self.found[f"lacks {name}"] += 1
            return
        self.check("evaluated", closed, run, given, leaves)
        if not self._op.name.endswith("_backward"):
            self.compare_symbolic([None if x is None else jax.typeof(x) for x in arrays], closed, given, leaves)

    def compare_symbolic(self, avals, closed, given, leaves):
        """Compare the trace in which all sizes of three and more are symbolic, and that of its backward."""
        family, sizes = families.family_of(self._op)
        now = symbolic.Signature(sizes, avals)
        pattern = symbolic.pattern_of([now, now], 3)
        if pattern is None:
            return
        values = symbolic.sizes_in(pattern, now)
        needs = tuple([i for i, a in enumerate(avals) if a is not None and np.issubdtype(a.dtype, np.inexact)])
        with symbolic.without_cycles():
            sizes, structs = symbolic.structs_of(pattern)
            try:
                free = families.trace(family._make(sizes).traced, structs)[0]
                entry = op.Entry(family._make(sizes), needs, tuple(structs))
            except Exception as error:
                symbolic._drop_frames(error)
                self.found["no symbolic trace"] += 1
                return
        run = program_of(free, values)
        if run is not None:
            self.check("symbolic", closed, run, given, leaves)
        if entry.first is None:
            return
        backward = entry.bind(self._op, values, tuple(avals)).first
        plain = op.Entry(self._op, needs, tuple(map(op.struct_of, avals)))
        saved = iter(given)
        saved = [None if a is None else next(saved) for a in avals]
        inputs = [saved[i] for i in plain.keep]
        inputs += [np.ones(plain.out_structs[i].shape, plain.out_structs[i].dtype) for i in plain.diff_outs]
        run = program_of(backward.bound[0][0], values)
        if run is not None and entry.keep == plain.keep:
            compiled = jax.jit(plain.first.traced)
            self.check("symbolic backward", compiled.trace(*inputs).jaxpr, run, inputs, compiled(*inputs))

    def check(self, kind, closed, run, given, leaves):
        self.found[kind] += 1
        try:
            got = run(*given)
        except Exception as error:
            self.differences.append(
                (
                    kind,
                    self._op.name,
                    [(x.shape, str(x.dtype)) for x in given],
                    f"{type(error).__name__}: {error}"[:200],
                )
            )
            return
        once = rounds_once(closed.jaxpr)
        for g, w in zip(got, map(np.asarray, leaves), strict=True):
            why = (beyond_ulps(g, w) if once else None) or difference(g, w, given)
            if why:
                self.differences.append((kind, self._op.name, [(x.shape, str(x.dtype)) for x in given], why))


def lacking(jaxpr):
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in CALLS:
            inner = eqn.params[CALLS[name]]
            yield from lacking(getattr(inner, "jaxpr", inner))
        elif name not in RULES:
            yield name


ROUNDS = frozenset("add sub mul div sqrt rem square".split())
EXACT = frozenset(
    "reshape squeeze transpose rev broadcast_in_dim slice concatenate split pad gather select_n max min neg abs "
    "reduce_max reduce_min sign copy stop_gradient floor ceil round clamp sort dynamic_slice iota".split()
)


def equations(jaxpr):
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in CALLS:
            inner = eqn.params[CALLS[eqn.primitive.name]]
            yield from equations(getattr(inner, "jaxpr", inner))
        else:
            yield eqn


def rounds_once(jaxpr) -> bool:
    """Return whether every result of a program is rounded once at most."""
    names = [eqn.primitive.name for eqn in equations(jaxpr)]
    return set(names) <= ROUNDS | EXACT and sum(name in ROUNDS for name in names) <= 1


def beyond_ulps(got, wanted):
    """Return a text where real floats differ by more than 2 units in the last place."""
    if wanted.dtype not in (np.float32, np.float64) or got.shape != wanted.shape:
        return None
    both = np.isfinite(got) & np.isfinite(wanted)
    gap = np.abs(got[both] - wanted[both]) / np.spacing(np.abs(wanted[both]))
    return f"{gap.max():.0f} units in the last place" if gap.max(initial=0) > 2 else None


def difference(got, wanted, inputs):
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype}{got.shape} for {wanted.dtype}{wanted.shape}"
    limit = TOLERANCE.get(str(wanted.dtype))
    if limit is None or wanted.dtype.kind in "iub":
        return None if np.array_equal(got, wanted) else f"{got.ravel()[:4]} for {wanted.ravel()[:4]}"
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    g, w = got.astype(wide), wanted.astype(wide)
    finite = np.isfinite(w)
    if not (np.isfinite(g) == finite).all() or not np.array_equal(g[~finite], w[~finite], equal_nan=True):
        bad = ~((g == w) | (np.isnan(g) & np.isnan(w)) | (np.isfinite(g) & finite))
        return f"{g[bad][:3]} for {w[bad][:3]}"
    if not finite.any():
        return None
    sizes = [np.abs(x.astype(wide)[np.isfinite(x)]) for x in inputs if x.dtype.kind not in "iub"]
    sums = [x.sum() / w.size for x in sizes]
    scale = max([np.abs(w[finite]).max(), *[x.max(initial=0) for x in sizes], *sums, 1e-30])
    count = max([x.size for x in sizes], default=0) / w.size
    limit = max(limit, np.sqrt(count) * float(jax.numpy.finfo(wanted.dtype).eps))
    worst = np.abs(g[finite] - w[finite]).max() / scale
    return None if worst <= limit else f"relative {worst:.1e}"


def main(first: int, count: int) -> None:
    op.Misses = Checked
    library, names = local(), sorted(SPECS)
    for number in range(first, first + count):
        r = random.Random(f"evaluator {number}")
        name = names[number % len(names)]
        before = len(Checked.differences)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call = SPECS[name].make(Gen([r.getrandbits(32)]))
                if call is None:
                    continue
                args, kwargs, _ = library.build(call, True)
                function = flow
                for part in name.split("."):
                    function = getattr(function, part, None)
                result = function(*args, **kwargs)
                for t in library.tensors(result)[:4]:
                    if t.requires_grad:
                        t.sum().backward(retain_graph=True)
            except Exception as error:
                Checked.found[f"raised {type(error).__name__}"] += 1
        for what in Checked.differences[before:]:
            print(number, name, *what, flush=True)
    print(sorted(Checked.found.items(), key=lambda x: -x[1]))
    print(f"{Checked.found['evaluated']} programs evaluated, {len(Checked.differences)} differences")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
