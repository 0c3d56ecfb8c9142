"""Repeated layers as loops: same values, same collectives, a program that does not grow with depth."""

import functools
import re

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.compiler import hlo
from sbpjax._core.compiler.compile import compile_program
from sbpjax._core.compiler.conversions import from_logical, to_logical
from sbpjax._core.programs.normalise import normalise
from sbpjax._core.programs.repeated_layers import layer_loops
from sbpjax._core.programs.scan_layers import roll_layers
from sbpjax.sbp.layout import layout_of
from sbpjax.sbp.placement import placement
from tests import models_jax

LAYERS = 6
TOLERANCE = 2e-6


def _program(fn, *args):
    return normalise(jax.make_jaxpr(fn)(*args))


def _run_rolled(fn, *args):
    """Return a function of the flat arguments: the calls in it inlined, and its repeated layers as loops."""
    closed = jax.make_jaxpr(fn)(*args)
    program = normalise(closed)
    debug_info = closed.jaxpr.debug_info.with_unknown_names()
    flat = closed.jaxpr.replace(
        constvars=list(program.consts), eqns=program.eqns, outvars=program.outvars, debug_info=debug_info
    )
    return jax.extend.core.jaxpr_as_fun(
        roll_layers(closed.replace(jaxpr=flat, consts=list(program.consts.values()))).closed
    )


def _layer(x, w, b):
    """Sixteen equations or more, so that a repetition counts."""
    y = jnp.tanh(x @ w + b)
    y = y - y.mean(-1, keepdims=True)
    y = y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-3)
    return x + jax.nn.sigmoid(y) * jnp.exp(-y * y) * 0.5


def _stack(x, weights, biases):
    for w, b in zip(weights, biases):
        x = _layer(x, w, b)
    return x


@functools.cache
def _values(layers=LAYERS):
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((8, 8)).astype(np.float32) * 0.3 for _ in range(layers)]
    biases = [rng.standard_normal(8).astype(np.float32) for _ in range(layers)]
    return rng.standard_normal((4, 8)).astype(np.float32), weights, biases


def _close(got, want):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE)


def test_forward_layers_are_one_loop():
    program = _program(_stack, *_values())
    (loop,) = layer_loops(program)
    assert loop.iterations >= LAYERS - 1
    assert (len(loop.carried), len(loop.own)) == (1, 2)
    flat = jax.tree.leaves(_values())
    _close(jax.jit(_run_rolled(_stack, *_values()))(*flat), [_stack(*_values())])


def test_backward_layers_scan_the_stacks_of_the_forward_ones():
    def loss(weights, biases, x):
        return jnp.sum(_stack(x, weights, biases) ** 2)

    x, weights, biases = _values()
    fn = jax.value_and_grad(loss, argnums=(0, 1))
    program = _program(fn, weights, biases, x)
    found = layer_loops(program)
    assert len(found) == 2
    rolled = jax.jit(_run_rolled(fn, weights, biases, x))
    flat = jax.tree.leaves((weights, biases, x))
    _close(rolled(*flat), jax.tree.leaves(fn(weights, biases, x)))
    stacks = jax.make_jaxpr(rolled)(*flat).jaxpr.eqns[0].params["jaxpr"].jaxpr.eqns
    joined = [e for e in stacks if e.primitive.name in ("concatenate", "stack")]
    # the weights and biases of the forward loop, and the gradients, whose first layer is apart: the backward loop
    # makes no stack of weights or activations of its own
    assert len(joined) == len(found[0].own)
    assert sum(e.primitive.name in ("slice", "squeeze") for e in stacks) < 60


def test_a_backward_that_begins_anew_finds_what_layers_began_with():
    def forward(x, w, b):
        return _layer(x, w, b)

    def loss(weights, biases, x):
        for w, b in zip(weights, biases):
            x = jax.checkpoint(forward)(x, w, b)
        return jnp.sum(x**2)

    x, weights, biases = _values()
    fn = jax.value_and_grad(loss, argnums=(0, 1))
    program = _program(fn, weights, biases, x)
    forth, back = layer_loops(program)
    flat = jax.tree.leaves((weights, biases, x))
    run = _run_rolled(fn, weights, biases, x)
    _close(jax.jit(run)(*flat), jax.tree.leaves(fn(weights, biases, x)))
    eqns = jax.make_jaxpr(run)(*flat).jaxpr.eqns
    assert (forth.iterations, back.iterations) == (LAYERS, LAYERS - 1)  # the first input needs no gradient
    first, second = [e for e in eqns if e.primitive.name == "scan"]
    begun = [e for e in eqns if e.outvars[0] in second.invars and e.outvars[0].aval.shape == (LAYERS - 1, *x.shape)]
    assert [(e.primitive.name, e.invars[0] in first.outvars) for e in begun] == [("slice", True)]
    assert sum(e.primitive.name in ("concatenate", "stack") for e in eqns) == len(forth.own)


@pytest.mark.parametrize(
    "case", ["every layer is returned", "the first differs", "shared weight", "two back", "literals differ"]
)
def test_what_a_layer_reads_may_come_from_anywhere(case):
    x, weights, biases = _values()

    def fn(x, weights, biases):
        seen = [x, x]
        for i, (w, b) in enumerate(zip(weights, biases)):
            w = weights[0] if case == "shared weight" else w
            y = _layer(seen[-1] if i or case != "the first differs" else jnp.cos(x), w, b)
            if case == "two back":
                y = y + seen[-2]
            if case == "literals differ":
                y = y * float(i)
            seen.append(y)
        return seen[2:] if case == "every layer is returned" else seen[-1]

    program = _program(fn, x, weights, biases)
    assert bool(layer_loops(program)) == (case != "two back")
    got = _run_rolled(fn, x, weights, biases)(*jax.tree.leaves((x, weights, biases)))
    _close(got, jax.tree.leaves(fn(x, weights, biases)))


def test_updates_of_an_optimizer_are_left_as_they_are():
    def update(p, g):
        return [
            a - 0.1 * jnp.tanh(b) / (jnp.sqrt(b * b) + 1e-3) + jnp.exp(-jnp.abs(a)) * jnp.cos(b) ** 2
            for a, b in zip(p, g)
        ]

    p = [np.ones((4, 4), np.float32)] * 12
    assert layer_loops(_program(update, p, p)) == []


def _compiled(layers, strategy):
    step = models_jax.gpt(layers, 8, 8, 16, 4, 32)
    p = placement("cpu", np.arange(4).reshape((2, 2) if "+" in strategy else (4,)))
    codes = models_jax.pins(step, strategy)
    layouts = [layout_of(p, c, a.shape, np.dtype(a.dtype)) for c, a in zip(codes, step.avals)]
    loss = ",".join("B" * len(p.hierarchy))
    return step, compile_program(step.fn, p, layouts, [*range(step.state), loss], roll=True)


def test_a_rolled_step_moves_the_planned_bytes_and_gives_the_values():
    step, program = _compiled(5, "dp+tp")
    text = program.hlo()
    # A code generator of XLA makes loops of scatters too; ours are those that were traced as loops.
    assert len(re.findall(r' while\(.*op_name="[^"]*/while"', text)) == 2
    assert hlo.total_interconnect_bytes(text) == pytest.approx(program.plan.bytes, rel=0.01)
    values = step.values()
    arrays = [from_logical(v, x.placement, x.sbp)[0] for v, x in zip(values, program.in_layouts)]
    for y, layout, want in zip(program.call(*arrays), program.out_layouts, jax.jit(step.fn)(*values)):
        np.testing.assert_allclose(np.asarray(to_logical(y, layout)), want, rtol=0, atol=TOLERANCE)


def test_the_compiled_layers_do_not_grow_with_depth():
    products = [_compiled(layers, "tp")[1].lower().as_text().count("dot_general") for layers in (6, 9)]
    assert products[0] == products[1]


def _step_of_calls(x, weights, slopes):
    """A step whose layers and updates are calls of one function each, as a traced model has them."""
    layer = jax.jit(lambda x, w, b: _layer(x, w, b))
    update = jax.jit(lambda p, g: p - 0.1 * jnp.tanh(g) / (jnp.sqrt(g * g) + 1e-3) * jnp.exp(-p * p) + jnp.cos(p) ** 2)

    def loss(weights, y):
        for w, b in zip(weights, slopes):
            y = layer(y, w, b)
        return jnp.sum(y**2)

    grads, grad = jax.grad(loss, argnums=(0, 1))(weights, x)
    return [*(update(w, g) for w, g in zip(weights, grads)), grad]


def test_calls_are_rolled_and_resident_inputs_are_stacks():
    x, weights, biases = _values()
    closed = jax.make_jaxpr(_step_of_calls)(x, weights, biases)
    n = len(weights)
    resident = {1 + i: ("weight", i) for i in range(n)}
    found = roll_layers(closed, resident)
    assert found.inputs == [(0,), tuple(range(1, 1 + n)), *((1 + n + i,) for i in range(n))]
    assert found.outputs == [tuple(range(n)), (n,)]
    primitives = [e.primitive.name for e in found.closed.jaxpr.eqns]
    assert primitives.count("scan") == 3
    slices = [e for e in found.closed.jaxpr.eqns if e.invars and e.invars[0] is found.closed.jaxpr.invars[1]]
    assert {e.primitive.name for e in slices} == {"scan"}  # nobody takes the resident stack apart
    got = jax.jit(jax.extend.core.jaxpr_as_fun(found.closed))(x, jnp.stack(weights), *biases)
    _close([*got[0], got[1]], _step_of_calls(x, weights, biases))


def test_inputs_of_other_kinds_are_not_stacked_together():
    x, weights, biases = _values()
    closed = jax.make_jaxpr(_step_of_calls)(x, weights, biases)
    resident = {1 + i: (i % 2, i) for i in range(len(weights))}
    found = roll_layers(closed, resident)
    assert all(len(group) == 1 for group in (*found.inputs, *found.outputs))
    got = jax.jit(jax.extend.core.jaxpr_as_fun(found.closed))(x, *weights, *biases)
    _close(list(got), _step_of_calls(x, weights, biases))
