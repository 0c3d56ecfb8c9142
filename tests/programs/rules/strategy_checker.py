"""Brute-force proof of table strategies: every strategy of an equation, on a mesh, against the unsharded primitive.

A case is a function and its arguments. Its jaxpr runs once unsharded, which gives the operands and results of every
equation. Then every product of strategies (one per mesh axis) runs inside one `shard_map`: operands are cut into blocks
as the strategies say, *padding is filled with garbage* (NaN, huge integers, random keys) and a partial operand is a sum
of random summands. Every rank's block of every output must hold exactly its part of the unsharded result.

Blocks of all ranks are stacked along leading mesh dims, so that nothing but the strategy under test moves data.
"""

from __future__ import annotations

import itertools
import zlib
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from sbpjax._core.programs.rules import Context, Strategy, compute, jointly_legal, strategies_of
from sbpjax.sbp.algebra import B, P, nd_name
from sbpjax.sbp.conversion_steps import MeshPosition
from sbpjax.sbp.layout import layout_of
from sbpjax.sbp.placement import placement

MESHES = {"2": [0, 1], "4": [0, 1, 2, 3], "2x2": [[0, 1], [2, 3]]}
RELATIVE = {2: 2e-2, 4: 2e-5, 8: 1e-11}  # by bytes of a real element
CALLS = ("jit", "pjit", "custom_jvp_call", "custom_vjp_call", "closed_call", "remat2", "checkpoint")
# The programs are small and run once: compile them quickly, not well.
COMPILER = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
JOBS_PER_PROGRAM = 24


@dataclass
class Found:
    """One equation with the values its operands and outputs have in the unsharded program."""

    label: str
    eqn: object
    operands: list
    results: list
    tolerance: float | None = None  # relative to the largest element; None: by the dtypes


def equations(label: str, function, *args, only=None) -> list[Found]:
    """Run a function unsharded and return its equations with their values; `only` names the primitives to keep."""
    closed = jax.make_jaxpr(function)(*args)
    found: list[Found] = []
    _evaluate(closed.jaxpr, closed.consts, jax.tree.leaves(args), found, label)
    return [f for f in found if only is None or f.eqn.primitive.name in only]


def _evaluate(jaxpr, consts, args, found, label) -> list:
    values = dict(zip(jaxpr.constvars, consts)) | dict(zip(jaxpr.invars, args))
    for eqn in jaxpr.eqns:
        operands = [v.val if hasattr(v, "val") else values[v] for v in eqn.invars]
        name = eqn.primitive.name
        if name in CALLS:
            inner = next(eqn.params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in eqn.params)
            results = _evaluate(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), operands, found, label)
        else:
            results = eqn.primitive.bind(*operands, **eqn.params)
            results = list(results) if eqn.primitive.multiple_results else [results]
            found.append(Found(f"{label}:{name}", eqn, operands, results))
        values.update(zip(eqn.outvars, results))
    return [v.val if hasattr(v, "val") else values[v] for v in jaxpr.outvars]


def is_key(aval) -> bool:
    """Return whether an abstract value holds random keys."""
    return jnp.issubdtype(aval.dtype, jax.dtypes.prng_key)


def logical(value, aval) -> np.ndarray:
    """Return a value as NumPy: numbers as they are, random keys as their words along one more dim."""
    if is_key(aval):
        value = jax.random.key_data(value)
    return np.asarray(value, dtype=None if is_key(aval) else aval.dtype)


def stack_blocks(value: np.ndarray, layout, rng: np.random.Generator) -> np.ndarray:
    """Return the blocks of all ranks as ``(*hierarchy, *block)``, garbage in the padding, random summands for P.

    `value` may have more trailing dims than the layout's shape (the words of random keys).
    """
    sizes = layout.placement.hierarchy
    words = value.shape[len(layout.shape) :]
    summands = _summands(value, tuple(sizes[a] for a in layout.partial_axes), rng)
    stacked = _garbage((*sizes, *layout.local_shape, *words), value.dtype, rng)
    for index, part in zip(np.ndindex(*sizes), layout.parts(), strict=True):
        summand = summands[tuple(index[a] for a in layout.partial_axes)]
        where = tuple(slice(o, o + n) for o, n in part)
        stacked[(*index, *(slice(0, n) for _, n in part))] = summand[where]
    return stacked


def unstack_mismatch(stacked: np.ndarray, layout, expected: np.ndarray, tolerance: float) -> str | None:
    """Return what is wrong with the blocks of all ranks against the logical value, or None."""
    sizes = layout.placement.hierarchy
    partial = layout.partial_axes
    if partial:
        total = stacked.any(axis=partial) if stacked.dtype == bool else stacked.sum(axis=partial, dtype=stacked.dtype)
        stacked = np.broadcast_to(np.expand_dims(total, partial), (*sizes, *total.shape[len(sizes) - len(partial) :]))
    for index, part in zip(np.ndindex(*sizes), layout.parts(), strict=True):
        got = stacked[(*index, *(slice(0, n) for _, n in part))]
        want = expected[tuple(slice(o, o + n) for o, n in part)]
        wrong = mismatch(got, want, tolerance)
        if wrong:
            return f"rank {index}, part {part}: {wrong}"
    return None


def mismatch(got: np.ndarray, want: np.ndarray, tolerance: float) -> str | None:
    """Return how two arrays differ beyond a tolerance relative to the largest element, or None."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if want.dtype.kind in "fcV":
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        got, want = got.astype(wide), want.astype(wide)
        finite = want[np.isfinite(want)]
        scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
        with np.errstate(all="ignore"):
            good = np.isclose(got, want, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
    else:
        good = got == want
    if good.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~good)[0])
    return f"{int((~good).sum())} of {good.size} elements differ, e.g. {got[at]} instead of {want[at]} at {at}"


def _summands(value: np.ndarray, sizes: tuple[int, ...], rng) -> np.ndarray:
    """Return random summands stacked along one leading dim per partial axis; of bools one rank holds the True."""
    if not sizes:
        return value
    count = int(np.prod(sizes))
    if value.dtype == bool:
        owner = rng.integers(0, count, value.shape)
        flat = np.stack([value & (owner == i) for i in range(count)])
    else:
        parts = [_random(value.shape, value.dtype, rng) for _ in range(count - 1)]
        with np.errstate(all="ignore"):
            if value.dtype.kind in "fcV":
                parts = [np.where(np.isfinite(value.astype(np.complex128)), p, 0).astype(value.dtype) for p in parts]
            flat = np.stack([*parts, (value - sum(parts, np.zeros_like(value))).astype(value.dtype)])
    return flat.reshape(*sizes, *value.shape)


def _random(shape, dtype, rng) -> np.ndarray:
    if dtype.kind in "iu":
        return rng.integers(0, 9, shape).astype(dtype)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if dtype.kind == "c" else values).astype(dtype)


def _garbage(shape, dtype, rng) -> np.ndarray:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.choice(np.array([info.min, info.max, info.max // 3], dtype), shape)
    return np.full(shape, np.nan, dtype)


@dataclass
class _Job:
    found: Found
    strategies: tuple[Strategy, ...]
    ins: list
    outs: list


def jobs_of(found: Found, place) -> list[_Job]:
    """Return every legal product of strategies of an equation on a placement."""
    sizes = place.hierarchy
    eqn = found.eqn
    result = []
    for chosen in itertools.product(*(_checked(found, n, axis) for axis, n in enumerate(sizes))):
        if not jointly_legal(eqn, chosen, sizes):
            continue
        ins = [
            layout_of(place, tuple(r.ins[i] for r in chosen), v.aval.shape, v.aval.dtype)
            for i, v in enumerate(eqn.invars)
        ]
        outs = [
            layout_of(place, tuple(r.outs[i] for r in chosen), v.aval.shape, v.aval.dtype)
            for i, v in enumerate(eqn.outvars)
        ]
        result.append(_Job(found, chosen, ins, outs))
    return result


def _checked(found: Found, size: int, axis: int) -> list[Strategy]:
    """Return the strategies of an equation, checked: one code per operand and output, splits of dims that exist."""
    strategies = strategies_of(found.eqn, size, axis)
    assert strategies[-1].ins == (B,) * len(found.eqn.invars), (
        f"{found.label}: the all-broadcast strategy is not the last"
    )
    for strategy in strategies:
        for codes, variables in ((strategy.ins, found.eqn.invars), (strategy.outs, found.eqn.outvars)):
            assert len(codes) == len(variables), f"{found.label}: {strategy} has a wrong number of codes"
            for code, variable in zip(codes, variables):
                assert code in (B, P) or 0 <= code < len(variable.aval.shape), f"{found.label}: {strategy}"
                assert code != P or not is_key(variable.aval), f"{found.label}: {strategy} has partial random keys"
    return strategies


def check(found: list[Found], mesh: str, chosen: np.random.Generator | None = None) -> int:
    """Run every product of strategies of the equations on a mesh and raise on the first differences.

    Args:
        found: the equations.
        mesh: a key of `MESHES`.
        chosen: draws one product for each equation, which is run alone.

    Returns:
        How many products were run.
    """
    place = placement("cpu", MESHES[mesh])
    of_each = [jobs_of(f, place) for f in found]
    jobs = [job for jobs in of_each for job in (jobs if chosen is None else [jobs[chosen.integers(len(jobs))]])]
    wrong = []
    for start in range(0, len(jobs), JOBS_PER_PROGRAM):
        wrong += _run(jobs[start : start + JOBS_PER_PROGRAM], place)
    text = "\n".join(wrong[:12])
    assert not wrong, f"{len(wrong)} of {len(jobs)} strategy products are wrong on {mesh}:\n{text}"
    return len(jobs)


def _run(jobs: list[_Job], place) -> list[str]:
    mesh: Mesh = place.mesh
    sizes, names = place.hierarchy, place.axis_names
    inputs: dict = {}
    for job in jobs:
        for i, layout in enumerate(job.ins):
            key = (id(job.found), i, layout.codes)
            if key not in inputs:
                rng = np.random.default_rng(zlib.crc32(repr((job.found.label, i, layout.codes)).encode()))
                aval = job.found.eqn.invars[i].aval
                inputs[key] = (stack_blocks(logical(job.found.operands[i], aval), layout, rng), aval)

    def body(used, *stacked):
        here = MeshPosition(sizes, names)
        blocks = {}
        for (key, (_, aval)), block in zip(inputs.items(), stacked, strict=True):
            block = block.reshape(block.shape[len(sizes) :])
            blocks[key] = jax.random.wrap_key_data(block, impl=aval.dtype._impl) if is_key(aval) else block
        results = [used]
        for job in jobs:
            eqn = job.found.eqn
            context = Context(eqn, here, tuple(x.codes for x in job.ins), tuple(x.codes for x in job.outs))
            operands = [blocks[(id(job.found), i, x.codes)] for i, x in enumerate(job.ins)]
            try:
                outs = compute(context, operands)
            except Exception as error:
                error.add_note(_describe(job))
                raise
            for out, layout, variable in zip(outs, job.outs, eqn.outvars, strict=True):
                assert out.shape == layout.local_shape, f"{_describe(job)}: {out.shape} is not {layout.local_shape}"
                assert out.dtype == variable.aval.dtype, f"{_describe(job)}: {out.dtype} is not {variable.aval.dtype}"
                out = jax.random.key_data(out) if is_key(variable.aval) else out
                results.append(out.reshape((1,) * len(sizes) + out.shape))
        return results

    spec = PartitionSpec(*names)
    program = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
    # The first argument is there because XLA cannot compile a program whose operands are all empty.
    arrays = [np.zeros(sizes, np.int32), *(value for value, _ in inputs.values())]
    results = iter(program.lower(*arrays).compile(COMPILER)(*arrays))
    next(results)
    wrong = []
    for job in jobs:
        for k, (layout, variable) in enumerate(zip(job.outs, job.found.eqn.outvars)):
            got = np.asarray(next(results))
            want = logical(job.found.results[k], variable.aval)
            tolerance = job.found.tolerance or _tolerance(job.found.eqn)
            difference = unstack_mismatch(got, layout, want, tolerance)
            if difference:
                wrong.append(f"{_describe(job)}, output {k}: {difference}")
    return wrong


def _tolerance(eqn) -> float:
    """Return the tolerance of the coarsest floating-point operand or output."""
    avals = [v.aval for v in (*eqn.invars, *eqn.outvars) if jnp.issubdtype(v.aval.dtype, jnp.inexact)]
    return max((RELATIVE[np.zeros((), a.dtype).real.dtype.itemsize] for a in avals), default=0.0)


def _describe(job: _Job) -> str:
    ins = " ; ".join(f"{nd_name(x.codes)} of {list(x.shape)}" for x in job.ins)
    return f"{job.found.label} ({ins}) -> {' ; '.join(nd_name(x.codes) for x in job.outs)}"
