"""By OneFlow's own constants, what is found costs no more than what OneFlow 0.9 chooses."""

import jax
import pytest

import sbpjax as flow
from sbpjax._core.planner import plan_program
from sbpjax._core.planner.prices.cost import preset
from sbpjax._core.planner.prices.links import with_placement_links
from sbpjax._core.programs.normalise import normalise
from tests import models_jax

COST = with_placement_links(preset("oneflow"), flow.placement("cpu", range(8)))


def parallel_but(split: dict[str, int], batch: bool = True):
    """Return pins of data parallelism, with some parameters and their state split; the batch split or whole."""

    def pins(step):
        codes = models_jax.pins(step, "dp")
        kept = [code if batch or name.partition(".")[0] != "x" else (-1,) for name, code in zip(step.names, codes)]
        return [(split[n],) if (n := name.rpartition(".")[2]) in split else c for name, c in zip(step.names, kept)]

    return pins


def wide():
    return models_jax.wide_deep(400_000, 32, 26, 4096, 256)


def gpt():
    return models_jax.gpt(2, 8, 1024, 1024, 16, 50304)


CHOICES = {  # the model, and what OneFlow 0.9.0 chooses for it on eight CPU ranks, its search on and nothing split
    "a huge hidden layer: Megatron": (lambda: models_jax.mlp(32, 64, 16384), lambda s: models_jax.pins(s, "tp")),
    "a big batch: data parallel": (lambda: models_jax.mlp(16384, 128, 128), lambda s: models_jax.pins(s, "dp")),
    "a table alone: columns": (wide, parallel_but({"wte": 1})),
    "a table and a weight per id: the weights by rows": (wide, parallel_but({"wide": 0}, batch=False)),
    "a GPT: data parallel, tables by columns": (gpt, parallel_but({"wte": 1, "wpe": 1})),
    "a GPT: data parallel": (gpt, lambda s: models_jax.pins(s, "dp")),
}
LONG = "a GPT"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive if name.startswith(LONG) else ()) for name in CHOICES]
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
