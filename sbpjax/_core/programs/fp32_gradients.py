"""Float32 gradients of cast weights: accumulated and reduced in float32 under mixed precision.

The gradient of a weight that was cast to bfloat16 is a sum over the batch. Traced as it is, a program makes that sum in
bfloat16 and then casts it:

    dot_general → bf16[256, 64] → transpose → cast_back → f32[64, 256]

Under data parallelism each rank holds a part of the sum, and a planner that minimizes bytes adds the parts up in
bfloat16, which rounds to 8 bits at every rank. `widen_gradients` moves the cast to the start: the product gives
float32, at no cost where products accumulate in float32 anyway, and sums between ranks and over micro-batches are
float32, as PyTorch's DistributedDataParallel reduces it.

A cast that ends in another kind of equation stays a cast. A transpose that exchanges the factors of a product becomes a
product of the exchanged factors: XLA:CPU joins the two, and has no kernel for the joined product of bfloat16 batches
with float32 results (jax 0.10 to 0.11).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.core import ShapedArray
from jax.interpreters import mlir

from sbpjax._core.jax_private import ClosedJaxpr, Literal, Primitive, Var
from sbpjax._core.programs.primitives import MOVES, PRODUCTS

from .rewrite import rewrite_program

# The backward of a cast: `convert_element_type` of a gradient to the dtype of its weight.
cast_back_p = Primitive("cast_back")
cast_back_p.def_impl(jax.lax.convert_element_type)
cast_back_p.def_abstract_eval(lambda x, *, new_dtype: ShapedArray(x.shape, new_dtype))
mlir.register_lowering(
    cast_back_p, mlir.lower_fun(lambda x, *, new_dtype: jax.lax.convert_element_type(x, new_dtype), False)
)


def cast_back(x: Any, dtype: Any) -> Any:
    """Return a traced gradient in the dtype of its weight."""
    return cast_back_p.bind(x, new_dtype=np.dtype(dtype))


def widen_gradients(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program whose gradients of cast weights are float32 from where they are summed; none is cast back."""
    return rewrite_program(closed, _change)


def _change(closed: ClosedJaxpr, inside: Callable) -> ClosedJaxpr:
    """Return a closed jaxpr without `cast_back`; the same one if it has none."""
    jaxpr = closed.jaxpr
    eqns = [inside(eqn) for eqn in jaxpr.eqns]
    if any(eqn.primitive is cast_back_p for eqn in eqns):
        pass_ = _Pass(eqns, jaxpr.outvars)
        jaxpr = jaxpr.replace(eqns=pass_.run(), outvars=[pass_.current_variable(v) for v in jaxpr.outvars])
    elif not all(a is b for a, b in zip(eqns, jaxpr.eqns, strict=True)):
        jaxpr = jaxpr.replace(eqns=eqns)
    return closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)


class _Pass:
    """The change of one jaxpr."""

    def __init__(self, eqns: list, outvars: list) -> None:
        self._eqns = eqns
        self._maker = {v: i for i, eqn in enumerate(eqns) for v in eqn.outvars}
        self._uses: dict[Var, int] = {}
        for v in [v for eqn in eqns for v in eqn.invars] + list(outvars):
            if not isinstance(v, Literal):
                self._uses[v] = self._uses.get(v, 0) + 1
        self._instead: dict[int, list] = {}  # of an equation those that take its place
        self._renamed: dict[Var, Var] = {}

    def current_variable(self, v):
        """Return the variable that holds a value now."""
        return v if isinstance(v, Literal) else self._renamed.get(v, v)

    def run(self) -> list:
        """Return the new equations."""
        for i, eqn in enumerate(self._eqns):
            if eqn.primitive is not cast_back_p:
                continue
            v, dtype = eqn.invars[0], eqn.params["new_dtype"]
            if self._can_widen(v, dtype):
                self._instead[i] = []
                self._renamed[eqn.outvars[0]] = self._wide(v, dtype)
            else:
                self._instead[i] = [make_cast(eqn, v, eqn.outvars[0], dtype)]
        found = [e for i, eqn in enumerate(self._eqns) for e in self._instead.get(i, (eqn,))]
        return [e.replace(invars=[self.current_variable(v) for v in e.invars]) for e in found]

    def _can_widen(self, v, dtype) -> bool:
        """Return whether nothing else reads a value and its equation can give it in a wider dtype."""
        if isinstance(v, Literal):
            return False
        i = self._maker.get(v)
        # Read by others too it would have to exist in both dtypes.
        if i is None or self._uses[v] != 1 or dtype != np.float32 or i in self._instead:
            return False
        eqn = self._eqns[i]
        name = eqn.primitive.name
        if name in MOVES:
            return self._can_widen(eqn.invars[0], dtype)
        if name == "add_any":
            # Of ``x + x`` the equation of x would be replaced twice.
            return eqn.invars[0] is not eqn.invars[1] and all(self._can_widen(u, dtype) for u in eqn.invars)
        return name in PRODUCTS or name == "reduce_sum"

    def _wide(self, v: Var, dtype) -> Var:
        """Change the equations that make a value, and return the variable of its wide form."""
        i = self._maker[v]
        eqn = self._eqns[i]
        name = eqn.primitive.name
        wide = Var(ShapedArray(_shape(v), dtype))
        made_by = self._maker.get(eqn.invars[0]) if name == "transpose" else None
        if made_by is not None and (product := _exchange_factors(self._eqns[made_by], eqn.params["permutation"])):
            params = {**product.params, "preferred_element_type": dtype}
            self._instead[made_by], self._instead[i] = [], [product.replace(outvars=[wide], params=params)]
        elif name in MOVES or name == "add_any":
            self._instead[i] = [eqn.replace(invars=[self._wide(u, dtype) for u in eqn.invars], outvars=[wide])]
        elif name in PRODUCTS:
            params = {**eqn.params, "preferred_element_type": dtype}
            self._instead[i] = [eqn.replace(outvars=[wide], params=params)]
        else:  # a sum is as exact as its accumulator
            terms, casts = eqn.invars[0], []
            if self._can_widen(terms, dtype):
                terms = self._wide(terms, dtype)
            else:
                terms = Var(ShapedArray(_shape(terms), dtype))
                casts.append(make_cast(eqn, eqn.invars[0], terms, dtype))
            self._instead[i] = [*casts, eqn.replace(invars=[terms], outvars=[wide])]
        return wide


def _exchange_factors(product, permutation: tuple[int, ...]):
    """Return a product with exchanged factors, or None if a permutation of its result is not such an exchange."""
    if product.primitive.name != "dot_general":
        return None
    left, right = product.invars
    (summed_left, summed_right), (batch_left, batch_right) = product.params["dimension_numbers"]
    batch, end = len(batch_left), len(permutation)
    middle = len(_shape(left)) - len(summed_left)  # where the dims of the right factor begin
    if tuple(permutation) != (*range(batch), *range(middle, end), *range(batch, middle)):
        return None
    dims = (summed_right, summed_left), (batch_right, batch_left)
    params = {**product.params, "dimension_numbers": dims}
    if isinstance(params["precision"], tuple):
        params["precision"] = params["precision"][::-1]
    return product.replace(invars=[right, left], params=params)


def _shape(v: Any) -> tuple[int, ...]:
    return v.aval.shape


def make_cast(like, source, target: Var, dtype):
    """Return the equation that casts a variable into another, at the place of the equation `like`."""
    params = {"new_dtype": np.dtype(dtype), "weak_type": False, "sharding": None}
    return like.replace(primitive=jax.lax.convert_element_type_p, invars=[source], outvars=[target], params=params)
