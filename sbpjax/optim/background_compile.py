"""Background compilation of an optimizer's first update, while its first backward is compiled.

The program of a first step is known before any gradient or state exists, if all parameters are on one device and get
dense gradients. If the step needs another program, since a parameter was frozen or a loss scale guards it, it compiles
that itself.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.device import META
from sbpjax._core.tensor.handle.dtype import float32
from sbpjax._core.tensor.storage.payload import requires_grad
from sbpjax._core.tensor.tape.row_grad import row_table_of
from sbpjax.optim import run
from sbpjax.optim.rules import MASTER

if TYPE_CHECKING:
    from sbpjax.optim.optimizer import Optimizer


def compile_update(reference: weakref.ReferenceType[Optimizer]) -> None:
    """Compile the first update of an optimizer; do nothing if it has made a step, or runs several programs."""
    optimizer = reference()
    if optimizer is None or optimizer.state:
        return
    states: dict[Tensor, dict[str, Any]] = {}
    buckets: dict[Any, list[Tensor]] = {}
    for index, group in enumerate(optimizer.param_groups):
        step = jax.ShapeDtypeStruct((), np.int64)
        for param in filter(requires_grad, group["params"]):
            if param.is_global or run.place_of(param) in (META, run.TRACE) or row_table_of(param) is not None:
                return
            states[param] = {"step": step, **_state(optimizer, param, group)}
            key = optimizer._key(param, index, states[param], of_rows=False)
            buckets.setdefault(key, []).append(param)
    if len({run.place_of(param) for param in states}) == 1:
        facts, jobs, groups = optimizer._make_update(list(buckets.items()), states)
        numbers = [optimizer._numbers(optimizer.param_groups[i]) for i in groups]
        run.compile_update(facts, [job._replace(numbers=n) for job, n in zip(jobs, numbers)])


def _state(optimizer: Optimizer, param: Tensor, group: dict[str, Any]) -> dict[str, jax.ShapeDtypeStruct]:
    """Return the shapes of the state that a parameter gets in its first step."""
    on_master = bool(group.get("master_weights")) and run.is_low(param.dtype)
    dtype = (float32 if on_master else param.dtype).np
    alike = jax.ShapeDtypeStruct(param.shape, dtype)
    found = {MASTER: alike} if on_master else {}
    for name in optimizer._states_of(param, group):
        shape = optimizer._shape(name, param)
        found[name] = alike if shape is None else jax.ShapeDtypeStruct(shape, run.statistics_dtype(param).np)
    return found
