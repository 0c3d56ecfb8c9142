"""Weight-cast hoisting: moves casts of weights out of loops and blocks, so that each runs once per step.

Under autocasting a layer casts its weights. In the forward and backward of a block, and in the iterations of a loop,
that is the same cast of the same array again and again: such casts leave the traced part, which gets their results as
further inputs, and the program around it makes each of them once per step.

    (w: f32, x) → bf16(w) @ bf16(x)          becomes          (w: f32, x, w': bf16) → w' @ bf16(x)
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import ml_dtypes
import numpy as np

from sbpjax._core.jax_private import ClosedJaxpr, Literal

_FLOATS = tuple(np.dtype(d) for d in (np.float16, ml_dtypes.bfloat16, np.float32))


class Cast(NamedTuple):
    """A cast that moves from a traced part to its surroundings.

    Attributes:
        place: the position of the input that is cast.
        dtype: the new dtype.
    """

    place: int
    dtype: np.dtype


def without_casts(closed: ClosedJaxpr, places: Collection[int]) -> tuple[ClosedJaxpr, list[Cast]]:
    """Return a program that takes casts of some of its inputs as further inputs, at the end.

    Args:
        closed: the program.
        places: the inputs whose casts leave it.

    Returns:
        The program, and the casts in the order of the further inputs.
    """
    jaxpr = closed.jaxpr
    number = {jaxpr.invars[place]: place for place in places}
    returned = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    casts, made, rest = [], [], []
    for eqn in jaxpr.eqns:
        # Returned casts stay: the surroundings have no equation that could return them.
        if _is_cast(eqn) and eqn.invars[0] in number and eqn.outvars[0] not in returned:
            casts.append(Cast(number[eqn.invars[0]], np.dtype(eqn.params["new_dtype"])))
            made.append(eqn.outvars[0])
        else:
            rest.append(eqn)
    if not casts:
        return closed, []
    names = jaxpr.debug_info.with_unknown_names()
    changed = jaxpr.replace(invars=[*jaxpr.invars, *made], eqns=rest, debug_info=names)
    return ClosedJaxpr(changed, closed.consts), casts


def _is_cast(eqn) -> bool:
    """Return whether an equation is a cast of autocasting: from one of its dtypes to another."""
    if eqn.primitive.name != "convert_element_type" or isinstance(eqn.invars[0], Literal):
        return False
    return eqn.invars[0].aval.dtype in _FLOATS and np.dtype(eqn.params["new_dtype"]) in _FLOATS
