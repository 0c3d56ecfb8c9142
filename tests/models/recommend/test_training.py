"""Recommenders of every kind: one device's curve in every layout, planned bytes, formulas written out, and misuse."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.errors import ConfigError
from sbpjax.models import Parallel, parallelize, recommend
from sbpjax.models.parallelize import Layouts
from sbpjax.models.recommend import RecommendConfig

CONFIG = RecommendConfig(features=(100, 50, 30, 21), dense=3, dim=8, bottom=(12,), hidden=(16, 8), rank=4)
KINDS = ("WideDeep", "DeepFM", "DLRM", "DCN", "TwoTower")
LAYOUTS = {
    "rows": {"fsdp": 4},
    "columns": {"tensor": 4},
    "rows and columns": {"fsdp": 2, "tensor": 2},
    "copies of rows": {"data": 2, "fsdp": 2},
}
SAME = 1e-5
STEPS = 50


class Train(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(optim.SparseAdam(model.table_parameters(), lr=1e-3))
        self.add_optimizer(optim.Adam(model.dense_parameters(), lr=1e-3))

    def build(self, *batch):
        loss = self.model.loss(*batch)
        loss.backward()
        return loss


def batches(kind, count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        ids = np.stack([rng.integers(0, n, 16) for n in CONFIG.features], 1)
        batch = [rng.standard_normal((16, 3)).astype(np.float32), ids]
        yield batch if kind == "TwoTower" else [*batch, rng.integers(0, 2, 16)]


def curve(kind, spec=None, count=STEPS):
    flow.manual_seed(0)
    model = getattr(recommend, kind)(CONFIG)
    if spec is not None:
        parallelize(model, spec)
    graph = Train(model)
    losses = []
    for batch in batches(kind, count):
        tensors = [flow.tensor(x) for x in batch]
        if spec is not None:
            tensors = [t.to_global(spec.placement, spec.batch) for t in tensors]
        losses.append(graph(*tensors).item())
    return np.array(losses), graph


@pytest.fixture(scope="module")
def alone():
    return {kind: curve(kind)[0] for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_curve_of_one_device(kind, layout, alone):
    losses, graph = curve(kind, Parallel(**LAYOUTS[layout], device="cpu"))
    np.testing.assert_allclose(losses, alone[kind], rtol=SAME)
    traffic = graph.traffic()
    assert traffic.planned == traffic.compiled


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_has_a_row_of_the_table(kind):
    model = getattr(recommend, kind)(CONFIG)
    layouts = Layouts(model, Parallel(fsdp=2, tensor=2, device="cpu"))
    split = flow.sbp.split
    tables = {id(p) for p in model.table_parameters()}
    for name, parameter in model.named_parameters():
        whole = [flow.sbp.broadcast] * 2
        columns = split(1) if parameter.shape[-1] > 1 else flow.sbp.broadcast
        assert layouts.of[name][1] == ([split(0), columns] if id(parameter) in tables else whole)


def test_products_are_those_written_out():
    ids = flow.tensor([[3, 7, 0, 20]])
    dense = flow.randn(1, 3)
    model = recommend.DeepFM(CONFIG)
    vectors = model.tables(ids)[0].detach().numpy()
    pairs = sum(float(vectors[i] @ vectors[j]) for i in range(4) for j in range(i))
    rest = model.layers(flow.cat([flow.tensor(vectors).flatten().unsqueeze(0), dense], 1)).item()
    np.testing.assert_allclose(model(dense, ids).item() - model.first_dense(dense).item(), pairs + rest, rtol=1e-4)

    model = recommend.DLRM(CONFIG)
    numbers = model.bottom(dense)[0].detach().numpy()
    both = np.stack([numbers, *model.tables(ids)[0].detach().numpy()])
    dots = [float(both[i] @ both[j]) for i in range(5) for j in range(i)]
    expected = model.top(flow.tensor(np.concatenate([numbers, dots]).astype(np.float32)[None])).item()
    np.testing.assert_allclose(model(dense, ids).item(), expected, rtol=1e-4)

    model = recommend.DCN(RecommendConfig(features=(4,), dense=1, dim=2, crosses=1, hidden=()))
    first = np.concatenate([model.tables(flow.tensor([[2]]))[0, 0].detach().numpy(), [0.5]])
    layer = model.crosses[0].weight
    crossed = first * (layer.weight.detach().numpy() @ first + layer.bias.detach().numpy()) + first
    expected = model.head(flow.tensor(np.concatenate([crossed, first]).astype(np.float32)[None])).item()
    np.testing.assert_allclose(model(flow.tensor([[0.5]]), flow.tensor([[2]])).item(), expected, rtol=1e-5)


def test_popular_items_are_no_worse_negatives_with_their_frequency():
    model = recommend.TwoTower(CONFIG)
    dense, ids = (flow.tensor(x) for x in next(batches("TwoTower", 1)))
    users, items = (x.detach().numpy() for x in model(dense, ids))
    np.testing.assert_allclose(np.linalg.norm(items, axis=1), 1, rtol=1e-5)
    frequency = np.linspace(-3, 0, 16).astype(np.float32)
    logits = users @ items.T / CONFIG.temperature - frequency
    expected = np.mean(np.log(np.exp(logits).sum(1)) - np.diagonal(logits))
    np.testing.assert_allclose(model.loss(dense, ids, flow.tensor(frequency)).item(), expected, rtol=1e-4)


def test_misuse_is_told_in_four_parts():
    model = recommend.DLRM(CONFIG)
    dense = flow.zeros(2, 3)
    with pytest.raises(ValueError, match=r"(?s)ids int64\[2, 3\].*a column for each of the 4 features.*fix:  ids.resh"):
        model(dense, flow.zeros(2, 3, dtype=flow.int64))
    with pytest.raises(ValueError, match=r"(?s)ids float32\[2, 4\].*ids are integers"):
        model(dense, flow.zeros(2, 4))
    with pytest.raises(IndexError, match=r"(?s)index out of range: every number is in \[0, 201\)"):
        model(dense, flow.tensor([[0, 50, 0, 20], [0, 0, 0, 0]]))
    for wrong, output in (
        ({"features": ()}, "a recommender has a feature"),
        ({"features": (3, 0)}, r"features\[1\] is at least 1"),
        ({"features": (3,), "dim": 0}, "dim is at least 1"),
        ({"features": (3,), "temperature": 0.0}, "temperature above 0"),
    ):
        with pytest.raises(ConfigError, match=output):
            RecommendConfig(**wrong)
    narrow = recommend.DLRM(RecommendConfig(features=(9,), dim=4))
    with pytest.raises(flow.errors.PlacementError, match="every rank of an axis has a part, tensor=8 ≤ 4 columns"):
        Layouts(narrow, Parallel(tensor=8, device="cpu"))


def test_an_id_of_another_feature_is_none_of_its_rows():
    tables = recommend.Tables((10, 20), 4)

    class Look(nn.Graph):
        def __init__(self):
            super().__init__()
            self.tables = tables

        def build(self, ids):
            return self.tables(ids)

    ids = flow.tensor([[10, 0], [9, 19], [-1, 20]])
    with pytest.raises(IndexError, match="index out of range"):
        tables(ids)
    assert Look()(ids).isnan().all(-1).tolist() == [[True, False], [False, False], [True, True]]
