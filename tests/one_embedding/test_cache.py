"""The curve of a dense table on one device, whatever lies where: caches, files, threads, layouts, processes."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim
from tests.distributed.running import passed
from tests.one_embedding.training import Model, batches, dense_curve, tables, train, value

TOLERANCE = 1e-5
OPTIMIZERS = ["Adam", "SGD", "Adagrad", "Ftrl"]


@pytest.fixture(scope="module")
def dense(tmp_path_factory):
    return {name: dense_curve(50, name, tmp_path_factory.mktemp("dense")) for name in ("Adam", "SGD")}


@pytest.mark.parametrize("optimizer", ["Adam", "SGD"])
@pytest.mark.parametrize("kind", ["device", "host", "disk"])
def test_the_curve_of_a_dense_table(kind, optimizer, dense, tmp_path):
    got, model = train(tmp_path, kind, optimizer)
    np.testing.assert_array_equal(got, dense[optimizer])
    table = model.embedding
    assert (len(table.weight) <= table.num_rows) == (kind != "device")  # rows do leave


@pytest.mark.parametrize(
    "options",
    [
        {"graph": False},
        {"prefetch": True},
        {"prefetch": True, "graph": False},
        {"placement": 4, "prefetch": True},
        pytest.param({"placement": 8}, marks=pytest.mark.exhaustive),
        pytest.param({"placement": 2, "graph": False}, marks=pytest.mark.exhaustive),
        pytest.param({"placement": 4, "kind": "disk", "prefetch": True}, marks=pytest.mark.exhaustive),
    ],
    ids=str,
)
def test_every_way_of_running_gives_it(options, dense, tmp_path):
    given = {"kind": "host"} | options
    if "placement" in given:
        given["placement"] = flow.placement("cpu", list(range(given["placement"])))
    got, _ = train(tmp_path, **given)
    np.testing.assert_allclose(got, dense["Adam"], atol=TOLERANCE, rtol=0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("cache_mb", [0.012, 0.02, 0.04])
def test_every_optimizer_and_cache(optimizer, cache_mb, tmp_path):
    wanted = dense_curve(50, optimizer, tmp_path)
    got, _ = train(tmp_path, "host", optimizer, cache_mb=cache_mb)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("ranks", "kind"), [(2, "host"), *(pytest.param(4, k, marks=pytest.mark.exhaustive) for k in ("host", "disk"))]
)
def test_processes_that_own_shards_of_the_keys(ranks, kind, dense, tmp_path):
    passed("tables.py", ranks, 1, tmp_path, kind)
    got = np.load(tmp_path / f"losses-{kind}-{ranks}.npy")
    np.testing.assert_allclose(got, dense["Adam"], atol=TOLERANCE, rtol=0)
    # One process goes on from what several wrote, and the other way round in the script.
    table = tables(tmp_path / kind)
    table.load_snapshot(f"of-{ranks}")
    ids = flow.tensor(batches(1)[0][0])
    whole, _ = Model(tables(tmp_path / "one")), None
    assert table.num_rows > len(np.unique(ids.numpy()))
    assert not np.array_equal(table(ids).detach().numpy(), whole.embedding(ids).detach().numpy())


class TwoLookups(nn.Module):
    """Two lookups of one table in a step."""

    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, a, b):
        return (self.table(a) * self.table(b)).sum()


@pytest.mark.parametrize("way", ["graph", "eager", "is_prefetched"])
def test_several_lookups_in_a_step(way, tmp_path):
    class Step(nn.Graph):
        def __init__(self, model, optimizer):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, a, b):
            loss = self.model(a, b)
            loss.backward()
            return loss

    pairs = [(flow.tensor(a[:32]), flow.tensor(b[32:])) for (a, _), (b, _) in zip(batches(12), batches(12, 5))]
    curves = []
    for kind in ("device", "host"):
        model = TwoLookups(tables(tmp_path, kind))
        optimizer = optim.Adam(model.parameters(), lr=0.05)
        step, losses = Step(model, optimizer), []
        is_prefetched = kind == "host" and way == "told"
        loader = model.table.prefetch(pairs, keys=list) if is_prefetched else pairs
        for a, b in loader:
            if way == "graph":
                losses.append(value(step(a, b)))
                continue
            optimizer.zero_grad()
            loss = model(a, b)
            loss.backward()
            optimizer.step()
            losses.append(value(loss))
        curves.append(losses)
    assert curves[0] == curves[1]
