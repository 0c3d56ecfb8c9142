"""Which results are new state: found by structure and by how they are computed."""

import collections

import jax
import jax.numpy as jnp
import optax
import pytest

from sbpjax._core.inspect.jax_steps.mesh import MeshAxes
from sbpjax._core.inspect.jax_steps.step import problem_of, trace_step
from sbpjax._core.planner.prices.cost import DEFAULT

from .cases import arguments, loss_of, make_mesh, train_step


def traced_pairs(fn, *args):
    """Return the names of arguments that come back, in the order of results; None for other results."""
    step = trace_step(fn, args)
    return [step.signature.names[step.pairs[o]] if o in step.pairs else None for o in range(len(step.program.outvars))]


W, X = jnp.ones((8, 4), jnp.float32), jnp.ones((16, 8), jnp.float32)
loss = lambda w, x: jnp.mean((x @ w["w"]) ** 2)  # noqa: E731
sgd = lambda w, g: jax.tree.map(lambda p, d: p - 0.1 * d, w, g)  # noqa: E731


def test_gradients_are_no_state():
    assert traced_pairs(lambda w, x: jax.grad(loss)(w, x), {"w": W}, X) == [None]
    assert traced_pairs(lambda w, x: (g := jax.grad(loss)(w, x), sgd(w, g)), {"w": W}, X) == [None, "w.w"]


def test_order_and_nesting_do_not_matter():
    def step(carry, x):
        value, g = jax.value_and_grad(loss)(carry[1], x)
        return {"loss": value, "state": (carry[0] + 1, sgd(carry[1], g))}

    assert traced_pairs(step, (jnp.float32(0), {"w": W}), X) == [None, "carry.0", "carry.1.w"]


def test_averages_and_parameters_of_one_structure_keep_their_order():
    def step(params, average, x):
        params = sgd(params, jax.grad(loss)(params, x))
        return params, jax.tree.map(lambda a, p: 0.9 * a + 0.1 * p, average, params)

    assert traced_pairs(step, {"w": W}, {"w": W}, X) == ["params.w", "average.w"]


def test_random_keys_and_counts_come_back():
    def step(w, key, count, x):
        key, _ = jax.random.split(key)
        return sgd(w, jax.grad(loss)(w, x)), key, count + 1

    key = jax.random.PRNGKey(0)
    assert traced_pairs(step, {"w": W}, key, jnp.zeros(3, jnp.int32), X) == ["w.w", "key", "count"]


def test_named_tuples_and_unused_state():
    State = collections.namedtuple("State", "params scale")

    def step(state, x):
        return State(sgd(state.params, jax.grad(loss)(state.params, x)), state.scale), jnp.sum(x)

    assert traced_pairs(step, State({"w": W}, W), X) == ["state.params.w", "state.scale", None]


def kinds(fn, *args):
    problem = problem_of(trace_step(fn, args), MeshAxes(make_mesh(8)), DEFAULT, None)
    return {x.name: (x.kind, None if x.parent is None else problem.inputs[x.parent].name) for x in problem.inputs}


def test_parameters_are_what_the_backward_reads():
    found = kinds(train_step, *arguments())
    assert found["params.l1.w"] == ("parameter", None)
    assert found["opt_state.0.mu.l1.w"] == ("state", "params.l1.w")
    assert found["opt_state.0.nu.l0.b"] == ("state", "params.l0.b")
    assert found["opt_state.0.count"] == ("number", None)
    assert found["x"] == found["y"] == ("batch", None)


def test_parameters_of_steps_in_a_loop():
    def steps(params, xs):
        return jax.lax.scan(lambda p, x: (sgd(p, jax.grad(loss)(p, x)), loss(p, x)), params, xs)

    assert kinds(steps, {"w": W}, X[None])["params.w"] == ("parameter", None)


def test_a_forward_has_parameters_in_its_first_argument():
    params, _, x, y = arguments()
    found = kinds(loss_of, params, x, y)
    assert found["params.l1.w"] == ("parameter", None) and found["x"] == ("batch", None)


@pytest.mark.parametrize("optimizer", [optax.sgd(0.1, momentum=0.9), optax.adafactor(0.1), optax.lion(0.1),
                                       optax.MultiSteps(optax.adamw(0.1), 2), optax.contrib.muon(0.1)])  # fmt: skip
def test_state_of_any_optimizer_comes_back(optimizer):
    params, _, x, y = arguments()

    def step(params, state, x, y):
        updates, state = optimizer.update(jax.grad(loss_of)(params, x, y), state, params)
        return optax.apply_updates(params, updates), state

    args = params, optimizer.init(params), x, y
    names = traced_pairs(step, *args)
    assert names == trace_step(step, args).signature.names[: len(names)]
