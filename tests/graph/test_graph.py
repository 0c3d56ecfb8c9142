"""The life of a graph: signatures, structures, static arguments, errors, programs kept and dropped."""

import dataclasses
import logging
import re
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import DataDependentError, GraphError, GraphTypeError, StaticInputError
from sbpjax.graph import TensorSpec
from tests.support.graphs import Plain

PLACES = {"local": None, "data": "S0", "grid": ["S0", "B"]}


def laid(x, place):
    if PLACES[place] is None:
        return x
    ranks = [0, 1, 2, 3] if place == "data" else [[0, 1], [2, 3]]
    return x.to_global(flow.placement("cpu", ranks), PLACES[place])


class Forward(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x, scale=1.0):
        return self.model(x) * scale


def model(place="local"):
    flow.manual_seed(1)
    made = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
    if PLACES[place] is not None:
        ranks = [0, 1, 2, 3] if place == "data" else [[0, 1], [2, 3]]
        made.to_global(flow.placement("cpu", ranks), ["B"] * np.ndim(ranks))
    return made


@pytest.mark.parametrize("place", PLACES)
def test_a_forward_graph_does_what_eager_code_does(place):
    net, x = model(place), laid(flow.randn(8, 4), place)
    np.testing.assert_allclose(Forward(net)(x).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)


def test_a_graph_without_build_and_without_init():
    class NoBuild(nn.Graph):
        pass

    class NoInit(nn.Graph):
        def __init__(self):
            self.model = model()

    with pytest.raises(GraphError, match=r"(?s)without build.*fix:  def build"):
        NoBuild()(flow.ones(1))
    with pytest.raises(GraphError, match=r"(?s)__init__ did not run.*fix:  super\(\).__init__\(\)"):
        NoInit()


# -- structures and static arguments


Pair = namedtuple("Pair", ["a", "b"])


@dataclasses.dataclass
class Result:
    loss: object
    note: str


def test_nested_results_come_back_as_they_were():
    def fn(self, x, pair, options):
        assert type(pair) is Pair and list(options) == ["z", "a"]
        return {
            "one": (x,),
            "pair": Pair(pair.b, None),
            "ordered": OrderedDict(z=options["z"] * 2, a=3),
            "result": Result(x.sum(), "text"),
            "list": [[], (), {}],
        }

    x = flow.ones(3)
    out = Plain(fn)(x, Pair(1, x * 2), {"z": x, "a": None})
    assert list(out) == ["one", "pair", "ordered", "result", "list"]
    assert type(out["one"]) is tuple and len(out["one"]) == 1
    assert type(out["pair"]) is Pair and out["pair"].a.tolist() == [2, 2, 2] and out["pair"].b is None
    assert type(out["ordered"]) is OrderedDict and out["ordered"]["a"] == 3
    assert out["result"].loss.item() == 3 and out["result"].note == "text"
    assert out["list"] == [[], (), {}]


def test_what_is_no_tensor_is_static():
    seen = []

    def fn(self, x, factor, *, name=None, table=None):
        seen.append((factor, name))
        return x * factor

    graph, x = Plain(fn), flow.ones(2)
    for factor in (2, 2.0, True, 2):
        assert graph(x, factor, name="n").tolist() == [float(factor)] * 2
    assert len(seen) == 3
    graph(x, 2, name="m")
    graph(x, 2, table=np.arange(3))
    graph(x, 2, table=np.arange(3))
    assert len(seen) == 5

    class NoHash:
        __hash__ = None

    with pytest.raises(GraphTypeError, match=r"(?s)with args\[2\].*NoHash, which has no hash"):
        Plain(lambda self, *args: args[0])(x, 1, NoHash())


def test_a_value_of_the_graph_itself_is_static_too():
    graph = Plain(lambda self, x: x * self.factor, factor=2.0)
    assert graph(flow.ones(1)).item() == 2
    graph.factor = 3.0
    assert graph(flow.ones(1)).item() == 3


def test_a_plain_value_of_a_module_is_seen():
    net = nn.Dropout(0.0)
    graph = Forward(net)
    assert graph(flow.ones(100)).sum().item() == 100
    net.p = 1.0
    assert graph(flow.ones(100)).sum().item() == 0


# -- signatures


def messages(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "sbpjax.graph"]


def test_a_new_signature_says_in_one_line_which_argument_changed(caplog):
    net = model()
    graph = Forward(net)
    with caplog.at_level(logging.WARNING):
        graph(flow.ones(2, 4))
        assert messages(caplog) == []
        graph(flow.ones(3, 4))
        graph(flow.ones(3, 4), 2.0)
        graph(flow.ones(3, 4), 3.0)
        net.eval()
        graph(flow.ones(3, 4), 3.0)
        net.to(flow.bfloat16)
        graph(flow.ones(3, 4, dtype=flow.bfloat16), 3.0)
    first, second, third, fourth, fifth = messages(caplog)
    seconds, change = re.fullmatch(rf"{graph.name} recompiled in ([0-9.]+) s: (.*)", first).groups()
    assert change == "x: float32[2, 4] → float32[3, 4]"
    assert seconds in [f"{sum(program.seconds.values()):.1f}" for program in graph._g.programs.values()]
    assert "the structure of the arguments; now x, scale" in second
    assert third.endswith("scale: 2.0 → 3.0")
    assert "model: training=True → training=False" in fourth
    assert "x: float32[3, 4] → bfloat16[3, 4]; model.0.weight: float32[8, 4] → bfloat16[8, 4]" in fifth


def test_a_layout_that_changed_is_named(caplog):
    graph, x = Plain(lambda self, x: x * 2), flow.ones(8)
    place = flow.placement("cpu", [0, 1])
    with caplog.at_level(logging.WARNING):
        for sbp in ("S0", "B"):
            graph(x.to_global(place, sbp))
        graph(x)
    assert messages(caplog)[0].endswith(f"args[0]: float32[8] S0 on {place!r} → float32[8] B on {place!r}")
    assert messages(caplog)[1].endswith("→ float32[8] local")


def test_known_signatures_are_not_traced_again():
    traces = []
    graph = Plain(lambda self, x: traces.append(x.shape) or x + 1)
    for size in (1, 2, 1, 2, 1):
        graph(flow.ones(size))
    assert len(traces) == 2


def test_programs_beyond_the_bound_are_dropped_oldest_first():
    traces = []
    graph = Plain(lambda self, x: traces.append(tuple(x.shape)[0]) or x + 1)
    graph.config.set_max_programs(2)
    for size in (1, 2, 1, 3, 1, 2):
        graph(flow.ones(size))
    assert traces == [1, 2, 3, 2]
    assert len(graph._g.programs) == 2


def test_static_inputs():
    graph = Forward(model())
    graph.config.set_static_inputs(True)
    graph(flow.ones(2, 4))
    graph(flow.zeros(2, 4))
    with pytest.raises(StaticInputError, match=r"(?s)x: float32\[2, 4\] → float32\[3, 4\].*set_static_inputs"):
        graph(flow.ones(3, 4))
    graph(flow.ones(2, 4))


# -- failures


def test_a_failed_build_can_be_retried():
    net = model()
    optimizer = flow.optim.Adam(net.parameters(), lr=0.1)

    class Flaky(nn.Graph):
        broken = True

        def __init__(self):
            super().__init__()
            self.net = net
            self.add_optimizer(optimizer)

        def build(self, x):
            loss = self.net(x).sum()
            loss.backward()
            if Flaky.broken:
                raise ValueError("not yet")
            return loss

    graph, x = Flaky(), flow.ones(2, 4)
    before, rng = [p.numpy() for p in net.parameters()], flow.get_rng_state().tolist()
    with pytest.raises(ValueError, match="not yet"):
        graph(x)
    assert not graph.is_compiled and not optimizer.state
    assert flow.get_rng_state().tolist() == rng
    for p, value in zip(net.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.numpy(), value)
        assert p.grad is None and p.requires_grad
    Flaky.broken = False
    first = graph(x).item()
    assert graph(x).item() < first


@pytest.mark.parametrize(
    "fn",
    [
        lambda self, x: x if x.sum() > 0 else -x,
        lambda self, x: x * x.sum().item(),
        lambda self, x: x[: int(x.sum())],
        lambda self, x: flow.tensor(x.numpy()),
        lambda self, x: x[x > 0],
    ],
)
def test_data_dependent_python_names_the_line_and_the_replacement(fn):
    line = fn.__code__.co_firstlineno
    with pytest.raises(DataDependentError, match=rf"(?s)test_graph.py:{line}\).*sbpjax.where.*sbpjax.cond"):
        Plain(fn)(flow.ones(3))


def test_tensors_on_two_placements_are_refused():
    net = model("data")
    with pytest.raises(flow.errors.MixedTensorError, match=r"(?s)linear.*ranks=\[4, 5\].*one placement"):
        Forward(net)(flow.ones(8, 4, placement=flow.placement("cpu", [4, 5]), sbp="S0"))


def test_local_and_global_tensors_do_not_mix_inside_either():
    net = model("data")
    x, local = laid(flow.ones(8, 4), "data"), flow.ones(8, 4)
    with pytest.raises(flow.errors.MixedTensorError, match=r"(?s)local \(8, 4\).*to_global"):
        Plain(lambda self, x: self.net(x) + local, net=net)(x)
    # What the graph makes itself is the same in every process.
    added = Plain(lambda self, x: self.net(x) + flow.ones(8, 4), net=net)(x)
    np.testing.assert_allclose(added.numpy(), net(x).numpy() + 1, rtol=1e-5)
    with pytest.raises(flow.errors.MixedTensorError, match=r"(?s)local \(8, 4\).*to_global"):
        Forward(net)(flow.ones(8, 4))
    scaled = Plain(lambda self, x, k: self.net(x) * k * flow.tensor(2.0), net=net)(x, flow.tensor(3.0))
    np.testing.assert_allclose(scaled.numpy(), net(x).numpy() * 6, rtol=1e-5)


def test_a_graph_in_a_graph_is_refused():
    inner = Forward(model())
    with pytest.raises(GraphError, match=r"(?s)Forward_\d+.*inside a traced program.*fix: "):
        Plain(lambda self, x: inner(x))(flow.ones(2, 4))


def test_what_may_not_be_assigned():
    graph = Forward(model())
    with pytest.raises(GraphTypeError, match=r"(?s)SGD.*fix:  self.add_optimizer"):
        graph.optimizer = flow.optim.SGD(graph.model.parameters(), lr=0.1)
    with pytest.raises(GraphTypeError, match="model is a module of the graph"):
        graph.model = 3
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = graph.nothing
    graph.model = other = nn.Linear(4, 4)
    assert graph.model == other
    del graph.model
    assert not hasattr(graph, "model")


# -- compiling ahead


@pytest.mark.parametrize("place", PLACES)
def test_compile_needs_no_data_and_runs_nothing(place, compilations):
    net = model(place)
    graph = Forward(net)
    before = [p._array for p in net.parameters()]
    x = laid(flow.randn(8, 4), place)
    where = {} if place == "local" else {"placement": x.placement, "sbp": x.sbp}
    assert graph.compile(TensorSpec((8, 4), **where)) is graph
    assert graph.is_compiled
    assert all(p._array is array for p, array in zip(net.parameters(), before, strict=True))
    expected = net(x).numpy()
    with compilations:
        result = graph(x)
    assert compilations.count == 0
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_compile_takes_real_and_jax_abstract_arguments():
    import jax

    for spec in (flow.ones(8, 4), jax.ShapeDtypeStruct((8, 4), np.float32)):
        graph = Forward(model())
        graph.compile(spec)
        graph(flow.ones(8, 4))
        assert len(graph._g.programs) == 1


def test_a_model_without_data_is_compiled_too():
    with flow.abstract():
        net = nn.Sequential(nn.Linear(4096, 8192), nn.ReLU(), nn.Linear(8192, 4096))
    graph = Forward(net).compile(TensorSpec((16, 4096)))
    memory = graph.program.compile().memory_analysis()
    assert memory.argument_size_in_bytes >= 4 * sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize("name", ["explain", "memory", "traffic", "auto_parallel_report", "hlo"])
def test_a_report_of_a_graph_that_was_not_built_says_what_it_wants(name):
    graph = Forward(model())
    with pytest.raises(GraphError, match=rf"(?s){name}\(\).*not built.*fix:  graph\.{name}\(x, y\)"):
        getattr(graph, name)()


def test_build_graph_traces_without_compiling():
    graph = Forward(model())
    assert not graph.is_compiled
    with pytest.raises(GraphError, match="was not built"):
        _ = graph.program
    graph.build_graph(flow.ones(2, 4))
    assert not graph.is_compiled and set(graph.program.seconds) == {"trace", "plan"}
    graph.finish_compile_and_init_runtime()
    assert graph.is_compiled and set(graph.program.seconds) == {"trace", "plan", "compile"}


# -- small things


@pytest.mark.parametrize("place", PLACES)
def test_the_text_of_a_program(place):
    graph, x = Plain(lambda g, x: g.model(x), model=model(place)), laid(flow.ones(8, 4), place)
    assert "stablehlo.dot_general" in graph.stablehlo(x) and not graph.is_compiled
    assert graph.stablehlo() == graph.stablehlo(x)
    assert graph.hlo().startswith("HloModule") and graph.is_compiled


def test_a_pipeline_has_no_text_of_one_program():
    first_place, second_place = flow.placement("cpu", [0]), flow.placement("cpu", [1])

    class Stages(nn.Graph):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(2, 2).to_global(first_place, flow.sbp.broadcast)
            self.second = nn.Linear(2, 2).to_global(second_place, flow.sbp.broadcast)

        def build(self, x):
            return self.second(self.first(x).to_global(placement=second_place))

    graph = Stages()
    graph(flow.ones(2, 2, placement=first_place, sbp=flow.sbp.broadcast))
    for text in (graph.hlo, graph.stablehlo):
        with pytest.raises(GraphError, match="each task of a pipeline is a program of its own"):
            text()


def test_names_count_per_class():
    class Named(nn.Graph):
        pass

    assert [Named().name, Named().name] == ["Named_0", "Named_1"]
    assert not Named().training


def test_trace_makes_a_graph_of_a_function_and_of_a_module():
    calls = []

    @nn.Graph.trace
    def double(x):
        calls.append(x.shape)
        return x * 2

    assert double.__name__ == "double"
    assert [double(flow.ones(2)).tolist() for _ in range(2)] == [[2, 2]] * 2
    assert len(calls) == 1
    net = model()
    traced = nn.Graph.trace(net)
    x = flow.ones(2, 4)
    np.testing.assert_allclose(traced(x).numpy(), net(x).numpy(), rtol=1e-5)
    assert all(p is q for p, q in zip(traced.graph.module.parameters(), net.parameters(), strict=True))


def test_with_dynamic_input_shape_bounds_the_programs():
    class Dynamic(nn.Graph):
        @nn.Graph.with_dynamic_input_shape(size=3)
        def __init__(self):
            super().__init__()

        def build(self, x):
            return x + 1

    graph = Dynamic()
    for size in range(1, 6):
        graph(flow.ones(size))
    assert len(graph._g.programs) == 3


def test_shared_graphs_use_each_others_programs():
    net, traces = model(), []

    class Shared(Forward):
        def build(self, x):
            traces.append(x.shape)
            return self.model(x)

    first, second = Shared(net), Shared(net)
    second.share_from(first)
    first(flow.ones(2, 4))
    second(flow.ones(2, 4))
    second(flow.ones(3, 4))
    first(flow.ones(3, 4))
    assert len(traces) == 2
    with pytest.raises(GraphError, match=r"(?s)share_from.*of one class"):
        first.share_from(Shared(model()))


def test_a_runtime_state_compiles_ahead_elsewhere(compilations):
    place = flow.placement("cpu", [0, 1, 2, 3])
    graph = Forward(model("data"))
    for rows in (8, 16):
        graph(flow.ones(rows, 4, placement=place, sbp="S0"))
    saved = graph.runtime_state_dict(with_eager=True)
    other = Forward(model("data"))
    other.model[0].weight.data.fill_(0.0)
    other.load_runtime_state_dict(nn.Graph.runtime_state_dict_to(saved, "cpu"))
    x = flow.ones(16, 4, placement=place, sbp="S0")
    expected = graph(x).numpy()
    with compilations:
        result = other(x)
    assert compilations.count == 0
    np.testing.assert_array_equal(result.numpy(), expected)
    with pytest.raises(flow.errors.StateDictError, match="graph.calls"):
        other.load_runtime_state_dict({})


def test_oneflow_names():
    assert nn.Graph is nn.graph.Graph is flow.graph.Graph
    assert nn.graph.GraphModule.__name__ == "GraphModule" and nn.graph.GraphTensor and nn.graph.Proxy
    assert isinstance(Forward(model()).config, nn.graph.graph_config.GraphConfig)


@pytest.mark.parametrize("alias", [False, True])
def test_a_parameter_over_other_memory_is_laid_out_as_any(alias):
    place = flow.placement("cpu", [0, 1, 2, 3])
    whole = flow.arange(16.0)
    model = nn.Linear(4, 4, bias=False)
    model.weight = nn.Parameter(whole.reshape(4, 4) if alias else flow.arange(16.0).reshape(4, 4))

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=1.0))
            self.config.enable_auto_parallel(True, placement=place)

        def build(self, x):
            loss = self.model(x).sum()
            loss.backward()
            return loss

    Train()(flow.ones(2, 4))
    assert model.weight.is_global and model.weight.placement == place
    np.testing.assert_array_equal(model.weight.numpy(), np.arange(16.0).reshape(4, 4) - 2)
    assert whole.tolist() == list(range(16))  # memory elsewhere is no part of it any more
