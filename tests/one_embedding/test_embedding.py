"""Embedding tables: lookups, columns, padding, layouts, state dicts, and what the text of OneFlow's scripts needs."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax import one_embedding as oe
from tests.one_embedding.training import DIM, Model, Step, batches, place, tables, train


def small(folder, count=3, dim=4, kind="device", **options):
    made = [oe.make_table_options(oe.make_uniform_initializer(i, i + 1)) for i in range(count)]
    store = oe.make_device_mem_store_options(str(folder), capacity=64)
    return oe.MultiTableEmbedding("t", dim, flow.float32, flow.int64, made, store, **options)


def test_lookups_by_column_and_by_table(tmp_path):
    module = small(tmp_path)
    ids = flow.tensor([[0, 7, -(2**63)], [1, 1, 2**63 - 1]])
    vectors = module(ids)
    assert vectors.shape == (2, 3, 4)
    assert (vectors.detach().numpy().astype(int) == np.arange(3)[None, :, None]).all()
    again = module(flow.tensor([7, -(2**63)]), flow.tensor([1, 2]))
    np.testing.assert_array_equal(again.detach().numpy(), vectors.detach().numpy()[0, 1:])
    assert module.num_rows == 6
    other = small(tmp_path)(ids.flip(0)).flip(0)  # first values do not depend on the order
    np.testing.assert_array_equal(other.detach().numpy(), vectors.detach().numpy())
    assert "3 tables of vectors of 4, store on device, cache of 64 rows" in repr(module)


def test_columns_padding_and_initializers(tmp_path):
    store = oe.make_cached_host_mem_store_options(16, [str(tmp_path)], capacity=6)
    columns = oe.make_table([oe.make_column_options(oe.make_constant_initializer(v)) for v in (1.0, 2.0)])
    module = oe.MultiTableMultiColumnEmbedding("c", [2, 1], flow.float32, flow.int64, [columns], store, padding_idx=9)
    assert module(flow.tensor([9, 3])).tolist() == [[0, 0, 0], [1, 1, 2]]
    optimizer = optim.Adam(module.parameters(), lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        module(flow.tensor([9, 3])).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(module(flow.tensor([9, 3])).tolist(), [[0, 0, 0], [0, 0, 1]], atol=1e-6)


def test_a_table_split_over_devices_trains_as_a_whole_one(tmp_path):
    placement = flow.placement("cpu", [0, 1, 2, 3])
    wanted, _ = train(tmp_path, steps=8)
    for kind, graph in (("device", True), ("host", True), ("host", False)):
        got, model = train(tmp_path, kind, placement=placement, graph=graph, steps=8)
        assert model.embedding.weight.sbp == (flow.sbp.split(0),)
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_onefows_optimizer_adds_the_tables(tmp_path):
    module = small(tmp_path)
    bias = nn.Parameter(flow.zeros(1))
    optimizer = oe.Optimizer(optim.SGD([bias], lr=0.5), [module])
    before = module(flow.tensor([[1, 2, 3]])).detach().numpy()
    optimizer.zero_grad()
    (module(flow.tensor([[1, 2, 3]])).sum() + bias.sum()).backward()
    optimizer.step()
    after = module(flow.tensor([[1, 2, 3]])).detach().numpy()
    np.testing.assert_allclose(after, before - 0.5, rtol=1e-6)
    assert optimizer.state_dict().keys() == {"state", "param_groups"}


def test_bfloat16_with_master_weights(tmp_path):
    found = []
    for kind in ("device", "host"):
        model = Model(tables(tmp_path, kind, dtype=flow.bfloat16, size_factor=4, cache_mb=0.012))
        model.linear.to(flow.bfloat16)
        optimizer = optim.Adam(model.parameters(), lr=0.01)
        optimizer.use_master_weights()
        step = Step(model, optimizer)
        found.append([step(flow.tensor(i), flow.tensor(y).to(flow.bfloat16)).item() for i, y in batches(12)])
        assert (len(model.embedding.weight) <= model.embedding.num_rows) == (kind == "host")
        held = model.embedding._cache.store.columns
        assert set(held) == {"value", "exp_avg", "exp_avg_sq", "master"} and held["master"].dtype == np.float32
    assert found[0] == found[1]


def test_keys_that_build_computes(tmp_path):
    class Lookup(nn.Graph):
        def __init__(self, table):
            super().__init__()
            self.table = table

        def build(self, ids):
            return self.table((ids * 2).flip(0)) + self.table(ids)

    for placement in (None, flow.placement("cpu", [0, 1])):
        table = tables(tmp_path)
        if placement is not None:
            table.to_global(placement, flow.sbp.split(0))
        ids = np.arange(12).reshape(4, 3)
        got = Lookup(table)(place(ids, placement)).numpy()
        plain = tables(tmp_path)
        wanted = plain(flow.tensor(ids[::-1] * 2)) + plain(flow.tensor(ids))
        np.testing.assert_allclose(got, wanted.detach().numpy(), rtol=1e-6)


def test_a_new_optimizer_keeps_the_values(tmp_path):
    _, model = train(tmp_path, "host", optimizer="SGD", steps=4)
    ids = flow.tensor(batches(1)[0][0])
    before = model.embedding(ids).detach().numpy()
    optimizer = optim.Adagrad(model.parameters(), lr=0.1, initial_accumulator_value=0.5)
    model(ids, flow.tensor(batches(1)[0][1])).backward()
    np.testing.assert_array_equal(model.embedding(ids).detach().numpy(), before)
    optimizer.step()
    model.embedding.flush()
    sums = model.embedding._cache.store.columns["sum"]
    assert sums.fill == 0.5 and sums.data[: model.embedding.num_rows].min() == 0.5


def test_a_state_dict_names_a_snapshot(tmp_path):
    _, model = train(tmp_path, "host", steps=6)
    table = model.embedding
    state = model.state_dict()
    assert sorted(state) == ["embedding.snapshot", "linear.bias", "linear.weight"]
    assert bytes(state["embedding.snapshot"].numpy()).decode() == "state-00000000"
    ids = flow.tensor(batches(1)[0][0])
    wanted = table(ids).detach().numpy()
    other = Model(tables(tmp_path, "disk"))
    other.load_state_dict(state)
    np.testing.assert_array_equal(other.embedding(ids).detach().numpy(), wanted)
    model.state_dict()
    model.state_dict()
    assert table.snapshot_names() == [f"state-0000000{i}" for i in range(3)]
    table.prune_snapshots(keep=1)
    assert table.snapshot_names() == ["state-00000002"]
    with pytest.raises(RuntimeError, match="no snapshot|snapshots there: state-00000002"):
        other.load_state_dict(state)
    with pytest.raises(RuntimeError, match="embedding.snapshot"):
        other.load_state_dict({k: v for k, v in state.items() if "snapshot" not in k})


def test_evaluation_does_not_change_rows(tmp_path):
    _, model = train(tmp_path, "host", steps=3)
    model.eval()
    ids = flow.tensor(batches(1)[0][0])
    with flow.no_grad():
        first = model.embedding(ids).numpy()
        for other, _ in batches(20, seed=7):  # many lookups, none of which an optimizer's step follows
            model.embedding(flow.tensor(other))
        np.testing.assert_array_equal(model.embedding(ids).numpy(), first)
    assert first.shape[-1] == DIM


def test_a_snapshot_between_the_lookup_and_the_step(tmp_path):
    curves = []
    for kind in ("device", "host"):
        model = Model(tables(tmp_path, kind))
        optimizer, losses = optim.Adam(model.parameters(), lr=0.05), []
        for number, (ids, labels) in enumerate(batches(10)):
            optimizer.zero_grad()
            loss = model(flow.tensor(ids), flow.tensor(labels))
            model.embedding.save_snapshot(f"{kind}-{number}")
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        curves.append(losses)
    assert curves[0] == curves[1]
