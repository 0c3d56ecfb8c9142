"""Update rules as pure functions over arrays, and `update`, which applies them to a whole model.

A *bucket* is a run of parameters that share a rule, its flags, hyperparameters and step count. `update` takes the
arrays of all buckets in one flat list and returns the new ones, so one compiled program updates everything. Numbers
such as the learning rate are inputs of that program: a schedule never compiles anew.

`update` adds the following around a rule:

* *master weights*: the rule runs in float32 on a copy kept in the state, and the parameter is the rounded copy;
* *lazy* buckets: rows of a table whose gradient is zero stay as they are, state included;
* buckets of *rows*: the rule runs on the rows that a batch looked up, and on their state, and on nothing else;
* a *guarded* update: if a flag is set (a gradient overflowed), everything stays as it is, the step count included.

Optax's transformations equal most of these rules, but importing optax takes half a second, as long as PyTorch
for the first steps of a small model; so the formulas are written here. `from_optax` takes any transformation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sbpjax._core.ops.layers.row_update import NOWHERE, row_update
from sbpjax._core.tensor.dispatch.traced_calls import TracedCall

Array = jax.Array
State = dict[str, Array]  # of one parameter, by name
Hyper = dict[str, Any]  # numbers, by name
Updated = tuple[Array, State]


class Bucket(NamedTuple):
    """Static description of a bucket of parameters; hashable, part of the compiled program's key.

    Attributes:
        rule: ``rule(param, grad, state, step, hyper, **flags) -> (param, state)``.
        flags: ``(name, value)`` pairs that choose the formula.
        hyper: names of the numbers, in the order in which they come.
        states: names of the state arrays per parameter, in the order in which they come.
        count: the number of parameters.
        lazy: whether rows without gradient are left alone.
        rows: whether gradients are of rows: each is two arrays, their numbers and their gradients.
    """

    rule: Callable
    flags: tuple[tuple[str, bool], ...]
    hyper: tuple[str, ...]
    states: tuple[str, ...]
    count: int
    lazy: bool = False
    rows: bool = False


MASTER = "master"  # the state that holds a float32 copy of a parameter of lower precision


def update(*arrays: jax.Array, buckets: tuple[Bucket, ...], guarded: bool = False) -> tuple[jax.Array, ...]:
    """Update all parameters.

    Args:
        arrays: if guarded, first the flag; then per bucket its numbers and its step count, its parameters, gradients,
            and each kind of state. Of gradients of rows first all their numbers, then all rows.
        buckets: the buckets that the arrays belong to, in order.
        guarded: whether a flag can prevent any change.

    Returns:
        Per bucket the next step count, the parameters, and each kind of state, flat.
    """
    flat = iter(arrays)
    skip = next(flat) if guarded else None
    results: list[jax.Array] = []
    for bucket in buckets:
        hyper = {name: next(flat) for name in bucket.hyper}
        count = next(flat)
        per_param = [[next(flat) for _ in range(bucket.count)] for _ in range(2 + bucket.rows + len(bucket.states))]
        one = (_table_update if bucket.rows else parameter_update)(bucket._replace(count=1), guarded)
        updated = [one(skip, count, hyper, *arrays) for arrays in zip(*per_param)]
        results.append(count + 1 if skip is None else jnp.where(skip, count, count + 1))
        for kind in zip(*updated):
            results += kind
    return tuple(results)


def _describe_update(buckets: tuple[Bucket, ...], guarded: bool = False) -> tuple[str, tuple[str, ...]]:
    """Return a readable description of an update, to find where ranks differ, and the names of its numbers."""
    rules = dict.fromkeys(getattr(b.rule, "__name__", "its rule") for b in buckets)
    words = f"optimizer step by {', '.join(rules)} of {sum(b.count for b in buckets)} parameters"
    return words, tuple(name for b in buckets for name in b.hyper)


update.described = _describe_update  # type: ignore[attr-defined]
update.crosses_placements = True  # type: ignore[attr-defined]  # a program over stages updates them all at once


@functools.lru_cache(maxsize=256)
def parameter_update(bucket: Bucket, guarded: bool) -> Callable:
    """Return the update of one parameter as a function of its own, so that equal parameters are traced once."""

    def update_one(skip, count, hyper, param, grad, *states):
        run = _apply_to_master if MASTER in bucket.states else _apply_rule
        before = [param, *states]
        after = run(bucket, param, grad, dict(zip(bucket.states, states)), count + 1, hyper)
        row = _touched_rows(grad) if bucket.lazy else None
        if row is not None:
            after = [jnp.where(row, a, b) for a, b in zip(after, before)]
        return tuple(jnp.where(skip, b, a) for a, b in zip(after, before)) if guarded else tuple(after)

    return TracedCall(update_one)


@functools.lru_cache(maxsize=256)
def _table_update(bucket: Bucket, guarded: bool) -> Callable:
    """Return the update of one table by a gradient of rows, see `_core.ops.layers.row_update`."""
    rule = RowRule(bucket)

    def update_rows(skip, count, hyper, param, ids, rows, *states):
        # A step that is left out names no row.
        ids = jnp.where(skip, NOWHERE, ids) if guarded else ids
        numbers = (count + 1, *(jnp.asarray(hyper[name]) for name in bucket.hyper))
        return tuple(row_update(ids, rows, numbers, (param, *states), rule))

    return TracedCall(update_rows)


class RowRule(NamedTuple):
    """The rule of a bucket as a function of rows; equal for equal buckets, as parameters of equations must be."""

    bucket: Bucket

    def __call__(self, numbers, grad, param, *states) -> list:
        """Return the new rows of the parameter and of each state."""
        step, *hyper = numbers
        run = _apply_to_master if MASTER in self.bucket.states else _apply_rule
        named = dict(zip(self.bucket.states, states))
        return run(self.bucket, param, grad, named, step, dict(zip(self.bucket.hyper, hyper)))


def _apply_rule(bucket: Bucket, param, grad, states: dict, step, hyper: dict) -> list:
    given = {name: states[name] for name in bucket.states if name != MASTER}
    param, after = bucket.rule(param, grad, given, step, hyper, **dict(bucket.flags))
    return [param, *(after[name] for name in bucket.states if name != MASTER)]


def _apply_to_master(bucket: Bucket, param, grad, states: dict, step, hyper: dict) -> list:
    """Run the rule on the float32 copy; if the parameter differs from its rounded copy, the user changed it."""
    master = states[MASTER]
    master = jnp.where(master.astype(param.dtype) == param, master, param.astype(master.dtype))
    master, *rest = _apply_rule(bucket, master, grad.astype(master.dtype), states, step, hyper)
    rest.insert(bucket.states.index(MASTER), master)
    return [master.astype(param.dtype), *rest]


def _touched_rows(grad: jax.Array) -> jax.Array | None:
    """Return which rows of a table have a gradient, to be broadcast over it; None for a vector, which has no rows."""
    if grad.ndim < 2:
        return None
    return jnp.any(grad != 0, axis=tuple(range(1, grad.ndim)), keepdims=True)


def decay_gradient(p: Array, g: Any, hyper: Hyper, maximize: bool, decay: bool) -> Array:
    """Return the gradient to follow down: negated for a maximum, with L2 decay added."""
    g = -g if maximize else g
    return add_decay(g, p, hyper) if decay else g


def add_decay(u: Any, p: Array, hyper: Hyper) -> Array:
    """Return ``u + weight_decay * p``."""
    return u + (hyper["weight_decay"] * p).astype(p.dtype)


def descend(p: Array, u: Array, lr: Any) -> Array:
    """Return ``p - lr * u``, in the parameter's dtype."""
    return p - (lr * u).astype(p.dtype)


def elementwise(rule: Callable) -> Callable:
    """Mark a rule whose formula has each element by itself: one trace serves parameters of all shapes.

    Its operators leave equations in a trace, not a ``jit`` call each, so it is traced in half the time.
    """

    @functools.wraps(rule)
    def run(*arrays, **flags):
        with jax.disable_jit():
            return rule(*arrays, **flags)

    run.is_elementwise = True  # type: ignore[attr-defined]
    return run


@elementwise
def sgd(
    p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, maximize: bool, decay: bool, momentum: bool,
    dampening: bool, nesterov: bool, whole_first: bool = False,
) -> Updated:  # fmt: skip
    """Stochastic gradient descent: ``b = momentum * b + (1 - dampening) * g``, ``p -= lr * b``.

    With `nesterov` the update is ``g + momentum * b``; with `whole_first` the first gradient enters undampened.
    """
    u: Any = decay_gradient(p, g, hyper, maximize, decay)
    if momentum:
        b, part = state["momentum_buffer"], 1 - hyper["dampening"] if dampening else 1
        if whole_first and dampening:  # a state that PyTorch saved has a sum, and no step count
            part = jnp.where((step == 1) & ~jnp.any(b), 1.0, part)
        b = (hyper["momentum"] * b + part * u).astype(b.dtype)
        u = u + (hyper["momentum"] * b).astype(u.dtype) if nesterov else b
        state = {"momentum_buffer": b}
    return descend(p, u, hyper["lr"]), state


@elementwise
def adam(
    p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, maximize: bool, decay: bool, decoupled: bool,
    amsgrad: bool, correct: bool = True,
) -> Updated:  # fmt: skip
    """Adam, and with `decoupled` weight decay AdamW.

    ``m = b1 m + (1 - b1) g``, ``v = b2 v + (1 - b2) g²``, ``p -= lr * m̂ / (sqrt(v̂) + eps)`` with ``m̂ = m / (1 -
    b1^t)`` and ``v̂ = v / (1 - b2^t)``, or without `correct` ``m̂ = m`` and ``v̂ = v``; with `amsgrad`, v̂ is made of
    the largest v so far.
    """
    g = decay_gradient(p, g, hyper, maximize, decay and not decoupled)
    u, state = adam_direction(g, state, step, hyper, amsgrad, correct)
    if decay and decoupled:
        u = add_decay(u, p, hyper)
    return descend(p, u, hyper["lr"]), state


def adam_direction(
    g: Array, state: State, step: Array, hyper: Hyper, amsgrad: bool = False, correct: bool = True
) -> tuple[Array, State]:
    """Return Adam's direction ``m̂ / (sqrt(v̂) + eps)`` and the new moments."""
    b1, b2, m, v = hyper["beta1"], hyper["beta2"], state["exp_avg"], state["exp_avg_sq"]
    m, v = (b1 * m + (1 - b1) * g).astype(m.dtype), (b2 * v + (1 - b2) * (g * g)).astype(v.dtype)
    new = {"exp_avg": m, "exp_avg_sq": v}
    if amsgrad:
        v = new["max_exp_avg_sq"] = jnp.maximum(state["max_exp_avg_sq"], v)
    if correct:
        m, v = m / (1 - b1**step).astype(m.dtype), v / (1 - b2**step).astype(v.dtype)
    return m / (jnp.sqrt(v) + hyper["eps"]), new
