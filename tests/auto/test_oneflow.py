"""By OneFlow's own constants, what is found costs no more than what OneFlow 0.9 chooses for four models."""

import jax
import models_jax
import pytest

import sbpjax as flow
from sbpjax.sbp.cost import preset
from sbpjax.sbp.links import on_placement
from sbpjax.sbp.normalise import normalise
from sbpjax.sbp.plan import plan_program

COST = on_placement(preset("oneflow"), flow.placement("cpu", range(8)))


def columns(step):
    """Return data parallelism with the table, and its state, split by columns."""
    codes = models_jax.pins(step, "dp")
    return [(1,) if name.endswith(".wte") else code for name, code in zip(step.names, codes)]


CHOICES = {  # the model, and what OneFlow chooses
    "a huge hidden layer: Megatron": (lambda: models_jax.mlp(32, 64, 16384), lambda s: models_jax.pins(s, "tp")),
    "a big batch: data parallel": (lambda: models_jax.mlp(16384, 128, 128), lambda s: models_jax.pins(s, "dp")),
    "a table: columns": (lambda: models_jax.wide_deep(400_000, 32, 26, 4096, 256), columns),
    "a GPT: data parallel": (lambda: models_jax.gpt(2, 8, 1024, 1024, 16, 50304), lambda s: models_jax.pins(s, "dp")),
}
LONG = "a GPT: data parallel"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive if name == LONG else ()) for name in CHOICES]
)
def test_what_is_found_costs_no_more(name):
    make, chosen = CHOICES[name]
    step = make()
    program = normalise(jax.make_jaxpr(step.fn)(*step.avals))
    pins = [*range(step.state), (-1,)]
    free = [i for i, aval in enumerate(step.avals) if aval.shape]
    codes = chosen(step)
    found = plan_program(program, (8,), codes, pins, free_inputs=free, cost=COST)
    theirs = plan_program(program, (8,), codes, pins, cost=COST)
    assert found.modelled_us <= theirs.modelled_us * (1 + 1e-9)
    assert found.gap <= 1e-4
