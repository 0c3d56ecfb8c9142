"""Sums that the TPU compiler sends in bfloat16: which they are, how many bytes are planned, and what libtpu makes."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import sbp
from sbpjax.graph.collectives import planned_bytes
from sbpjax.planner.prices.rounded import narrowed, read_in_float32
from sbpjax.planner.program import plan_program
from sbpjax.programs.normalise import normalise
from sbpjax.programs.plan import Boxing
from sbpjax.tensor.dispatch import apply

ROWS, WIDTH = 4096, 8192
BF16 = jnp.bfloat16


def carried(x):
    def turn(carry, _):
        c, most = carry
        return (c * 2, jnp.maximum(most, (x * c).sum(0))), None

    return jax.lax.scan(turn, (jnp.float32(1), jnp.zeros(WIDTH, jnp.float32)), None, length=3)[0][1].astype(BF16)


def stacked(x):
    return jax.lax.scan(lambda c, _: (c * 2, (x * c).sum(0)), jnp.float32(1), None, length=8)[1].astype(BF16)


def read_by_a_loop(x):
    return jax.lax.scan(lambda c, row: (c + row.astype(BF16), None), jnp.zeros(WIDTH, BF16), x.sum(0)[None])[0]


def kept_by_a_loop(x):
    return jax.lax.scan(lambda c, row: (jnp.tanh(c + row), None), jnp.zeros(WIDTH, jnp.float32), x.sum(0)[None])[
        0
    ].astype(BF16)


# What is made of the sum of the rows, and whether it is read in float32; libtpu's own word is asked below.
CASES = {
    "rounded": (lambda x: x.sum(0).astype(BF16), False),
    "not rounded": (lambda x: jnp.exp(x.sum(0)), True),
    "both": (lambda x: (lambda y: (y, y.astype(BF16)))(x.sum(0)), True),
    "moved": (lambda x: x.sum(0).reshape(-1, 128).T.astype(BF16), False),
    "over one row": (lambda x: x.sum(0).reshape(1, 1, -1).sum((0, 1)).astype(BF16), False),
    "chosen": (lambda x: jnp.maximum(x.sum(0), 0.0).astype(BF16), False),
    "computed with": (lambda x: jnp.exp(x.sum(0)).astype(BF16), True),
    "to float16": (lambda x: x.sum(0).astype(jnp.float16), True),
    "and back": (lambda x: jnp.tanh(x.sum(0).astype(BF16).astype(jnp.float32)), False),
    "carried": (carried, False),
    "stacked": (stacked, False),
    "read by a loop": (read_by_a_loop, False),
    "kept by a loop": (kept_by_a_loop, True),
}


def planned(function, sizes=(4,)):
    x = jax.ShapeDtypeStruct((ROWS, WIDTH), jnp.float32)
    program = normalise(jax.make_jaxpr(function)(x))
    return plan_program(program, sizes, [(0,) * len(sizes)])


def sent(plan):
    """The values that are summed over ranks."""
    return [b.value for b in plan.boxings if any(step.kind in ("psum", "psum_scatter") for step in b.steps)]


def tpu(*sizes):
    return types.SimpleNamespace(type="tpu", hierarchy=sizes, devices=np.array([object()] * np.prod(sizes)))


@pytest.mark.parametrize("name", CASES)
def test_who_reads_a_sum(name):
    function, wide = CASES[name]
    plan = planned(function)
    assert {v in read_in_float32(plan) for v in sent(plan)} == {wide}


def test_a_rounded_sum_is_half_the_bytes_on_tpu_alone():
    plan = planned(CASES["rounded"][0])
    (whole,) = planned_bytes(plan).values()
    assert whole == plan.bytes and whole in (3 * WIDTH, 6 * WIDTH)  # scattered or not
    assert planned_bytes(plan, flow.placement("cpu", [0, 1, 2, 3])) == planned_bytes(plan)
    plan = planned(lambda x: jnp.tanh(x.sum(0).astype(BF16)).sum(0, keepdims=True) * jnp.ones(WIDTH, BF16))
    assert planned_bytes(plan, tpu(4))["all-reduce"] < planned_bytes(plan)["all-reduce"]


def test_what_is_summed_over_ranks_again_is_read_in_float32():
    """Of a sum that lies as P on both axes and is summed in two places the first is sent in float32."""
    plan = planned(lambda x: x.sum(0).reshape(1, -1).sum(0).astype(BF16), (2, 2))
    first, second = (e.outvars[0] for e in plan.program.eqns if e.primitive.name == "reduce_sum")
    step = types.SimpleNamespace(kind="psum", bytes=1)
    plan._boxings = [Boxing("", "", (WIDTH,), "float32", (), (), (step,), value=v) for v in (first, second)]
    assert first in read_in_float32(plan) and second not in read_in_float32(plan)


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        (["psum"], [True]),
        (["psum", "psum"], [False, True]),  # the second reads the first in float32
        (["psum", "all_gather"], [True, True]),
        (["psum_scatter"], [False]),
        (["psum", "psum_scatter"], [False, False]),
        (["psum_scatter", "all_gather"], [False, False]),
        (["psum_scatter", "psum", "all_to_all"], [False, True, True]),
        (["all_gather"], [True]),
    ],
)
def test_the_steps_of_a_conversion(kinds, found):
    value = object()
    boxing = Boxing("", "", (8,), "float32", (), (), (), value=value)
    assert narrowed(boxing, kinds, set()) == found
    assert not any(narrowed(boxing, kinds, {value}))
    assert not any(narrowed(Boxing("", "", (8,), "bfloat16", (), (), (), value=value), kinds, set()))


@pytest.mark.aot
@pytest.mark.parametrize("name", CASES)
def test_the_tpu_compiler_sends_what_is_planned(name):
    where = flow.placement.topology("v5p:4x4x4", [8, 8])
    x = flow.zeros(ROWS, WIDTH, placement=where, sbp=[sbp.split(0), sbp.split(0)])
    function, _ = CASES[name]

    def whole(x):
        made = apply(function, (x,))
        return [y.to_global(where, [sbp.broadcast, sbp.broadcast]) for y in (made if name == "both" else [made])]

    found = flow.compile(whole).traffic(x)
    assert found.planned == found.compiled, str(found)
