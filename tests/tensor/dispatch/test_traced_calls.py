"""Calls in a trace leave the same program whether they are bound by ``jit`` or written down again."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.tensor.dispatch.traced_calls import TracedCall


def layer(x, w):
    return jnp.tanh(x @ w), {"sum": x.sum()}


def chain(call, turns=4):
    def run(x, w):
        for _ in range(turns):
            x, more = call(x, w)
        return x, more["sum"]

    return run


X = jnp.ones((4, 4), jnp.float32)


def counted():
    traces = []

    def call(x, w):
        traces.append(x.dtype)
        return layer(x, w)

    return TracedCall(call), traces


def test_the_program_is_that_of_jit():
    traced, plain = TracedCall(layer), jax.jit(layer)
    assert str(jax.make_jaxpr(chain(traced))(X, X)) == str(jax.make_jaxpr(chain(plain))(X, X))
    assert str(jax.make_jaxpr(chain(traced))(X, X)) == str(jax.make_jaxpr(chain(plain))(X, X))
    found, expected = (jax.jit(chain(call))(X, X / 8) for call in (traced, plain))
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_further_calls_do_not_ask_jit(monkeypatch):
    traced, traces = counted()
    jax.make_jaxpr(chain(traced))(X, X)
    requested = []
    monkeypatch.setattr(traced, "_call", lambda *args: requested.append(args))
    eqns = jax.make_jaxpr(chain(traced, 9))(X, X).jaxpr.eqns
    assert [e.primitive.name for e in eqns] == ["jit"] * 9 and len({id(e.params["jaxpr"]) for e in eqns}) == 1
    assert not requested and len(traces) == 1


def test_other_types_and_settings_are_other_calls():
    traced, traces = counted()
    for dtype in (jnp.float32, jnp.bfloat16, jnp.float32):
        x = X.astype(dtype)
        closed = jax.make_jaxpr(chain(traced))(x, x)
        assert closed.out_avals[0].dtype == dtype
    assert traces == [jnp.float32, jnp.bfloat16]
    with jax.default_matmul_precision("highest"):
        closed = jax.make_jaxpr(chain(traced))(X, X)
    assert "HIGHEST" in str(closed.jaxpr.eqns[-1].params["jaxpr"])
    assert "HIGHEST" not in str(jax.make_jaxpr(chain(traced))(X, X).jaxpr.eqns[-1].params["jaxpr"])


def test_each_call_has_its_own_names():
    traced = TracedCall(layer)

    def run(x, w):
        for i in range(3):
            with jax.named_scope(f"layer{i}"):
                x, _ = traced(x, w)
        return x

    stacks = [str(e.source_info.name_stack) for e in jax.make_jaxpr(run)(X, X).jaxpr.eqns]
    assert stacks == ["layer0", "layer1", "layer2"]


def test_it_can_be_differentiated_mapped_and_looped():
    traced, x = TracedCall(layer), jnp.arange(16.0, dtype=jnp.float32).reshape(4, 4) / 16

    def loss(call):
        return lambda x, w: jax.lax.scan(lambda c, _: (chain(call)(c, w)[0], None), x, None, length=2)[0].sum()

    for change in (jax.grad, lambda f: jax.vmap(f, (0, None)), jax.jit):
        found, expected = (change(loss(call))(x, x) for call in (traced, jax.jit(layer)))
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("given", [2.0, np.float32(2.0), np.ones((4, 4), np.float32), X])
def test_numbers_and_constants_are_taken_as_jit_takes_them(given):
    traced, plain = TracedCall(lambda x, n: x * n), jax.jit(lambda x, n: x * n)
    for _ in range(2):
        found, expected = (jax.make_jaxpr(lambda x, call=call: call(x, given))(X) for call in (traced, plain))
        assert str(found) == str(expected)


@pytest.mark.parametrize("fn", [lambda x: x, lambda x: (x + 1, x), lambda x: x + np.arange(4.0), lambda x: ()])
def test_calls_that_hand_through_or_hold_constants_are_right(fn):
    traced = TracedCall(fn)
    for _ in range(3):
        found = jax.jit(lambda x: jax.tree.leaves(traced(x)))(X)
        jax.tree.map(np.testing.assert_array_equal, found, jax.tree.leaves(fn(X)))


def test_outside_a_trace_it_is_jit():
    np.testing.assert_array_equal(TracedCall(layer)(X, X)[0], jax.jit(layer)(X, X)[0])


def test_only_so_many_kinds_are_kept(monkeypatch):
    monkeypatch.setattr(sys.modules[TracedCall.__module__], "_MAX_KEPT", 2)
    traced = TracedCall(jnp.negative)
    for n in range(5):
        jax.make_jaxpr(lambda x: traced(x) * 2)(jnp.ones(n + 1))
        assert len(traced._kept) <= 2
