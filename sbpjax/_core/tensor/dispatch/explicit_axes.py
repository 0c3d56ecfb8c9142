"""Traced ops under JAX's explicit axes: types say how arrays are sharded, and each op is planned for them.

    mesh = jax.make_mesh((2, 4), ("data", "model"))           # axes of type Explicit
    jax.jit(lambda a, b: (from_jax(a) @ from_jax(b)).jax())    # a: float32[8, 8@data], b: float32[8@data, 8]

JAX refuses this product, since its types do not say how the result is sharded. Here the types of the inputs are read as
layouts, the op's plan gives the layout of every result, and the op runs between them with axes of type Auto
(`jax.sharding.auto_axes`), so gradients and `vmap` are JAX's own. A result is whole over an axis where the plan has it
in uneven parts, which no type has, or as a partial sum: the other functions of the program may not take an unreduced
array.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax.core import Tracer
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from sbpjax._core.compiler.eager.global_ops import plan_program
from sbpjax._core.programs.normalise import normalise
from sbpjax._core.runtime.ambient_mesh import without_mesh
from sbpjax._core.runtime.lru_cache import LRUCache, most_programs
from sbpjax.sbp.algebra import B, P, codes_from_spec, spec_from_codes
from sbpjax.sbp.even_split import even
from sbpjax.sbp.layout import axes_of_dims

_ARRAYS = (jax.Array, np.ndarray)
_planned = LRUCache(most_programs())


def call(op, arrays: Sequence):
    """Return the results of an op's function on arrays of a trace, with types where there are explicit axes."""
    mesh = next((m for x in arrays if isinstance(x, Tracer) and (m := explicit_mesh(x)) is not None), None)
    if mesh is None or op.is_typed:
        return op.traced(*arrays)
    given = [i for i, x in enumerate(arrays) if isinstance(x, _ARRAYS)]

    def run(*present):
        merged = list(arrays)
        for i, x in zip(given, present, strict=True):
            merged[i] = x
        return op.traced(*merged)

    present = [_reduce(arrays[i]) for i in given]
    if any(not isinstance(size, int) for x in present for size in x.shape):
        return op.traced(*arrays)  # `jax.export` with symbolic sizes, which no plan can divide
    names = mesh.explicit_axes
    fixed = tuple([(i, x.__class__, str(x)) for i, x in enumerate(arrays) if i not in given])
    facts = tuple([(x.shape, x.dtype, getattr(jax.typeof(x), "weak_type", False), _codes(x, names)) for x in present])
    key = (op.traced, fixed, facts, tuple(mesh.shape[n] for n in names))
    found = _planned.find(key)
    if found is None:
        found = _plan(run, facts, key[-1])
        if getattr(op.fn, "__closure__", op) is None:  # a closure may hold a tracer, which a kept key would keep
            _planned.keep(key, found)
    single, outs = found
    shardings = tuple([NamedSharding(mesh, spec_from_codes(codes, ndim, names)) for codes, ndim in outs])
    out_sharding = shardings[0] if single else shardings
    return jax.sharding.auto_axes(run, axes=names, out_sharding=out_sharding)(*present)


def explicit_mesh(x: Tracer) -> AbstractMesh | None:
    """Return the mesh of a tracer's type if it has explicit axes."""
    sharding = getattr(x.aval, "sharding", None)
    return sharding.mesh if sharding is not None and sharding.mesh.explicit_axes else None


def _codes(x, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the layout over the explicit axes that a type shows; broadcast of an array without one."""
    spec = jax.typeof(x).sharding.spec
    dims = [e if isinstance(e, tuple) else (e,) for e in spec.partitions]
    mine = PartitionSpec(*[tuple(n for n in e if n in names) or None for e in dims])
    codes = codes_from_spec(mine, names, x.ndim)
    return (B,) * len(names) if codes is None else codes


def _reduce(x):
    """Return an array without sums to be made; those of partial sums are made here."""
    sharding = getattr(jax.typeof(x), "sharding", None)
    if sharding is None or not sharding.spec.unreduced:
        return x
    return jax.sharding.reshard(x, NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec.partitions)))


def _plan(run, facts: tuple, sizes: tuple[int, ...]) -> tuple[bool, tuple]:
    """Return whether a function has one result, and for each the codes and the number of dims."""
    examples = [jax.ShapeDtypeStruct(shape, dtype, weak_type=weak) for shape, dtype, weak, _ in facts]
    codes = tuple([c for *_, c in facts])
    with without_mesh():
        shaped = jax.eval_shape(run, *examples)
        program = normalise(jax.make_jaxpr(run)(*examples))
        plan = plan_program(program, sizes, codes, None)
        shapes = [tuple(v.aval.shape) for v in program.outvars]
        pins = tuple([_type_codes(c, shape, sizes) for c, shape in zip(plan.out_codes, shapes, strict=True)])
    single = not isinstance(shaped, (tuple, list))
    return single, tuple([(c, len(shape)) for c, shape in zip(pins, shapes, strict=True)])


def _type_codes(codes: tuple[int, ...], shape: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return codes that a type can show: with partial sums made, and uneven dims whole."""
    uneven = {
        d
        for d, axes in enumerate(axes_of_dims(codes, len(shape)))
        if axes and not even(shape[d], tuple(sizes[a] for a in axes))
    }
    return tuple([B if c == P or c in uneven else c for c in codes])
