"""What is tied to what."""

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbpjax._core.planner.graph import build
from sbpjax._core.planner.program import plan_program
from sbpjax._core.planner.shared_variables import classes
from sbpjax._core.programs.normalise import normalise
from tests import models_jax


@given(st.lists(st.integers(0, 3), max_size=60))
def test_tied_equations_have_one_form(signatures):
    for i, c in enumerate(classes(signatures)):
        assert c <= i and signatures[c] == signatures[i]


def test_updates_of_differently_pinned_parameters_are_not_tied():
    """Square matrices of equal shape, split by columns and by rows in turn: the optimizer's equations look alike."""
    step = models_jax.mlp(32, 64, 64, layers=8, bias=False)
    program = normalise(jax.make_jaxpr(step.fn)(*step.avals))
    codes = [
        (i % 2,) if len(a.shape) == 2 and not n.startswith("x") else (-1,)
        for i, (n, a) in enumerate(zip(step.names, step.avals))
    ]
    graph = build(program, codes, [*range(step.state), (-1,)], (), (-1,))
    inputs = {v: codes[i] for i, v in enumerate(program.invars)}
    for node in graph.nodes:
        for position in range(len(program.eqns[node.members[0]].invars)):
            pinned = {
                inputs.get(program.eqns[i].invars[position])
                for i in node.members
                if not hasattr(program.eqns[i].invars[position], "val")
            }
            assert len(pinned) <= 1


def test_values_of_tied_layers_are_counted():
    step = models_jax.mlp(32, 16, 16, layers=20)
    program = normalise(jax.make_jaxpr(step.fn)(*step.avals))
    codes = models_jax.pins(step, "dp")
    graph = build(program, codes, [*range(step.state), (-1,)], (), (-1,))
    assert sum(n.count for n in graph.nodes) == sum(n is not None for n in graph.region.nodes)
    assert len(graph.nodes) < len(program.eqns) / 2
    assert max(graph.values.values()) >= 8


def accumulated(layers, sbps):
    """Return a GPT's step of gradient descent over two micro-batches, and the pins of its inputs and outputs."""
    params = models_jax.gpt_params(layers, 32, 64, 16)
    tokens = [jax.ShapeDtypeStruct((16, 16), jnp.int32)] * 2

    def step(params, *tokens):
        def body(sums, micro):
            data = dict(zip(("tokens", "targets"), micro, strict=True))
            grads = jax.grad(models_jax.gpt_loss)(params, data, 4)
            return jax.tree.map(jnp.add, sums, grads), None

        micro = tuple(t.reshape(2, -1, 16) for t in tokens)
        sums, _ = jax.lax.scan(body, jax.tree.map(jnp.zeros_like, params), micro)
        return jax.tree.leaves(jax.tree.map(lambda p, g: p - 0.1 * g, params, sums))

    program = normalise(jax.make_jaxpr(step)(params, *tokens))
    codes = [sbps(path[-1].key) for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    return program, [*codes, *[sbps("tokens")] * 2], list(range(len(codes)))


LAYOUTS = {
    "data": lambda name: (0,) if name == "tokens" else (-1,),
    "tensor": lambda name: {"up": (1,), "wq": (1,), "down": (0,), "wo": (0,)}.get(name, (-1,)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_graph_of_an_accumulated_step_does_not_grow_with_depth(layout):
    few, many = (build(*accumulated(n, LAYOUTS[layout]), (), (-1,)) for n in (5, 8))
    assert len(few.nodes) == len(many.nodes)
    ports = [n for n in many.nodes if n.port == "carried"]
    assert sum(len(n.members) for n in ports) > 8 * 16 and len(ports) < 5 * 16


def test_tied_layers_cost_what_layers_planned_apart_cost(monkeypatch):
    program, codes, pins = accumulated(3, LAYOUTS["tensor"])
    together = plan_program(program, (8,), codes, pins)
    monkeypatch.setattr("sbpjax._core.planner.graph.tie_equations", lambda numbers, *rest: list(range(len(numbers))))
    apart = plan_program(program, (8,), codes, pins)
    assert together.modelled_us == pytest.approx(apart.modelled_us, rel=1e-6)
    assert together.bytes == apart.bytes > 0


def test_scalars_take_no_part():
    def fn(x, rate):
        return x * (1 - rate**2)

    program = normalise(jax.make_jaxpr(fn)(jnp.ones((8, 4)), jnp.float32(0.1)))
    graph = build(program, [(0,), (-1,)], [None], (), (-1,))
    assert [program.eqns[n.members[0]].primitive.name for n in graph.nodes] == ["mul"]
