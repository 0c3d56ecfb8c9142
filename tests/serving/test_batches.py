"""Requests joined to a few sizes of batches, each with its own rows of the answer."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.serving import Batches

from .support import exported


def rows(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 6)).astype(np.float32)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    model = exported(folder)
    return model, flow.load_graph(folder / "mlp/1/model")


def test_each_request_gets_its_rows(served):
    model, graph = served
    batches = Batches(graph, 12)
    assert batches.sizes == [1, 2, 4, 8, 12]
    requests = [[rows(n, n)] for n in (1, 3, 2)]
    for (given,), (found,) in zip(requests, batches(requests)):
        np.testing.assert_allclose(found, model(flow.tensor(given)).numpy(), rtol=1e-5, atol=1e-6)


def test_no_size_is_compiled_for_a_request(served):
    _, graph = served
    batches = Batches(graph, 8)
    batches.warm()
    inner = graph.program._compiled or graph.program.call
    before = inner._cache_size()
    for count in range(1, 9):
        batches([[rows(count)]])
    assert inner._cache_size() == before


def test_nested_arguments_and_results(tmp_path):
    class Two(nn.Graph):
        def build(self, batch, scale, *, pair):
            return {"sum": (batch["a"] + pair[0]) * scale, "more": [batch["b"], pair[1]]}

    x, y = flow.ones(2, 3), flow.zeros(2, 3)
    Two().export(tmp_path / "two", {"a": x, "b": y}, 2.0, pair=(x, y), dynamic_batch=True)
    batches = Batches(flow.load_graph(tmp_path / "two"), 4)
    given = [np.full((3, 3), n, np.float32) for n in (1, 2, 3, 4)]
    ((total, *more),) = batches([given])
    assert (total == 8).all() and [int(m[0, 0]) for m in more] == [2, 4] and total.shape == (3, 3)


def test_a_batch_of_one_size(tmp_path):
    model = exported(tmp_path, dynamic=False)
    batches = Batches(flow.load_graph(tmp_path / "mlp/1/model"), 0)
    batches.warm()
    assert batches.sizes == []
    ((found,),) = batches([[rows(2)]])
    np.testing.assert_allclose(found, model(flow.tensor(rows(2))).numpy(), rtol=1e-5, atol=1e-6)
