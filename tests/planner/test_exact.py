"""The exact planner against brute force: no combination of rows has a lower price."""

import itertools

import jax
import jax.numpy as jnp
import pytest

import sbpjax
from sbpjax._core.planner import Plan, plan_exactly
from sbpjax._core.planner.exact import candidates, equation_traffic_bytes
from sbpjax._core.programs.normalise import normalise
from sbpjax.sbp import placement
from sbpjax.sbp.algebra import B, P


def program_of(function, *shapes):
    return normalise(jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes)))


def price(plan):
    """Return what planning charges for a plan: bytes, and for S → P the all-gather it puts off."""
    return sum(step.price for boxing in plan.boxings for step in boxing.steps) + plan.inner_bytes


def cheapest_by_force(program, sizes, in_codes, pins):
    """Return the lowest price over all combinations of signatures."""
    best = None
    for combination in itertools.product(*(candidates(e, sizes) for e in program.eqns)):
        produced = dict(zip(program.invars, in_codes, strict=True))
        for eqn, option in zip(program.eqns, combination, strict=True):
            produced.update(zip(eqn.outvars, option.outs, strict=True))
        out_codes = tuple(pin or produced[v] for v, pin in zip(program.outvars, pins, strict=True))
        rows = [option.strategies for option in combination]
        inner = sum(equation_traffic_bytes(e, r, sizes) for e, r in zip(program.eqns, rows, strict=True))
        total = price(Plan(program, sizes, in_codes, rows, out_codes, inner))
        best = total if best is None else min(best, total)
    return best


def centre(x):
    return x - x.sum(1, keepdims=True)


def two_layers(x, v, w):
    return jnp.tanh(x @ v) @ w


def shared(x, y):
    z = x + y
    return z * 2.0, jnp.exp(z)


CASES = {
    "centre": (centre, ((8, 12),)),
    "two_layers": (two_layers, ((8, 4), (4, 16), (16, 4))),
    "shared": (shared, ((8, 12), (8, 12))),
}
LAYOUTS_1D = [(0,), (1,), (B,), (P,)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("pin", [None, (0,), (B,)])
def test_no_combination_is_cheaper_1d(name, pin):
    function, shapes = CASES[name]
    program = program_of(function, *shapes)
    pins = (pin,) * len(program.outvars)
    for layouts in itertools.product(LAYOUTS_1D, repeat=len(shapes)):
        plan = plan_exactly(program, (4,), layouts, pins)
        assert price(plan) == cheapest_by_force(program, (4,), layouts, pins), (layouts, plan.boxings)


@pytest.mark.parametrize("layout", [(0, 1), (P, 0), (1, 1), (B, P)])
def test_no_combination_is_cheaper_2d(layout):
    program = program_of(lambda x: jnp.exp(x).sum(1), (8, 12))
    pins = (None,)
    plan = plan_exactly(program, (2, 2), (layout,), pins)
    assert price(plan) == cheapest_by_force(program, (2, 2), (layout,), pins)


def test_ties_keep_what_the_inputs_have():
    program = program_of(lambda x: jnp.exp(x) + 1.0, (8, 12))
    for layout in LAYOUTS_1D[:3]:
        plan = plan_exactly(program, (4,), (layout,))
        assert plan.out_codes == (layout,)
        assert plan.boxings == []


def test_linear_program_keeps_partial_sums():
    program = program_of(lambda x, y: (2.0 * x + y).reshape(96).sum(), (8, 12), (8, 12))
    plan = plan_exactly(program, (4,), ((P,), (P,)))
    assert plan.out_codes == ((P,),)
    assert plan.bytes == 0


@pytest.mark.parametrize("sbp", ["P,P", "P,B", "B,P"])
def test_number_is_made_as_a_partial_sum(sbp):
    place = placement("cpu", [[0, 1], [2, 3]])
    plan = plan_exactly(program_of(lambda number: (number,), ()), (2, 2), ((B, B),), ((P, B),))
    assert plan.out_codes == ((P, B),) and plan.bytes == 0
    number = sbpjax.full((), 2.5, placement=place, sbp=sbp)
    assert number.item() == 2.5 and number.sbp == sbpjax.zeros((), placement=place, sbp=sbp).sbp
    assert number.new_full((), 3.0).item() == 3.0


def test_equal_parts_are_planned_alike_and_cost_no_product():
    def update(lr, *pairs):
        half = len(pairs) // 2
        return tuple(p - lr * g for p, g in zip(pairs[:half], pairs[half:], strict=True))

    count = 40
    program = program_of(update, (), *[(8, 4)] * (2 * count))
    in_codes = ((B,), *[(0,)] * count, *[(P,)] * count)
    plan = plan_exactly(program, (4,), in_codes, ((0,),) * count)
    assert plan.out_codes == ((0,),) * count
    assert plan.bytes == count * (8 * 4 * 4 * 3 // 4)
    assert {b.steps[0].kind for b in plan.boxings} == {"psum_scatter"}


def test_a_conversion_two_readers_want_is_paid_once():
    program = program_of(lambda x: (jnp.exp(x), jnp.sin(x)), (8, 12))
    plan = plan_exactly(program, (4,), ((P,),), ((0,), (0,)))
    assert plan.bytes == 8 * 12 * 4 * 3 // 4
    assert len(plan.boxings) == 1


def test_plans_are_deterministic():
    program = program_of(two_layers, (8, 4), (4, 16), (16, 4))
    first = plan_exactly(program, (2, 2), ((0, 1), (B, 1), (1, P)))
    again = plan_exactly(program, (2, 2), ((0, 1), (B, 1), (1, P)))
    assert first.strategies == again.strategies
