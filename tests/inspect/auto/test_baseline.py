"""The usual strategies as pins, found without names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.inspect.auto.baseline import hand_pins, strategies, title
from sbpjax.errors import SbpError
from sbpjax.graph.auto.planning_problem import planning_problem_of
from sbpjax.sbp import algebra
from tests import models_jax
from tests.graph.auto.cases import STEPS, grid, line, on_a_line, problem

# What the walk finds beyond the hand-written pins, which know two layers and no table of single weights.
BEYOND = {"mlp": {"2.w", "2.b", "3.w"}, "deep": {"2.w", "2.b", "3.w"}, "gpt": set(), "wide": {"wide"}}


@pytest.mark.parametrize("model", STEPS)
def test_tensor_parallelism_is_what_megatron_writes_by_hand(model):
    step = STEPS[model]()
    found = hand_pins(on_a_line(model), "tp")
    by_hand = models_jax.pins(step, "tp")
    differ = {n.partition(".")[2] for i, n in enumerate(step.names) if found[i] != by_hand[i]}
    assert differ == BEYOND[model]


def test_layers_alternate_between_columns_and_rows():
    found = hand_pins(on_a_line("mlp"), "tp")
    names = {x.name: algebra.nd_name(found[i]) for i, x in enumerate(on_a_line("mlp").inputs)}
    assert [names[f"p.{k}.w"] for k in range(4)] == ["S1", "S0", "S1", "S0"]
    assert [names[f"p.{k}.b"] for k in range(4)] == ["S0", "B", "S0", "B"]
    assert names["m.2.w"] == names["v.2.w"] == "S1" and names["x.x"] == "B"


@pytest.mark.parametrize("strategy", ["dp", "zero1", "fsdp"])
def test_data_strategies_are_those_written_by_hand(strategy):
    step = STEPS["gpt"]()
    found = hand_pins(on_a_line("gpt"), strategy)
    assert [found[i] for i in range(len(step.names))] == models_jax.pins(step, strategy)


def test_two_axes_have_the_products_too_and_split_different_dims():
    case = problem(STEPS["gpt"](), grid())
    assert strategies(case) == ["dp", "zero1", "fsdp", "tp", "dp+tp", "zero1+tp", "fsdp+tp"]
    names = {x.name: i for i, x in enumerate(case.inputs)}
    pins = hand_pins(case, "fsdp+tp")
    assert pins[names["p.h.0.wq"]] == (0, 1) and pins[names["p.h.0.down"]] == (1, 0)
    assert pins[names["x.tokens"]] == (0, -1)
    assert hand_pins(case, "dp")[names["x.tokens"]] == (0, 0)
    assert title("fsdp+tp") == "FSDP × tensor parallel"


def test_what_does_not_divide_stays_whole():
    case = problem(models_jax.mlp(12, 30, 64), line())
    names = {x.name: i for i, x in enumerate(case.inputs)}
    assert hand_pins(case, "dp")[names["x.x"]] == (-1,)
    fsdp = hand_pins(case, "fsdp")
    assert fsdp[names["p.0.w"]] == (1,) and fsdp[names["p.1.b"]] == (-1,)


def test_layers_in_a_loop_are_split_as_those_outside():
    def step(up, down, x):
        def layer(x, w):
            return x + jax.nn.gelu(x @ w[0]) @ w[1], None

        def loss(up, down):
            return jnp.mean(jax.lax.scan(layer, x, (up, down))[0] ** 2)

        value, (du, dd) = jax.value_and_grad(loss, (0, 1))(up, down)
        return up - du, down - dd, value

    avals = [jax.ShapeDtypeStruct(s, np.float32) for s in ((3, 32, 64), (3, 64, 32), (16, 32))]
    pins = hand_pins(planning_problem_of(step, avals, line(), names=["up", "down", "x"], returned=2), "tp")
    assert pins == {0: (2,), 1: (1,), 2: (-1,)}


def test_a_strategy_of_other_axes_is_refused():
    with pytest.raises(SbpError) as error:
        hand_pins(on_a_line("mlp"), "dp+tp")
    assert str(error.value).startswith("strategy 'dp+tp'")
    assert "hierarchy (8,)" in str(error.value) and '"tp"' in str(error.value)
