"""The update rules as pure functions over lists of arrays, and the one function that updates a whole model.

A *bucket* is a run of parameters that share a rule, its flags, hyperparameters and step count. `update` takes the
arrays of all buckets in one flat list and returns the new ones, so one compiled program updates everything. Numbers
such as the learning rate are inputs of that program: a schedule never compiles anew.

The rules are optax's transformations where those compute what PyTorch computes (up to rounding); where they do not,
the formula stands here: a first SGD step that skips `dampening`, and AMSGrad, where PyTorch takes the maximum
before the bias correction and optax after it. Optax is imported where it is used, so `import sbpjax` does not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Arrays = list[jax.Array]
States = dict[str, Arrays]


class Bucket(NamedTuple):
    """What is static about a run of parameters; hashable, part of the compiled program's key.

    Attributes:
        rule: ``rule(params, grads, states, step, hyper, **flags) -> (params, states)``.
        flags: ``(name, value)`` pairs that choose the formula.
        hyper: names of the numbers, in the order in which they come.
        states: names of the state arrays per parameter, in the order in which they come.
        count: the number of parameters.
    """

    rule: Callable
    flags: tuple[tuple[str, bool], ...]
    hyper: tuple[str, ...]
    states: tuple[str, ...]
    count: int


def update(*arrays: jax.Array, buckets: tuple[Bucket, ...]) -> tuple[jax.Array, ...]:
    """Update all parameters.

    Args:
        arrays: per bucket its numbers and its step count, then parameters, gradients, and each kind of state.
        buckets: what the arrays are.

    Returns:
        Per bucket the next step count, the parameters, and each kind of state, flat.
    """
    flat = iter(arrays)
    results: list[jax.Array] = []
    for bucket in buckets:
        hyper = {name: next(flat) for name in bucket.hyper}
        step = next(flat) + 1
        params, grads = _take(flat, bucket.count), _take(flat, bucket.count)
        states = {name: _take(flat, bucket.count) for name in bucket.states}
        params, states = bucket.rule(params, grads, states, step, hyper, **dict(bucket.flags))
        results += [step, *params]
        for name in bucket.states:
            results += states[name]
    return tuple(results)


def _take(flat: Iterator, count: int) -> Arrays:
    return [next(flat) for _ in range(count)]


def _decayed(params: Arrays, grads: Any, hyper: dict[str, Any], maximize: bool, decay: bool) -> Arrays:
    """Return the gradients to descend along: negated for a maximum, with L2 decay added."""
    grads = [-g if maximize else g for g in grads]
    if decay:
        import optax

        transform: Any = optax.add_decayed_weights(hyper["weight_decay"])
        grads, _ = transform.update(grads, optax.EmptyState(), params)
    return grads


def _apply(params: Arrays, updates: Arrays, lr: Any) -> Arrays:
    return [p - (lr * u).astype(p.dtype) for p, u in zip(params, updates)]


def sgd(
    params: Arrays,
    grads: Arrays,
    states: States,
    step: jax.Array,
    hyper: dict[str, Any],
    *,
    maximize: bool,
    decay: bool,
    momentum: bool,
    dampening: bool,
    nesterov: bool,
) -> tuple[Arrays, States]:
    """Stochastic gradient descent: ``b = momentum * b + (1 - dampening) * g``, ``p -= lr * b``.

    With `nesterov` the update is ``g + momentum * b``. The first step takes ``b = g`` whatever the dampening.
    """
    updates: Any = _decayed(params, grads, hyper, maximize, decay)
    if momentum and not dampening:
        import optax

        transform: Any = optax.trace(decay=hyper["momentum"], nesterov=nesterov)
        updates, trace = transform.update(updates, optax.TraceState(states["momentum_buffer"]))
        states = {"momentum_buffer": trace.trace}
    elif momentum:
        damped = 1 - hyper["dampening"]
        buffers = [
            jnp.where(step == 1, g, hyper["momentum"] * b + (damped * g).astype(g.dtype))
            for g, b in zip(updates, states["momentum_buffer"])
        ]
        states = {"momentum_buffer": buffers}
        updates = (
            [g + (hyper["momentum"] * b).astype(g.dtype) for g, b in zip(updates, buffers)] if nesterov else buffers
        )
    return _apply(params, updates, hyper["lr"]), states


def adam(
    params: Arrays,
    grads: Arrays,
    states: States,
    step: jax.Array,
    hyper: dict[str, Any],
    *,
    maximize: bool,
    decay: bool,
    decoupled: bool,
    amsgrad: bool,
) -> tuple[Arrays, States]:
    """Adam, and with `decoupled` weight decay AdamW.

    ``m = b1 m + (1 - b1) g``, ``v = b2 v + (1 - b2) g²``, ``p -= lr * m̂ / (sqrt(v̂) + eps)`` with ``m̂ = m / (1 -
    b1^t)`` and ``v̂ = v / (1 - b2^t)``; with `amsgrad`, v̂ is made of the largest v so far.
    """
    import optax

    grads = _decayed(params, grads, hyper, maximize, decay and not decoupled)
    updates: Any
    if amsgrad:
        updates, states = _amsgrad(grads, states, step, hyper)
    else:
        transform: Any = optax.scale_by_adam(hyper["beta1"], hyper["beta2"], hyper["eps"])
        state: Any = optax.ScaleByAdamState(count=step - 1, mu=states["exp_avg"], nu=states["exp_avg_sq"])
        updates, state = transform.update(grads, state)
        states = {"exp_avg": state.mu, "exp_avg_sq": state.nu}
    if decay and decoupled:
        updates, _ = optax.add_decayed_weights(hyper["weight_decay"]).update(updates, optax.EmptyState(), params)
    return _apply(params, updates, hyper["lr"]), states


def _amsgrad(grads: Arrays, states: States, step: jax.Array, hyper: dict[str, Any]) -> tuple[Arrays, States]:
    b1, b2 = hyper["beta1"], hyper["beta2"]
    mean = [(b1 * m + (1 - b1) * g).astype(m.dtype) for g, m in zip(grads, states["exp_avg"])]
    square = [(b2 * v + (1 - b2) * g * g).astype(v.dtype) for g, v in zip(grads, states["exp_avg_sq"])]
    largest = [jnp.maximum(a, v) for a, v in zip(states["max_exp_avg_sq"], square)]
    correct1, correct2 = 1 - b1**step, 1 - b2**step
    updates = [
        m / correct1.astype(m.dtype) / (jnp.sqrt(a / correct2.astype(a.dtype)) + hyper["eps"])
        for m, a in zip(mean, largest)
    ]
    return updates, {"exp_avg": mean, "exp_avg_sq": square, "max_exp_avg_sq": largest}
