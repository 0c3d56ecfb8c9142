"""Registration of custom JAX primitives: lowering per platform, and derivatives by a formula.

A primitive such as `attention` is one equation of a program, and becomes a kernel where the program is lowered: which
one depends on the platform. Its derivatives of higher order go by a formula of plain JAX, which has all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
from jax.interpreters import ad, mlir

from sbpjax._core.runtime.ambient_mesh import jit_without_mesh

# Per primitive's name the function ``(*operands, platform, **params) -> results`` that it is lowered from.
LOWERED: dict[str, Callable] = {}


def register(primitive, shapes: Callable, run: Callable) -> None:
    """Give a primitive with several results its shapes and its lowering.

    Args:
        primitive: a `jax.core.Primitive`.
        shapes: the abstract values of its results, of those of its operands and of its parameters.
        run: ``(*operands, platform, **params) -> results``, traced where a program is lowered.
    """
    LOWERED[primitive.name] = run
    primitive.multiple_results = True
    primitive.def_abstract_eval(shapes)

    @functools.lru_cache(maxsize=64)
    def jit_primitive(params: tuple):
        return jit_without_mesh(lambda *operands: primitive.bind(*operands, **dict(params)))

    primitive.def_impl(lambda *operands, **params: jit_primitive(tuple(params.items()))(*operands))
    for platform in ("cpu", "tpu", "cuda"):
        here = functools.partial(run, platform=platform)
        mlir.register_lowering(primitive, mlir.lower_fun(here, multiple_results=True), platform=platform)
    other = functools.partial(run, platform="")
    mlir.register_lowering(primitive, mlir.lower_fun(other, multiple_results=True))


def jvp_from_formula(formula: Callable, primitive) -> Callable:
    """Return the forward-mode rule of a primitive by that of a formula of the same operands and parameters."""

    def jvp(primals, tangents, **params):
        outs = primitive.bind(*primals, **params)
        places = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]

        def of(*wanted):
            merged = list(primals)
            for i, x in zip(places, wanted, strict=True):
                merged[i] = x
            return formula(*merged, **params)

        _, pushed = jax.jvp(of, [primals[i] for i in places], [tangents[i] for i in places])
        return outs, pushed

    return jvp
