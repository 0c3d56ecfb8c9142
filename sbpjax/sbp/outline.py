"""Outlining: repeated layers of a flat program become calls of one function.

XLA:CPU compiles a kernel once however often it occurs, so twelve equal layers should cost little more than one. They
do not, because it fuses across layers: the residual stream after the tenth layer is the sum of ten branches, each
reader of it gets a kernel of its own that adds up all ten, and no two layers have a kernel in common. A 12-layer GPT
step came to 303 kernels of 3.5 MB of LLVM code.

Here the layers are found (`sbpjax.sbp.roll`) and each becomes a call that XLA is told not to inline. Nothing is fused
across the call, so all layers have the same kernels: 149 of 0.9 MB, and the long sums are not recomputed. Unlike a loop
(`run_rolled`), a call needs no stacks: weights and saved activations stay where they are.

Only XLA:CPU is told so. Compilers for accelerators fuse with their own cost models, and calls would be in their way.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import Literal

from .normalise import Program, bind, evaluate
from .roll import Loop, loops


def run_outlined(program: Program, arrays: Sequence) -> list:
    """Run a flat program on arrays (traced), each of its repeated layers as a call of one function."""
    env: dict = dict(program.consts)
    env.update(zip(program.invars, arrays, strict=True))
    at = 0
    for loop in loops(program):
        evaluate(program.eqns[at : loop.start], env)
        _calls(program, env, loop)
        at = loop.stop
    evaluate(program.eqns[at:], env)
    return [_value(env, v) for v in program.outvars]


def _value(env: dict, v):
    return v.val if isinstance(v, Literal) else env[v]


def _typed(env: dict, v) -> jax.Array:
    """Return a value as an array of its variable's dtype."""
    return jnp.asarray(_value(env, v), v.aval.dtype)


def _calls(program: Program, env: dict, loop: Loop) -> None:
    """Run the turns of a loop as calls of its first turn's equations."""
    carry = [_typed(env, v) for _, v in loop.carried]
    shared = [env[v] for v in loop.shared]
    own = [[_typed(env, turns[k]) for turns in loop.own] for k in range(loop.turns)]
    traced = jax.make_jaxpr(jax.jit(_turn(program, loop)))(carry, shared, own[0])
    (call,) = traced.jaxpr.eqns
    for k in range(loop.turns):
        # The mark is on the call alone: around the trace it would be on every operation of the layer.
        with set_xla_metadata(inlineable="false"):
            results = bind(call, [*carry, *shared, *own[k]])
        carry, kept = results[: len(carry)], results[len(carry) :]
        env.update((turns[k], x) for (_, turns), x in zip(loop.kept, kept, strict=True))


def _turn(program: Program, loop: Loop):
    """Return a turn as a function of what is carried, shared and its own; it gives the new carry and what is kept."""
    eqns = program.eqns[loop.start : loop.start + loop.period]

    def layer(carry, shared, own):
        made: dict = {}
        sources = {"carry": carry, "shared": shared, "own": own}
        for j, eqn in enumerate(eqns):
            operands = [
                what if kind == "literal" else made[what] if kind == "turn" else sources[kind][what]
                for kind, what in loop.slots[j]
            ]
            made.update(((j, position), x) for position, x in enumerate(bind(eqn, operands)))
        return [made[producer] for producer, _ in loop.carried], [made[p] for p, _ in loop.kept]

    return layer
