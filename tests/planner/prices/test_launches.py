"""Launches: what waits for what, and how many collectives a plan has once those that do not wait are combined."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sbpjax as flow
from benchmarks import auto
from sbpjax._core.compiler import hlo
from sbpjax._core.inspect.auto.baseline import hand_pins
from sbpjax._core.planner import plan_program
from sbpjax._core.planner.graph import build
from sbpjax._core.planner.prices.cost import DEFAULT, PRESETS
from sbpjax._core.planner.prices.launches import launch_groups, launches
from sbpjax._core.planner.problem import Assignment, Problem, combined_launches, total_us
from sbpjax._core.programs.normalise import normalise
from tests import models_jax

H100 = PRESETS["h100"]
LAYERS = 5


def gpt_on(where, cost, pins=None, layers=2):
    """Return the subject of a small GPT's step, and its plan."""
    case = auto.problem(models_jax.gpt(layers, 8, 16, 32, 8, 64), where, cost, "gpt")
    return case, case.plan(hand_pins(case, pins) if pins else None)


def chain(count, batch=4096, width=16):
    """Return a step that normalises the gradients of a chain of products, and its inputs."""

    def step(x, *weights):
        def loss(weights):
            y = x
            for w in weights:
                y = jnp.tanh(y @ w)
            return (y * y).sum()

        gradients = jax.grad(loss)(weights)
        norm = sum((g * g).sum() for g in gradients)
        return tuple(w - g / norm for w, g in zip(weights, gradients))

    shapes = (batch, width), *((width, width),) * count
    return step, [jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes]


def test_gradients_wait_for_none_of_each_other_and_activations_do():
    fn, avals = chain(LAYERS)
    program = normalise(jax.make_jaxpr(fn)(*avals))
    products = [e for e in program.eqns if e.primitive.name == "dot_general"]
    gradients = [e.outvars[0] for e in products if e.outvars[0].aval.shape == (16, 16)]
    activations = [e.outvars[0] for e in products[:LAYERS]]
    assert len(gradients) == LAYERS
    found = launch_groups(program, {"gradients": gradients, "activations": activations, "weights": program.invars[1:]})
    assert found["weights"] == ("start", 0)
    assert found["gradients"][0] == "end"  # although their norm is added up one by one
    assert "activations" not in found


def counted(model, x, w, **sizes):
    """Return the launches on four ranks where the batch and every weight are given."""
    fn, avals = chain(LAYERS, **sizes)
    program = normalise(jax.make_jaxpr(fn)(*avals))
    pins = list(range(1, LAYERS + 1))
    return launches(plan_program(program, (4,), [(x,), *[(w,)] * LAYERS], pins), model)


def test_gradients_of_data_parallelism_are_one_all_reduce():
    assert counted(H100, 0, -1) == {"psum": 1}
    assert counted(DEFAULT, 0, -1) == {"psum": LAYERS}


def test_a_combined_collective_has_so_many_bytes_at_most():
    each = 2 * 3 / 4 * 16 * 16 * 4
    for fit in (1, 2, 3, 5):
        model = replace(H100, combined_bytes=fit * each)
        assert counted(model, 0, -1) == {"psum": -(-LAYERS // fit)}


def test_layers_that_wait_for_each_other_are_not_combined():
    # Every weight is split along its rows: each product is a sum over ranks, which the next one waits for.
    assert sum(counted(H100, -1, 0, batch=2, width=256).values()) >= LAYERS


def test_loops_launch_in_every_iteration():
    def step(x, w):
        return jax.lax.scan(lambda y, _: (jnp.tanh(y @ w), None), x, None, length=7)[0]

    avals = jax.ShapeDtypeStruct((8, 16), jnp.float32), jax.ShapeDtypeStruct((16, 16), jnp.float32)
    program = normalise(jax.make_jaxpr(step)(*avals))
    plan = plan_program(program, (4,), [(-1,), (0,)], [(-1,)])
    kinds = [s.kind for b in plan.boxings for s in b.steps if s.bytes for _ in range(b.times)]
    assert sum(launches(plan, H100).values()) == len(kinds)


@pytest.mark.parametrize("pins", ["dp", "zero1"])
def test_a_plan_pays_each_combined_collective_once(pins):
    where = flow.placement("cpu", np.arange(8))
    _, plan = gpt_on(where, DEFAULT, pins)
    steps = sum(s.bytes > 0 for b in plan.boxings for s in b.steps)
    assert sum(launches(plan, H100).values()) < steps / 2
    assert sum(launches(plan, DEFAULT).values()) == steps + bool(plan.inner_bytes)


def test_the_modelled_time_has_the_launches():
    fn, avals = chain(LAYERS)
    program = normalise(jax.make_jaxpr(fn)(*avals))
    codes, pins = [(0,), *[(-1,)] * LAYERS], list(range(1, LAYERS + 1))
    graph = build(program, codes, pins, (), (-1,))
    free, paid = (Problem(graph, (4,), H100.with_latency(us)) for us in (0.0, 10.0))
    first = Assignment({0: [paid.strategies(n, 0)[0] for n in range(len(graph.nodes))]})
    launched = combined_launches(paid, first)
    assert launched and not combined_launches(free, first)
    # On top what is not combined, and each one's share of a full collective.
    assert total_us(paid, first) - total_us(free, first) >= 10.0 * len(launched)


def test_small_models_are_planned_with_few_launches():
    where = flow.placement("cpu", np.arange(8))
    by_bytes, by_time = gpt_on(where, DEFAULT)[1], gpt_on(where, H100)[1]
    before, after = (sum(launches(p, H100).values()) for p in (by_bytes, by_time))
    assert after < before
    # Cheaper by the same prices: the plan by bytes has its modelled time without launches, and those on top.
    assert by_time.modelled_us < by_bytes.modelled_us + H100.alpha_us * before


@pytest.mark.aot
@pytest.mark.parametrize("pins", ["zero1", "fsdp"])
def test_the_gpu_compiler_combines_as_planned(pins):
    where = flow.placement.topology("h100:8", (8,))
    with jax.enable_x64(False):
        case, plan = gpt_on(where, DEFAULT, pins)
        text, _ = auto.by_sbpjax(case, plan)
    counts = {}
    for c in hlo.collectives(text):
        counts[c.kind] = counts.get(c.kind, 0) + c.count
    planned = launches(plan, H100)
    names = {"all-gather": "all_gather", "reduce-scatter": "psum_scatter", "all-to-all": "all_to_all"}
    for kind, step in names.items():
        assert abs(counts.get(kind, 0) - planned.get(step, 0)) <= 2, kind
