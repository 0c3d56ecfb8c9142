"""Function outlining: repeated layers of a flat program become calls of one function.

XLA:CPU compiles a kernel once however often it occurs, so twelve equal layers should cost little more than one. They
do not, because it fuses across layers: the residual stream after the tenth layer is the sum of ten branches, each
reader of it gets a kernel of its own that adds up all ten, and no two layers have a kernel in common. A 12-layer GPT
step came to 303 kernels of 3.5 MB of LLVM code.

Here the layers are found (`_core.programs.repeated_layers`) and each becomes a call marked not to be inlined by XLA.
Nothing is fused across the call, so all layers have the same kernels: 149 of 0.9 MB, and the long sums are not
recomputed. Unlike a loop (`_core.programs.scan_layers`), a call needs no stacks: weights and saved activations stay
where they are.

A collective is never in such a call, only between two of them. XLA:CPU (jaxlib 0.10) starts collectives in program
order but does not look into calls for them. A call that waits for a kernel lets the following operations begin, the
collectives of both meet, since `shard_map` gives all of them one channel, and the process aborts in XLA's rendezvous.

Nor is a convolution: XLA:CPU (jaxlib 0.10) runs those within a call several times slower. A step of ResNet-50 at 64
pixels takes 0.35 s of CPU time without such calls and 0.83 s with them, and compiles no faster with them.

Only XLA:CPU gets such calls. Compilers for accelerators fuse with their own cost models, and calls would be in their
way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.xla_metadata import set_xla_metadata

from sbpjax._core.jax_private import Literal, NamedAxisEffect

from .normalise import Program, bind, evaluate
from .primitives import CONVOLUTIONS
from .repeated_layers import LayerLoop, layer_loops

# Equations that are worth a call: XLA cannot combine sums hidden in a call, and every call costs compile time.
_LEAST_MEMBERS = 12


def run_outlined(program: Program, arrays: Sequence) -> list:
    """Run a flat program on arrays (traced), each of its repeated layers as a call of one function."""
    env: dict = dict(program.consts)
    env.update(zip(program.invars, arrays, strict=True))
    at = 0
    for loop in layer_loops(program):
        evaluate(program.eqns[at : loop.start], env)
        _calls(program, env, loop)
        at = loop.stop
    evaluate(program.eqns[at:], env)
    return [_value(env, v) for v in program.outvars]


def _value(env: dict, v):
    return v.val if isinstance(v, Literal) else env[v]


def _cast_value(env: dict, v) -> jax.Array:
    """Return a value as an array of its variable's dtype."""
    # Of the first layer the carry may be a number of the program's text, and of the others an array; a call has one
    # signature.
    return jnp.asarray(_value(env, v), v.aval.dtype)


def _calls(program: Program, env: dict, loop: LayerLoop) -> None:
    """Run the iterations of a loop as calls of its first iteration's equations."""
    carry = [_cast_value(env, v) for _, v in loop.carried]
    shared = [env[v] for v in loop.shared]
    pieces = _pieces(program, loop)
    for k in range(loop.iterations):
        values: dict = {("carry", i): x for i, x in enumerate(carry)}
        values.update((("shared", i), x) for i, x in enumerate(shared))
        values.update((("own", i), _cast_value(env, iterations[k])) for i, iterations in enumerate(loop.own))
        for piece in pieces:
            piece.run(values)
        carry = [values["iteration", producer] for producer, _ in loop.carried]
        env.update((iterations[k], values["iteration", producer]) for producer, iterations in loop.kept)


class _Piece:
    """Equations of an iteration that are run together: as one call, or one by one."""

    def __init__(self, eqns: Sequence, loop: LayerLoop, members: list[int]) -> None:
        self._eqns, self._loop, self.members = eqns, loop, members
        slots = [slot for j in members for slot in loop.slots[j] if slot[0] != "literal"]
        self.reads = [s for s in dict.fromkeys(slots) if s[0] != "iteration" or s[1][0] not in members]
        self.gives: list[tuple[int, int]] = []  # the outputs that others read
        self._call: Any = None
        convolves = any(eqns[j].primitive.name in CONVOLUTIONS for j in members)
        self.is_call = len(members) >= _LEAST_MEMBERS and not convolves

    def run(self, values: dict) -> None:
        """Compute the members' outputs from `values`, and put those that others read there."""
        operands = [values[slot] for slot in self.reads]
        if not self.is_call:
            results = self._compute(*operands)
        else:
            if self._call is None:
                # Traced once and bound for every layer, so that all layers call one function of the module and not
                # equal ones.
                (self._call,) = jax.make_jaxpr(jax.jit(self._make_layer()))(*operands).jaxpr.eqns
            # The mark is on the call alone: around the trace it would be on every operation of the layer.
            with set_xla_metadata(inlineable="false"):
                results = bind(self._call, operands)
        values.update((("iteration", producer), x) for producer, x in zip(self.gives, results, strict=True))

    def _make_layer(self):
        # A function of its own per piece, as `jax.jit` keeps programs by function; and the name that profiles show.
        def layer(*operands):
            return self._compute(*operands)

        return layer

    def _compute(self, *operands) -> list:
        known: dict = dict(zip(self.reads, operands, strict=True))
        for j in self.members:
            given = [value if kind == "literal" else known[kind, value] for kind, value in self._loop.slots[j]]
            known.update((("iteration", (j, i)), x) for i, x in enumerate(bind(self._eqns[j], given)))
        return [known["iteration", producer] for producer in self.gives]


def _pieces(program: Program, loop: LayerLoop) -> list[_Piece]:
    """Return an iteration in pieces, in order: each collective alone, and the equations between them."""
    eqns = program.eqns[loop.start : loop.start + loop.period]
    runs: list[list[int]] = []
    open_run = False
    for j, eqn in enumerate(eqns):
        alone = any(isinstance(effect, NamedAxisEffect) for effect in eqn.effects)
        if alone or not open_run:
            runs.append([])
        runs[-1].append(j)
        open_run = not alone
    pieces = [_Piece(eqns, loop, members) for members in runs]
    wanted = {value for piece in pieces for kind, value in piece.reads if kind == "iteration"}
    wanted |= {producer for producer, _ in (*loop.carried, *loop.kept)}
    for piece in pieces:
        piece.gives = [(j, i) for j in piece.members for i in range(len(eqns[j].outvars)) if (j, i) in wanted]
    return pieces
