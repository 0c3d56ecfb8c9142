"""Repeated layers as calls: same values, same collectives, the same kernels in every layer."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.compiler import hlo
from sbpjax._core.compiler.compile import compile_program
from sbpjax._core.compiler.conversions import from_logical, to_logical
from sbpjax._core.compiler.lower import spmd_function
from sbpjax._core.programs.normalise import normalise
from sbpjax._core.programs.outline import run_outlined
from sbpjax.sbp.layout import layout_of
from sbpjax.sbp.placement import placement
from tests import models_jax

LAYERS = 6
TOLERANCE = 2e-6


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


def _values():
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((8, 8)).astype(np.float32) * 0.3 for _ in range(LAYERS)]
    biases = [rng.standard_normal(8).astype(np.float32) for _ in range(LAYERS)]
    return rng.standard_normal((4, 8)).astype(np.float32), weights, biases


def _check(fn, *args):
    """Return the jaxpr of the outlined function, having compared its values."""
    program = normalise(jax.make_jaxpr(fn)(*args))
    flat = jax.tree.leaves(args)
    got = jax.jit(lambda *xs: run_outlined(program, xs))(*flat)
    for a, b in zip(got, jax.tree.leaves(fn(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE)
    return jax.make_jaxpr(lambda *xs: run_outlined(program, xs))(*flat).jaxpr


def _calls(jaxpr):
    return [e for e in jaxpr.eqns if e.primitive.name == "jit"]


def test_every_layer_is_a_call_of_one_function():
    calls = _calls(_check(_stack, *_values()))
    assert len(calls) >= LAYERS - 1
    assert len({id(e.params["jaxpr"]) for e in calls}) == 1


def test_convolutions_are_in_no_call():
    def stack(x, weights, biases):
        for w, b in zip(weights, biases):
            kernel = jnp.broadcast_to(w[:, :, None], (*w.shape, 3))
            x = _layer(jax.lax.conv_general_dilated(x[:, :, None], kernel, (1,), "SAME")[:, :, 0], w, b)
        return x

    assert not _calls(_check(stack, *_values()))


def test_only_the_call_is_marked():
    (first, *_) = _calls(_check(_stack, *_values()))
    assert first.ctx.xla_metadata == {"inlineable": "false"}
    assert not any(e.ctx.xla_metadata for e in first.params["jaxpr"].jaxpr.eqns)


def test_forward_and_backward_layers_are_two_functions():
    x, weights, biases = _values()
    fn = jax.value_and_grad(lambda w, b, x: jnp.sum(_stack(x, w, b) ** 2), argnums=(0, 1))
    calls = _calls(_check(fn, weights, biases, x))
    assert len({id(e.params["jaxpr"]) for e in calls}) == 2


@pytest.mark.parametrize("case", ["every layer is returned", "the first differs", "shared weight", "two back"])
def test_what_a_layer_reads_may_come_from_anywhere(case):
    x, weights, biases = _values()

    def fn(x, weights, biases):
        seen = [x, x]
        for i, (w, b) in enumerate(zip(weights, biases)):
            w = weights[0] if case == "shared weight" else w
            y = _layer(seen[-1] if i or case != "the first differs" else jnp.cos(x), w, b)
            seen.append(y + seen[-2] if case == "two back" else y)
        return seen[2:] if case == "every layer is returned" else seen[-1]

    assert bool(_calls(_check(fn, x, weights, biases))) == (case != "two back")


def _compiled(layers):
    step = models_jax.gpt(layers, 8, 8, 16, 4, 32)
    p = placement("cpu", np.arange(4).reshape(2, 2))
    codes = models_jax.pins(step, "dp+tp")
    layouts = [layout_of(p, c, a.shape, np.dtype(a.dtype)) for c, a in zip(codes, step.avals)]
    return step, compile_program(step.fn, p, layouts, [*range(step.state), "B,B"])


def _kernels(text):
    """Return the fused computations of a compiled program, without their names."""
    bodies = re.findall(r"^%?(fused_computation[\w.]*) .*?\{\n(.*?)^\}", text, re.M | re.S)
    return {re.sub(r"%[\w.-]+|metadata=\{.*?\}|frontend_attributes=\{.*?\}|[\s,]", "", body) for _, body in bodies}


def test_a_step_moves_the_planned_bytes_and_gives_the_values():
    step, program = _compiled(5)
    text = program.hlo()
    assert text.count(" call(") >= 8  # forward and backward, less what differs at the ends
    assert hlo.total_interconnect_bytes(text) == pytest.approx(program.plan.bytes, rel=0.01)
    values = step.values()
    arrays = [from_logical(v, x.placement, x.sbp)[0] for v, x in zip(values, program.in_layouts)]
    for y, layout, want in zip(program.call(*arrays), program.out_layouts, jax.jit(step.fn)(*values)):
        np.testing.assert_allclose(np.asarray(to_logical(y, layout)), want, rtol=0, atol=TOLERANCE)


@pytest.mark.exhaustive  # half a minute of compiling
def test_kernels_do_not_grow_with_depth_as_they_do_without_calls():
    _, program = _compiled(8)
    plan, p = program.plan, program.in_layouts[0].placement
    args = [jax.ShapeDtypeStruct(x.physical_shape, x.dtype, sharding=x.sharding) for x in program.in_layouts]
    copies = jax.jit(spmd_function(plan, p, repeats="copies")).lower(*args).compile().as_text()
    kernels = len(_kernels(program.hlo()))
    assert len(_kernels(_compiled(5)[1].hlo())) == kernels
    assert len(_kernels(copies)) > kernels + 3


def test_collectives_stand_between_calls():
    """In a call XLA:CPU does not order them, and the process aborts when those of two calls meet."""
    _, program = _compiled(5)
    text = program.hlo()
    called = set(re.findall(r" call\(.*?to_apply=(%[\w.-]+)", text))
    bodies = dict(re.findall(r"^(%[\w.-]+) \(.*?\{\n(.*?)^\}", text, re.M | re.S))
    assert len(called) >= 8 and called <= bodies.keys()
    kinds = re.compile(r" (?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")
    assert kinds.search(text)
    assert not any(kinds.search(bodies[name]) for name in called)
