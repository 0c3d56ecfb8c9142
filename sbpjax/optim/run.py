"""Running a compiled update on tensors in place: on one device, on a placement, inside a trace.

The old parameters and states are donated, so an update needs no second copy of them. A payload that something else
still holds (a retained graph, `x.jax()`, an alias) must survive; the reference count tells, and then nothing is
donated.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, NamedTuple

import jax
import numpy as np
from jax._src.array import ArrayImpl  # `type(x) is ArrayImpl` costs a third of isinstance(x, jax.Array)

import sbpjax
from sbpjax.optim import rules
from sbpjax.optim.rules import Bucket
from sbpjax.tensor import Tensor, dispatch
from sbpjax.tensor.op import op_of

TRACE = "trace"  # the place of every tensor inside a trace


class Job(NamedTuple):
    """The tensors of one bucket.

    Attributes:
        numbers: hyperparameters, in the order of `Bucket.hyper`.
        step: the 0-d step count.
        params: the parameters, each with a gradient.
        states: for each name in `Bucket.states` one tensor per parameter.
    """

    numbers: tuple[Any, ...]
    step: Tensor
    params: list[Tensor]
    states: list[list[Tensor]]


def place_of(tensor: Tensor) -> Any:
    """Return what tensors of one update share: the placement, or the device, or the trace."""
    array = tensor._fresh()._array
    if array.__class__ is ArrayImpl:
        if tensor._layout is not None:
            return tensor._layout.placement
        sharding = array.sharding
        return getattr(sharding, "_device", sharding)  # a device hashes and compares faster than its sharding
    return TRACE


def update_in_place(buckets: tuple[Bucket, ...], jobs: list[Job]) -> None:
    """Run the update of all buckets as one program and write the results into step counts, parameters and states."""
    inputs: list[Any] = []
    donated: list[int] = []
    targets: list[Tensor] = []
    for job in jobs:
        inputs += [float(n) if n.__class__ is int else n for n in job.numbers]
        for tensors in ([job.step], job.params, [p.grad for p in job.params], *job.states):
            if tensors and tensors[0] is not job.params[0].grad:
                donated += range(len(inputs), len(inputs) + len(tensors))
                targets += tensors
            inputs += tensors
    first = jobs[0].params[0]
    if place_of(first) is TRACE:
        results = dispatch.run(op_of(rules.update, (("buckets", buckets),)), tuple(inputs))
        for target, result in zip(targets, results):
            target._set(result._array, target._layout)
        return
    arrays = [x._fresh()._array if isinstance(x, Tensor) else x for x in inputs]
    donate = _unshared(targets, arrays, donated)
    if first._layout is None:
        results = _compiled(buckets, donate)(*arrays)
        for target, result in zip(targets, results):
            target._set(result)
        return
    from sbpjax.sbp import eager

    results, layouts = eager.execute(
        rules.update,
        (("buckets", buckets),),
        arrays,
        [x._layout if isinstance(x, Tensor) else None for x in inputs],
        placement=first._layout.placement,
        out_sbps=tuple(t._layout.codes for t in targets),
        donate=donate,
    )
    for target, result, layout in zip(targets, results, layouts):
        target._set(result, layout)


@functools.lru_cache(maxsize=512)
def _compiled(buckets: tuple[Bucket, ...], donate: tuple[int, ...]):
    def update(*arrays):
        return rules.update(*arrays, buckets=buckets)

    return jax.jit(update, donate_argnums=donate)


def _references(arrays: list, place: int) -> int:
    return sys.getrefcount(arrays[place])


class _Holder:
    def __init__(self) -> None:
        self.array = object()


# How many references a payload has that its tensor and the argument list hold, and nothing else.
_HOLDER = _Holder()
_UNSHARED = _references([_HOLDER.array], 0)


def _unshared(tensors: list[Tensor], arrays: list, places: list[int]) -> tuple[int, ...]:
    """Return the places to donate: all of them, or none if something else holds one of the arrays."""
    for tensor, place in zip(tensors, places):
        if _references(arrays, place) > _UNSHARED + (tensor._cell is not None):  # a cell holds its array too
            return ()
    return tuple(places)


def zeros_like(param: Tensor) -> Tensor:
    """Return zeros laid out like the parameter."""
    if param.is_global:
        return sbpjax.zeros_like(param.detach())
    return dispatch.wrap(_as_firmly(np.zeros(param.shape, param.dtype.np), param))


def new_step(param: Tensor, value: int) -> Tensor:
    """Return a 0-d int64 step count at the parameter's place."""
    if param.is_global:
        sbp = (sbpjax.sbp.broadcast,) * len(param.placement.hierarchy)
        return sbpjax.full((), value, dtype=sbpjax.int64, placement=param.placement, sbp=sbp)
    return dispatch.wrap(_as_firmly(np.asarray(value, np.int64), param))


def _as_firmly(value: np.ndarray, param: Tensor) -> jax.Array:
    """Return a local array that is bound to the parameter's device if the parameter is.

    JAX compiles anew when an input is bound to its device in one call and not in another; results of a program with one
    bound input are all bound.
    """
    array = param._fresh()._array
    return jax.device_put(value, array.sharding) if array.committed else jax.numpy.array(value)


def same_place(tensor: Tensor, param: Tensor) -> bool:
    """Return whether a step count lies where the parameter does."""
    here, there = tensor._layout, param._layout
    if here is None or there is None:
        return here is there and place_of(tensor) is place_of(param)
    return here.placement == there.placement


def laid_out_alike(state: Tensor, param: Tensor) -> bool:
    """Return whether a state tensor has the parameter's layout."""
    here, there = state._layout, param._layout
    if here is there:
        return here is not None or place_of(state) is place_of(param)
    return here is not None and there is not None and (here.placement, here.codes) == (there.placement, there.codes)


def lay_out_like(state: Tensor, param: Tensor) -> Tensor:
    """Return a state tensor in the parameter's layout, keeping its value and dtype."""
    if not param.is_global:
        return (state.to_local() if state.is_global else state).to(param.device)
    if not state.is_global:
        sbp = [sbpjax.sbp.broadcast] * len(param.placement.hierarchy)
        state = state.to_global(placement=param.placement, sbp=sbp)
    return state.to_global(placement=param.placement, sbp=param.sbp)
