"""Tensors that `forward` keeps: graphs, compiled steps and compiled modules do what eager code does, call by call."""

import functools

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.tracing.compiled import compile_function
from sbpjax.errors import MixedTensorError

LENGTHS = [4, 4, 6, 6, 4]
ROWS = 8
TOLERANCE = 1e-5
TABLES: dict = {}


@functools.lru_cache
def causal(n):
    return flow.triu(flow.ones(n, n), 1)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.kept = None
        self.prepare()

    def prepare(self):
        pass


class Rotary(Base):
    """The tables of rotary embeddings grow with the longest sequence."""

    def prepare(self):
        self.register_buffer("inv_freq", 1.0 / (10 ** (flow.arange(0, 4).float() / 4)), persistent=False)
        self.max_seq_len_cached = 0

    def forward(self, x):
        n = x.shape[1]
        if n > self.max_seq_len_cached:
            self.max_seq_len_cached = n
            where = {"placement": x.placement, "sbp": flow.sbp.broadcast} if x.is_global else {}
            angles = flow.einsum("i,j->ij", flow.arange(n, **where).float(), self.inv_freq)
            self._cos_cached = angles.cos()
            self.register_buffer("_sin_cached", angles.sin(), persistent=False)
        return self.linear(x) * self._cos_cached[:n] + self._sin_cached[:n]


class Mask(Base):
    def forward(self, x):
        if self.kept is None or self.kept.shape[0] < x.shape[1]:
            self.kept = flow.triu(flow.ones(x.shape[1], x.shape[1]))
        return self.linear(x) * self.kept[: x.shape[1], :1]


class WrittenTable(Base):
    """A table of positions that is filled in place."""

    def forward(self, x):
        n = x.shape[1]
        if self.kept is None or self.kept.shape[0] < n:
            table, place = flow.zeros(n, 4), flow.arange(n).float()
            table[:, 0::2] = flow.sin(place)[:, None]
            table[:, 1::2] = flow.cos(place)[:, None]
            self.kept = table
        return self.linear(x) + self.kept[:n]


class EveryCall(Base):
    def forward(self, x):
        self.kept = flow.triu(flow.ones(x.shape[1], x.shape[1]))
        return self.linear(x) * self.kept[:, :1]


class ByKey(Base):
    def prepare(self):
        self.tables = {}

    def forward(self, x):
        key = x.shape[1], str(x.dtype)
        if key not in self.tables:
            self.tables[key] = flow.arange(x.shape[1]).float()[:, None]
        return self.linear(x) * self.tables[key]


class GlobalTable(Base):
    def forward(self, x):
        key = x.shape[1]
        if key not in TABLES:
            TABLES[key] = flow.ones(key, 1) * 3
        return self.linear(x) * TABLES[key]


class Memoized(Base):
    def forward(self, x):
        return self.linear(x) + causal(x.shape[1]).sum(1)[:, None]


class FromWeights(Base):
    """Rows of a frozen table, looked up once."""

    def prepare(self):
        self.table = nn.Embedding(16, 4)
        self.table.weight.requires_grad_(False)

    def forward(self, x):
        if self.kept is None:
            self.kept = self.table(flow.arange(16))
        return self.linear(x) + self.kept[: x.shape[1]]


class Auxiliary(Base):
    """A value that every call stores, and nobody reads in forward."""

    def forward(self, x):
        h = self.linear(x)
        self.kept = h.square().mean()
        return h


class FirstBatch(Base):
    """A statistic of the first batch, which all later calls read."""

    def forward(self, x):
        if self.kept is None:
            self.kept = x.detach().mean()
        return self.linear(x) * self.kept


class Running(Base):
    def forward(self, x):
        mean = x.detach().mean((0, 1))
        self.kept = mean if self.kept is None else self.kept * 0.9 + mean * 0.1
        return self.linear(x) + self.kept


class RunningBuffer(Base):
    def prepare(self):
        self.register_buffer("mean", flow.zeros(4))

    def forward(self, x):
        self.mean = self.mean * 0.9 + x.detach().mean((0, 1)) * 0.1
        return self.linear(x) + self.mean


class Recurrent(Base):
    def forward(self, x):
        h = self.linear(x)
        out = h if self.kept is None else h + self.kept.mean()
        self.kept = x.detach()
        return out


class KeyCache(Base):
    """Made once, then written in place by every call."""

    def forward(self, x):
        if self.kept is None:
            self.kept = flow.zeros(2, 4)
        self.kept[:, :] = self.kept * 0.5 + x.detach().mean(1)[:2]
        return self.linear(x) + self.kept.mean()


CONSTANT = [Rotary, Mask, WrittenTable, EveryCall, ByKey, GlobalTable, Memoized, FromWeights]
CHANGING = [Auxiliary, FirstBatch, Running, RunningBuffer, Recurrent, KeyCache]


def steps(kind, where, way, train=True, micro=1):
    """Return what every call gives, the value that it keeps included."""
    TABLES.clear()
    causal.cache_clear()
    flow.manual_seed(0)
    model = kind()
    if where is not None:
        model.to_global(where, flow.sbp.broadcast)
    optimizer = flow.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    batches = [(flow.arange(ROWS * n * 4).float().reshape(ROWS, n, 4) * (i + 1)).sin() for i, n in enumerate(LENGTHS)]
    if where is not None:
        batches = [x.to_global(where, flow.sbp.split(0)) for x in batches]

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            if train:
                self.add_optimizer(optimizer)
            self.config.set_gradient_accumulation_steps(micro)

        def build(self, x):
            loss = self.model(x).square().mean()
            if train:
                loss.backward()
            return loss

    run = compile_function(model, fullgraph=True) if way == "module" else model

    def step(x):
        loss = run(x).square().mean()
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss

    call = {"graph": lambda: Step(), "compile": lambda: flow.compile(step, state=(model, optimizer))}
    call = call[way]() if way in call else step
    found = []
    for x in batches:
        found.append(call(x).mean().item())
        if isinstance(model.kept, flow.Tensor):
            found.append(model.kept.numpy().sum())
    return np.array(found)


@functools.cache
def expected(kind, train):
    return steps(kind, None, "eager", train)


@pytest.mark.parametrize(("ranks", "train"), [(1, True), (8, True), (8, False)])
@pytest.mark.parametrize("kind", CONSTANT + CHANGING)
def test_graph_keeps_what_eager_code_keeps(kind, ranks, train):
    where = None if ranks == 1 else flow.placement("cpu", list(range(ranks)))
    np.testing.assert_allclose(
        steps(kind, where, "graph", train), expected(kind, train), rtol=TOLERANCE, atol=TOLERANCE
    )


@pytest.mark.parametrize("way", ["compile", "module"])
@pytest.mark.parametrize("kind", CONSTANT + CHANGING)
def test_compiled_code_keeps_what_eager_code_keeps(kind, way):
    np.testing.assert_allclose(steps(kind, None, way), expected(kind, True), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("kind", CONSTANT)
def test_micro_batches_keep_constants(kind):
    # The losses alone: what a micro-batch stores anew in every call is gone with it.
    found, wanted = steps(kind, None, "graph", micro=2), expected(kind, True)
    stored = len(found) // len(LENGTHS)
    np.testing.assert_allclose(found[::stored], wanted[::stored], rtol=TOLERANCE, atol=TOLERANCE)


def test_constants_are_compiled_once():
    """The mask is there before the program is compiled: a second call needs no further one."""

    class Evaluate(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = Mask()

        def build(self, x):
            return self.model(x)

    graph = Evaluate()
    graph(flow.ones(2, 4, 4))
    graph(flow.ones(2, 4, 4))
    assert len(graph._g.programs) == 1
    assert graph.model.kept.numpy().tolist() == np.triu(np.ones((4, 4))).tolist()


def test_stored_value_is_a_new_tensor_in_every_call():
    class Evaluate(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = Auxiliary()

        def build(self, x):
            return self.model(x)

    graph = Evaluate()
    held = []
    for scale in (1, 2, 3):
        graph(flow.ones(2, 4, 4) * scale)
        held.append(graph.model.kept)
    assert len({value.item() for value in held}) == 3
    assert len(graph._g.programs) == 1


def test_export_computes_what_the_graph_computes(tmp_path):
    class Evaluate(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = nn.Sequential(Mask(), Auxiliary())

        def build(self, x):
            return self.model(x)

    graph, x = Evaluate(), flow.randn(2, 4, 4)
    graph.export(tmp_path / "fixed", x)
    graph.export(tmp_path / "free", x, dynamic_batch=True)
    for name in ("fixed", "free"):
        np.testing.assert_allclose(flow.load_graph(tmp_path / name)(x).numpy(), graph(x).numpy(), rtol=TOLERANCE)


def test_layers_that_repeat_keep_constants_of_their_own():
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Mask() for _ in range(3))
            self.kept = None

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    np.testing.assert_allclose(steps(Stack, None, "graph"), steps(Stack, None, "eager"), rtol=TOLERANCE)


def test_failed_trace_leaves_attributes_as_they_were():
    class Fails(Base):
        def forward(self, x):
            self.kept = x * 2
            return self.linear(x) + flow.ones(3)

    class Evaluate(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = Fails()

        def build(self, x):
            return self.model(x)

    graph = Evaluate()
    with pytest.raises(RuntimeError):
        graph(flow.ones(2, 4))
    assert graph.model.kept is None


@pytest.mark.parametrize("derived", [False, True])
def test_local_argument_meets_no_global_tensor(derived):
    """Processes may give different ones; a mask that the step makes itself is the same in all."""
    where = flow.placement("cpu", list(range(8)))
    model = nn.Linear(4, 4).to_global(where, flow.sbp.broadcast)

    class Evaluate(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, x, mask):
            return self.model(x) * (mask + 1 if derived else mask)

    with pytest.raises(MixedTensorError):
        Evaluate()(flow.ones(8, 4).to_global(where, flow.sbp.split(0)), flow.ones(8, 1))
