"""The forms in which calls are tested, and the call that is drawn for a form.

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

from collections.abc import Callable

import numpy as np

from tests.support.generate import Call, Gen, Input

from .against_itself import layouts, traced, traced_layouts
from .against_torch import alias, corners, double, dtypes, errors, forward, inplace, method, out
from .excuses import finite_corners
from .spec import Spec

AGAINST_TORCH = {f.__name__: f for f in (forward, corners, double, method, inplace, out, dtypes, errors, alias)}
AGAINST_ITSELF = {f.__name__: f for f in (layouts, traced, traced_layouts)}
FORMS: dict[str, Callable] = {**AGAINST_TORCH, **AGAINST_ITSELF}


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
