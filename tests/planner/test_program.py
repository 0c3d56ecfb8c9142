"""Whole training steps: planned bytes, compiled collectives, values."""

import itertools
import os
import pathlib
import random
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sbpjax._core.planner.program
from sbpjax._core.compiler import hlo
from sbpjax._core.compiler.compile import compile_program
from sbpjax._core.planner import plan_exactly, plan_program
from sbpjax._core.planner.graph import build
from sbpjax._core.planner.linear import exchange
from sbpjax._core.planner.memory.limit import peak_bytes
from sbpjax._core.planner.prices import cost
from sbpjax._core.planner.problem import Assignment, Problem, total_us
from sbpjax._core.programs.normalise import normalise
from sbpjax.errors import OutOfMemoryError
from sbpjax.sbp import boxing_marker
from sbpjax.sbp.layout import Layout, layout_of
from sbpjax.sbp.placement import placement
from tests import models_jax
from tests.planner.cases import compiled, mesh_of, reference, run

STRATEGIES = ["dp", "tp", "zero1", "fsdp", "dp+tp"]
CASES = [*itertools.product(["mlp", "gpt"], STRATEGIES), ("deep", "dp"), ("deep", "fsdp")]
# One step against one device: float32, summation order differs.
TOLERANCE = 2e-6
# Planned bytes against those of the compiled program.
BYTES = 0.01


def kinds(text: str) -> dict[str, int]:
    """Return how many tensors each kind of collective carries in a compiled program."""
    found: dict[str, int] = {}
    for c in hlo.collectives(text):
        found[c.kind] = found.get(c.kind, 0) + c.operands
    return found


@pytest.mark.parametrize("model, strategy", CASES)
def test_planned_bytes_are_those_of_the_compiled_program(model, strategy):
    case = compiled(model, strategy)
    moved = hlo.total_interconnect_bytes(case.compiled.hlo())
    assert moved > 0
    assert abs(moved - case.compiled.plan.bytes) <= BYTES * moved


# XLA's partitioner compiles for seconds: of the GPT's strategies two by default.
@pytest.mark.parametrize(
    "model, strategy",
    [
        pytest.param(*c, marks=[pytest.mark.exhaustive] if c in {("gpt", s) for s in ("dp", "tp", "zero1")} else [])
        for c in CASES
    ],
)
def test_at_most_the_bytes_of_the_same_pins_by_sharding_propagation(model, strategy):
    case = compiled(model, strategy)
    peer = jax.jit(
        case.step.fn,
        in_shardings=[x.sharding for x in case.layouts],
        out_shardings=tuple(x.sharding for x in case.compiled.out_layouts),
    )
    text = peer.lower(*(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in case.step.avals)).compile().as_text()
    assert case.compiled.plan.bytes <= hlo.total_interconnect_bytes(text)


@pytest.mark.parametrize("model, strategy", CASES)
def test_one_step_equals_one_device(model, strategy):
    values, expected = reference(model)
    got = run(compiled(model, strategy).compiled, values)
    assert len(got) == len(expected)
    for y, want in zip(got, expected):
        np.testing.assert_allclose(y, want, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("model, strategy", CASES)
def test_state_comes_back_as_it_came(model, strategy):
    case = compiled(model, strategy)
    assert case.compiled.out_layouts[:-1] == tuple(case.layouts[: case.step.state])
    assert case.compiled.plan.gap < 1e-6


# --- what the compiled program is made of -----------------------------------------------------------------------------


def _mlp_layouts(p, column, row):
    return [
        Layout(p, "B", (16, 32), "float32"),
        Layout(p, column, (32, 64), "float32"),
        Layout(p, row, (64, 32), "float32"),
    ]


def _mlp(x, w1, w2):
    return jax.nn.relu(x @ w1) @ w2


def test_megatron_mlp_has_one_all_reduce_forward():
    p = mesh_of("tp")
    program = compile_program(_mlp, p, _mlp_layouts(p, "S1", "S0"), ["B"])
    assert kinds(program.hlo()) == {"all-reduce": 1}


def test_megatron_mlp_has_one_all_reduce_backward():
    p = mesh_of("tp")

    def backward(x, w1, w2, dy):
        return jax.vjp(_mlp, x, w1, w2)[1](dy)

    layouts = [*_mlp_layouts(p, "S1", "S0"), Layout(p, "B", (16, 32), "float32")]
    program = compile_program(backward, p, layouts, ["B", 1, 2])
    assert kinds(program.hlo()) == {"all-reduce": 1}


def test_data_parallel_reduces_each_gradient_once():
    case = compiled("wide", "dp")
    parameters = sum(n.startswith("p.") for n in case.step.names)
    assert kinds(case.compiled.hlo()) == {"all-reduce": parameters + 1}  # and the loss
    assert len(hlo.collectives(case.compiled.hlo())) <= 2  # XLA joins them into one list


def test_zero_scatters_gradients_and_gathers_parameters():
    case = compiled("wide", "fsdp")
    parameters = sum(n.startswith("p.") for n in case.step.names)
    assert kinds(case.compiled.hlo()) == {"all-gather": parameters, "reduce-scatter": parameters, "all-reduce": 1}


def test_zero_one_gathers_the_updated_parameters():
    case = compiled("wide", "zero1")
    parameters = sum(n.startswith("p.") for n in case.step.names)
    assert kinds(case.compiled.hlo()) == {"all-gather": parameters, "reduce-scatter": parameters, "all-reduce": 1}


# --- the planner itself -----------------------------------------------------------------------------------------------


def _program(fn, *avals):
    return normalise(jax.make_jaxpr(fn)(*avals))


def test_equals_the_exact_planner_on_small_programs():
    x = jax.ShapeDtypeStruct((8, 16), jnp.float32)
    w = jax.ShapeDtypeStruct((16, 8), jnp.float32)
    programs = [
        (_program(lambda x: jax.nn.softmax(x, -1), x), [((0,),), ((1,),), ((-1,),), ((-2,),)]),
        (
            _program(lambda x, w: jnp.sum(jnp.tanh(x @ w) @ w.T), x, w),
            list(itertools.product([(0,), (1,), (-1,)], repeat=2)),
        ),
    ]
    by_bytes = cost.CostModel("bytes", 1e30, 1e30, 1e30, 1e12, 1e9, 1e-9)
    for program, choices in programs:
        for codes in choices:
            pins = ((-1,),)
            found = plan_program(program, (4,), codes, pins, cost=by_bytes)
            assert found.bytes == plan_exactly(program, (4,), codes, pins).bytes, codes


def test_modelled_time_is_at_most_that_of_any_other_assignment():
    program = _program(lambda x, w: jnp.tanh(x @ w), *(jax.ShapeDtypeStruct((8, 8), jnp.float32),) * 2)
    codes, pins = ((0,), (1,)), (None,)
    best = plan_program(program, (4,), codes, pins).modelled_us
    problem = Problem(build(program, codes, pins, (), (-1,)), (4,), cost.DEFAULT)
    every = [problem.strategies(n, 0) for n in range(len(problem.graph.nodes))]
    others = [total_us(problem, Assignment({0: list(rows)})) for rows in itertools.product(*every)]
    assert len(others) > 10
    assert best == pytest.approx(min(others), rel=1e-9)


def _mlp_step(tokens: int, width: int, hidden: int):
    def step(x, w1, w2):
        a, b = jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w[0]) @ w[1]))((w1, w2))
        return w1 - a, w2 - b

    shapes = (tokens, width), (width, hidden), (hidden, width)
    return _program(step, *(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes))


@pytest.mark.parametrize("seed", range(4))
def test_an_exchange_of_two_axes_takes_the_cheapest_set_of_nodes(seed):
    program = _program(lambda x, w: jnp.sum(jnp.tanh(x @ w) @ w.T), *(jax.ShapeDtypeStruct((64, 64), jnp.float32),) * 2)
    codes = ((0, -1), (0, 1))
    problem = Problem(build(program, codes, (None,), (), (-1, -1)), (2, 2), cost.preset("v5p"))
    axes, nodes = (0, 1), range(len(problem.graph.nodes))
    draw = random.Random(seed)

    def legal(node):
        pairs = itertools.product(problem.strategies(node, 0), problem.strategies(node, 1))
        return [pair for pair in pairs if problem.legal(node, pair, axes)]

    def assignment(pairs):
        return Assignment({a: [pair[a] for pair in pairs] for a in axes})

    now = [draw.choice(legal(n)) for n in nodes]
    every = [list(dict.fromkeys([pair, *({pair[::-1]} & set(legal(n)))])) for n, pair in zip(nodes, now)]
    assert sum(len(pairs) == 2 for pairs in every) >= 3
    best = min(total_us(problem, assignment(pairs)) for pairs in itertools.product(*every))
    found = exchange(problem, assignment(now), 0, 1)
    assert total_us(problem, found) == pytest.approx(best, rel=1e-9)
    assert all(found.strategies_of(n, axes) in every[n] for n in nodes)


def test_a_part_that_lies_the_wrong_way_round_is_exchanged(monkeypatch):
    step = _mlp_step(4096, 512, 2048)
    codes = ((0, -1), (0, 1), (1, 0))  # data × tensor, parameters divided over both
    prices = cost.preset("v5p")
    monkeypatch.setattr(sbpjax._core.planner.program, "_STARTS", 1)  # as large programs are; the other start lies right
    found = plan_program(step, (8, 8), codes, (1, 2), cost=prices).modelled_us
    monkeypatch.setattr(sbpjax._core.planner.program, "_exchange_axes", lambda *_: None)
    alternating = plan_program(step, (8, 8), codes, (1, 2), cost=prices).modelled_us
    assert found < 0.5 * alternating


def test_axes_may_begin_alike(monkeypatch):
    """A table that is divided over eight ranks; over the first two of them alone that does not pay."""
    case = models_jax.wide_deep(4_000_000, 64, 26, 65536, 1024)
    program = _program(case.fn, *case.avals)
    given, pins, free = [None] * len(case.avals), [*range(case.state), (-1,) * 3], range(len(case.avals))
    monkeypatch.setattr(sbpjax._core.planner.program, "_STARTS", 1)

    def found():
        return plan_program(program, (2, 2, 2), given, pins, free_inputs=free, cost=cost.preset("v5p")).modelled_us

    together = found()
    monkeypatch.setattr(sbpjax._core.planner.program, "_uniform_plan", lambda *_: None)
    assert together < 0.5 * found()


def test_given_layouts_that_differ_between_axes_do_not_begin_alike():
    program = _program(lambda x, w: x @ w, *(jax.ShapeDtypeStruct((64, 64), jnp.float32),) * 2)

    def start(codes):
        graph = build(program, (codes, None), (None,), (1,), (-1, -1))
        return sbpjax._core.planner.program._uniform_plan(Problem(graph, (2, 4), cost.preset("v5p")))

    assert start((0, -1)) is None
    alike = start((0, 0))
    assert alike.axes == (0, 1) and alike.strategies[0] == alike.strategies[1]


def test_a_conversion_that_two_readers_want_is_paid_once():
    def both(x, w1, w2):
        return x @ w1, x @ w2

    p = placement("cpu", [0, 1, 2, 3])
    layouts = [Layout(p, "S0", (64, 8), "float32"), *[Layout(p, "S1", (8, 2048), "float32")] * 2]
    program = compile_program(both, p, layouts, ["S1", "S1"])
    assert kinds(program.hlo()) == {"all-gather": 1}
    assert program.plan.bytes == 64 * 8 * 4 * 3 // 4


def test_large_computations_are_not_done_everywhere_to_save_bytes():
    case = models_jax.gpt(1, 8, 512, 256, 8, 1024)  # gathering the tokens would cost 16 kB, and no gradient a byte
    program = _program(case.fn, *case.avals)
    plan = plan_program(program, (8,), models_jax.pins(case, "dp"), [*range(case.state), (-1,)])
    products = [i for i, e in enumerate(program.eqns) if e.primitive.name == "dot_general"]
    assert all(any(c >= 0 for c in (*plan.strategies[i][0].ins, *plan.strategies[i][0].outs)) for i in products)


def test_pins_inside_the_program_are_kept():
    p = placement("cpu", [[0, 1], [2, 3]])

    def pinned(x):
        return boxing_marker.to_sbp(x * 2, p, "S0,S1") + 1

    program = compile_program(pinned, p, [Layout(p, "B,B", (8, 8), "float32")])
    assert program.out_layouts[0].codes == (0, 1)


def test_an_output_may_take_the_layout_of_an_input():
    p = placement("cpu", [0, 1, 2, 3])
    layouts = [Layout(p, "S1", (8, 8), "float32"), Layout(p, "S0", (8, 8), "float32")]
    program = compile_program(lambda x, y: (x + y, y), p, layouts, [0, None])
    assert [x.codes for x in program.out_layouts] == [(1,), (0,)]


def test_free_inputs_are_laid_out_by_the_planner_and_come_back_alike():
    step = models_jax.mlp(4096, 32, 4096)
    p = placement("cpu", np.arange(8))
    layouts = [layout_of(p, c, a.shape, np.dtype(a.dtype)) for c, a in zip(models_jax.pins(step, "dp"), step.avals)]
    free = [i for i, n in enumerate(step.names) if n[0] in "pmv" and n != "count"]
    pins = [*range(step.state), "B"]
    pinned = compile_program(step.fn, p, layouts, pins)
    released = compile_program(step.fn, p, layouts, pins, free_inputs=free)
    assert released.plan.modelled_us <= pinned.plan.modelled_us * (1 + 1e-9)
    assert released.out_layouts[: step.state] == released.in_layouts[: step.state]


def test_memory_limit_splits_the_state():
    step = models_jax.mlp(64, 256, 256)
    program = _program(step.fn, *step.avals)
    codes = models_jax.pins(step, "dp")
    pins = [*range(step.state), (-1,)]
    free = [i for i, n in enumerate(step.names) if n[0] in "pmv" and step.avals[i].shape]
    held = sum(int(np.prod(a.shape)) * 4 for n, a in zip(step.names, step.avals) if n[0] in "pmv")
    plan = plan_program(program, (8,), codes, pins, free_inputs=free, memory_bytes=held // 2)
    big = [plan.in_codes[i] for i in free if len(step.avals[i].shape) == 2]
    assert any(c >= 0 for (c,) in big)
    assert peak_bytes(plan, pins) <= held // 2
    with pytest.raises(OutOfMemoryError, match=r"smallest plan found holds [\d,]+ bytes[\s\S]*memory_limit_bytes=\d+"):
        plan_program(program, (8,), codes, pins, memory_bytes=held // 2)


def test_depth_costs_nothing():
    """48 layers: preparation at most 20 s and planning at most 10 s of CPU time."""
    step = models_jax.gpt(48, 8, 64, 128, 8, 512)
    began = time.process_time()
    program = _program(step.fn, *step.avals)
    codes = models_jax.pins(step, "dp")
    prepared = time.process_time()
    plan = plan_program(program, (8,), codes, [*range(step.state), (-1,)])
    planned = time.process_time()
    assert len(program.eqns) > 15_000
    assert prepared - began <= 20
    assert planned - prepared <= 10
    shallow = models_jax.gpt(6, 8, 64, 128, 8, 512)
    nodes = [len(_graph(s).nodes) for s in (shallow, step)]
    assert nodes[0] == nodes[1]
    assert len(plan.strategies) == len(program.eqns)


def _graph(step):
    program = _program(step.fn, *step.avals)
    return build(program, models_jax.pins(step, "dp"), [*range(step.state), (-1,)], (), (-1,))


_CHILD = """
import hashlib, jax, sbpjax
from tests import models_jax
from sbpjax._core.programs.normalise import normalise
from sbpjax._core.planner import plan_program
step = models_jax.mlp(64, 32, 64, layers=6)
program = normalise(jax.make_jaxpr(step.fn)(*step.avals))
plan = plan_program(program, (2, 4), models_jax.pins(step, "dp+tp"), [*range(step.state), (-1, -1)])
print(hashlib.sha256(repr((plan.strategies, plan.in_codes, plan.out_codes)).encode()).hexdigest())
"""


def test_two_processes_find_the_same_plan():
    here = pathlib.Path(__file__).resolve()
    found = set()
    for seed in ("1", "2"):
        paths = str(here.parents[2])
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths}
        done = subprocess.run(
            [sys.executable, "-c", _CHILD], env=environment, capture_output=True, text=True, check=True, timeout=300
        )
        found.add(done.stdout.strip())
    assert len(found) == 1
