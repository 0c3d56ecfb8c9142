"""Plans within a limit of memory: of a graph, by checkpointing if nothing else helps; and what bytes cost."""

import functools

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.compiler.lower import spmd_function
from sbpjax._core.inspect.auto.cost_summary import totals
from sbpjax._core.planner.memory.limit import peak_bytes
from sbpjax.errors import OutOfMemoryError
from sbpjax.graph.auto.graph import search_checkpoint_count
from tests import models_jax
from tests.graph.auto.cases import grid, line, problem

LINE = line()
WIDTH, HIDDEN = 8, 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, HIDDEN, bias=False), nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        return self.down(self.up(x).tanh())


class Train(nn.Graph):
    def __init__(self, rows=8, layers=1, auto=True, **memory):
        super().__init__()
        flow.manual_seed(0)
        self.inputs = (flow.randn(rows, WIDTH),)  # in a tuple: a tensor of a graph is state
        self.net = nn.Sequential(*[Block() for _ in range(layers)])
        self.add_optimizer(flow.optim.SGD(self.net.parameters(), lr=0.1))
        self.config.enable_auto_parallel(auto, placement=LINE)
        if memory:
            self.config.enable_auto_memory(**memory)

    def build(self, x):
        loss = (self.net(x) ** 2).mean()
        loss.backward()
        return loss

    def holds(self):
        """Return what a device holds by the plan."""
        self.build_graph(self.inputs[0])
        program = self.program
        written = [0 if i < len(program.written) else None for i in range(len(program.out_layouts))]
        return peak_bytes(program.plan, written, "cpu")


@functools.cache
def smallest_limit(**options):
    """Return the smallest limit that a plan keeps, as the error names it."""
    with pytest.raises(OutOfMemoryError, match=r"(?s)smallest plan found holds .*memory_limit_bytes=\d+") as error:
        Train(mode="Disable", memory_limit_bytes=1, **options).holds()
    return int(str(error.value).partition("memory_limit_bytes=")[2].split(",")[0])


def test_a_limit_is_kept():
    fast = Train()
    free = fast.holds()
    assert Train(mode="Disable", memory_limit_bytes=free).holds() == free  # nothing is given up without need
    least = smallest_limit()
    small = Train(mode="Disable", memory_limit_bytes=least)
    assert small.holds() <= least <= 1.01 * free  # the error's number is rounded up
    assert small.program.plan.modelled_us >= fast.program.plan.modelled_us * (1 - 1e-9)
    np.testing.assert_allclose(small(small.inputs[0]).numpy(), Train(auto=False)(small.inputs[0]).numpy(), rtol=1e-5)


def test_layers_are_checkpointed_where_nothing_else_fits(caplog):
    """Of many rows, what is saved for the backward outweighs the state, however that is laid out."""
    options = {"rows": 4096, "layers": 3}
    limit = int(0.8 * smallest_limit(**options))
    graph = Train(mode="AdaptiveMemory", memory_limit_bytes=limit, **options)
    assert graph.holds() <= limit
    done = [bool(graph.net[i].to(nn.graph.GraphModule).activation_checkpointing) for i in range(3)]
    assert f"{sum(done)} of 3 equal layers are checkpointed" in caplog.text
    assert done == sorted(done, reverse=True) and any(done)
    plain = Train(auto=False, **options)
    np.testing.assert_allclose(graph(graph.inputs[0]).numpy(), plain(plain.inputs[0]).numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    "us, best",
    [
        ({0: None, 8: 9.0, 4: None, 6: 7.0, 5: None}, 6),  # the fewest that fit
        ({0: None, 8: 9.0, 4: 12.0, 2: None, 3: 15.0}, 8),  # fewer fit, but only with slow layouts
        ({0: 12.0, 8: 9.0, 4: 7.0, 2: 8.0, 1: 10.0}, 4),  # none need be, and memory holds the plan back
        ({0: 5.0, 8: 9.0, 4: 7.0, 2: 6.0, 1: 5.5}, 0),
        ({0: None, 8: None}, None),
    ],
)
def test_how_many_layers_are_checkpointed_is_a_question_of_time(us, best):
    assert search_checkpoint_count(us.__getitem__, 8) == best


COMPILED = {  # sizes at which a few blocks outweigh all others, as in models of use
    "mlp": (lambda: models_jax.mlp(2048, 64, 512), line),
    "wide": (lambda: models_jax.wide_deep(20_000, 32, 26, 512, 64), line),
    "gpt": (lambda: models_jax.gpt(2, 8, 128, 128, 8, 4096), grid),
}


@pytest.mark.parametrize("model", ["mlp", "wide", pytest.param("gpt", marks=pytest.mark.exhaustive)])
def test_what_a_plan_holds_is_what_the_compiler_needs(model):
    step, place = (make() for make in COMPILED[model])
    case = problem(step, place)
    plan = case.plan()
    call = jax.jit(spmd_function(plan, place, repeats="calls"), donate_argnums=tuple(range(step.state)))
    structs = [jax.ShapeDtypeStruct(x.physical_shape, x.dtype, sharding=x.sharding) for x in case.layouts(plan)]
    m = call.lower(*structs).compile().memory_analysis()
    compiled = m.argument_size_in_bytes + m.temp_size_in_bytes + m.output_size_in_bytes - m.alias_size_in_bytes
    assert totals(case, plan, model).memory_bytes == pytest.approx(compiled, rel=0.15)


def test_bytes_held_have_a_price():
    assert Train(mode="HeavyMemoryDown").holds() <= Train().holds()
