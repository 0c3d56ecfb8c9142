"""Tensors that every trace makes anew, and those that it reads from outside, in each place where functions are traced.

A graph, `compile`, `func.compile_function`, a transform of JAX and a pipeline all trace the same functions here.
Tensors that a trace makes for itself are no inputs of its program and die with it; others are read anew in every call.
"""

import gc
import weakref

import jax.numpy as jnp
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import amp, func, nn
from sbpjax._core.tracing.compiled import CompiledFunction
from sbpjax.errors import AutogradError, OpError
from tests.support import graphs

X = np.random.default_rng(0).standard_normal((2, 4)).astype("f")
TABLE = jnp.arange(4, dtype=jnp.float32)
PLACE = flow.placement("cpu", [0, 1])
S0, B = flow.sbp.split(0), flow.sbp.broadcast
STAGES = [flow.placement("cpu", [0]), flow.placement("cpu", [1])]


def as_graph(fn):
    graph = graphs.graph_of(fn)
    return graph, lambda: len(graph.program.captured)


def as_compiled_step(fn):
    step = flow.compile(fn)
    return step, lambda: len(next(iter(step._programs.values())).captured)


def as_compiled(fn):
    made = CompiledFunction(fn, fullgraph=True)
    return made, lambda: len(next(iter(made._traces.values()))[1]._captured)


def as_transform(fn):
    return lambda x: func.jvp(fn, (x,), (x,))[0], lambda: None


def as_pipeline(fn):
    graph = graphs.graph_of(lambda x: fn(x.to_global(STAGES[1], S0)))
    graph.state = flow.zeros(4, placement=STAGES[1], sbp=B)  # what lies on a second placement makes a pipeline of it
    return lambda x: graph(x.to_global(STAGES[0], S0)), lambda: len(graph.program.captured)


LOCAL = [as_graph, as_compiled_step, as_compiled, as_transform]
ways = pytest.mark.parametrize("way", LOCAL, ids=lambda w: w.__name__)


def table():
    """Return a new tensor on an array that is no tracer, as every trace makes one."""
    return flow.from_jax(TABLE)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(table())
        self.register_buffer("shift", table())
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(x) * self.weight + self.shift


def written(x):
    sums = table()
    before = sums * x[0]
    sums.add_(x[0])
    return before + sums


def differentiated(x):
    weight = nn.Parameter(table())
    (weight * x).sum().backward()
    return weight.grad


def written_by_an_alias(x):
    sums = table()
    alias = sums.detach()
    before = alias * x[0]
    alias.add_(x[0])
    return before + sums


def in_a_circle(x):
    made = table()
    made.me = made
    return x + made


MADE = {
    "a tensor": lambda x: x + table(),
    "two": lambda x: x * table() + table().detach(),
    "a module": lambda x: Scaled()(x),
    "written": written,
    "written by an alias": written_by_an_alias,
    "differentiated": differentiated,
    "in a circle": in_a_circle,
    "returned": lambda x: table(),
    "by data": lambda x: x + flow.tensor([1.0, 2.0, 3.0, 4.0]),
}


@ways
@pytest.mark.parametrize("fn", MADE.values(), ids=MADE.keys())
def test_what_a_trace_makes_is_a_constant_of_the_program(way, fn):
    run, captured = way(fn)
    for x in (X, X + 1):
        expected = fn(flow.tensor(x)).detach().numpy()
        np.testing.assert_allclose(run(flow.tensor(x)).detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    assert captured() in (0, None)


def in_a_stage(fn):
    """Return the function on a stage, whose new tensors lie there."""
    return lambda x: fn(x, lambda: table().to_global(STAGES[1], B))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, new: x + new(),
        lambda x, new: x * new() + new().detach(),
        lambda x, new: x + flow.ones(4, placement=STAGES[1], sbp=B),
        lambda x, new: x + nn.LayerNorm(4).to_global(STAGES[1], B)(x),
    ],
    ids=["a tensor", "two", "by creation", "a module"],
)
def test_what_a_stage_of_a_pipeline_makes_is_a_constant(fn):
    fn = in_a_stage(fn)
    run, captured = as_pipeline(fn)
    for x in (X, X + 1):
        x = flow.tensor(x).to_global(STAGES[0], S0)
        np.testing.assert_allclose(run(x).numpy(), fn(x.to_global(STAGES[1], S0)).numpy(), rtol=1e-5, atol=1e-6)
    assert captured() == 0


def test_a_stage_reads_what_lies_outside_anew():
    shift = flow.ones(4, placement=STAGES[1], sbp=B)
    run, captured = as_pipeline(lambda x: x + shift.detach() * shift)
    x = flow.tensor(X)
    for value in (1.0, 3.0):
        shift.fill_(value)
        np.testing.assert_allclose(run(x).numpy(), X + value * value, rtol=1e-6)
    assert captured() == 1  # one storage


@ways
def test_what_every_trace_makes_and_keeps_is_a_constant(way):
    kept = []

    def fn(x):
        kept.append(table())
        return x + kept[-1]

    run, captured = way(fn)
    for x in (X, X + 1):
        np.testing.assert_allclose(run(flow.tensor(x)).numpy(), x + np.arange(4), rtol=1e-6)
    assert captured() in (0, None)


@ways
def test_nothing_that_a_trace_made_lives_on(way):
    made = []

    def fn(x):
        new = table()
        made.append(weakref.ref(new))
        return x + new

    run, _ = way(fn)
    for _ in range(2):
        run(flow.tensor(X))
    gc.collect()
    assert made and not any(ref() is not None for ref in made)


OUTSIDE = {
    "itself": lambda w: w,
    "computed": lambda w: w * 2,
    "detached": lambda w: w.detach(),
    "data": lambda w: w.data,
    "a parameter on it": nn.Parameter,
    "beside its alias": lambda w: w + w.detach() + w[:],
}


@ways
@pytest.mark.parametrize("read", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_what_lies_outside_is_read_anew(way, read):
    shift = flow.tensor([1.0, 2.0, 3.0, 4.0])
    run, _ = way(lambda x: x + read(shift))
    for _ in range(3):
        expected = X + read(shift).detach().numpy()
        np.testing.assert_allclose(run(flow.tensor(X)).detach().numpy(), expected, rtol=1e-6)
        shift.add_(1)
    assert isinstance(shift.numpy(), np.ndarray)  # no tracer was left in it


CONVERTED = {
    "detached": lambda w, local: w.detach(),
    "boxed": lambda w, local: w.to_global(sbp=B),
    "on the placement": lambda w, local: local.to_global(PLACE, S0),
}


@ways
@pytest.mark.parametrize("read", CONVERTED.values(), ids=CONVERTED.keys())
def test_global_tensors_from_outside_are_converted_by_the_program(way, read):
    local = flow.tensor([1.0, 2.0, 3.0, 4.0])
    shift = local.to_global(PLACE, S0)
    run, _ = way(lambda x: x + read(shift, local))
    for _ in range(3):
        x = flow.tensor(X).to_global(PLACE, B)
        np.testing.assert_allclose(run(x).numpy(), X + read(shift, local).numpy(), rtol=1e-6)
        shift.add_(1)
        local.add_(1)


@ways
def test_new_global_tensors_are_constants(way):
    sharded = flow.tensor([0.0, 1.0, 2.0, 3.0], placement=PLACE, sbp=S0).jax()
    run, captured = way(lambda x: x + flow.from_jax(sharded))
    for x in (X, X + 1):
        x = flow.tensor(x).to_global(PLACE, B)
        np.testing.assert_allclose(run(x).numpy(), x.numpy() + np.arange(4), rtol=1e-6)
    assert captured() in (0, None)


def test_gradients_reach_a_leaf_and_not_its_alias():
    weight = flow.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    run = func.compile_function(lambda x: x * weight.detach() + x * weight, fullgraph=True)
    for count in (1, 2):
        run(flow.tensor(X)).sum().backward()
        np.testing.assert_allclose(weight.grad.numpy(), count * X.sum(0), rtol=1e-6)


@ways
@pytest.mark.parametrize("read", [True, False])
def test_a_write_to_an_alias_of_what_lies_outside_is_refused(way, read):
    outside = flow.zeros(4)

    def fn(x):
        alias = outside.detach()
        before = x + alias if read else x
        alias.add_(x[0])
        return before + alias

    run, _ = way(fn)
    with pytest.raises(AutogradError, match="alias of a tensor"):
        run(flow.tensor(X))
    assert not outside.numpy().any()


def test_a_write_to_what_lies_outside_is_refused_where_it_is_not_named():
    outside = flow.zeros(4)

    def fn(x):
        outside.add_(x[0])
        return x + outside

    for way in (as_compiled_step, as_transform):
        with pytest.raises((AutogradError, OpError)):
            way(fn)[0](flow.tensor(X))
        assert not outside.numpy().any()
    for way in (as_compiled, as_graph):  # a graph takes it into its state
        outside.zero_()
        run, _ = way(fn)
        for count in (1, 2):
            run(flow.tensor(X))
            np.testing.assert_allclose(outside.numpy(), count * X[0], rtol=1e-6)


def test_casts_of_one_trace_are_not_those_of_the_next():
    weight = nn.Parameter(flow.tensor(X.T.copy()))
    with amp.autocast("cpu", dtype=flow.bfloat16):
        results = [func.vmap(lambda x: x @ weight)(flow.tensor(X)) for _ in range(2)]
    np.testing.assert_allclose(results[0].detach().numpy(), results[1].detach().numpy())
