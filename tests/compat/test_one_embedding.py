"""Embedding tables: lookups, gradients, layouts, snapshots, and what is not here."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import one_embedding as oe
from sbpjax.errors import AbsentError


def table(tmp_path, tables=3, dim=4, **options):
    store = oe.make_device_mem_store_options(str(tmp_path), capacity=8 * tables)
    made = [oe.make_table_options(oe.make_uniform_initializer(i, i + 1)) for i in range(tables)]
    return oe.MultiTableEmbedding("t", dim, flow.float32, flow.int64, made, store, **options)


def test_lookups_by_column_and_by_table(tmp_path):
    module = table(tmp_path)
    ids = flow.tensor([[0, 7, 3], [1, 1, 1]])
    vectors = module(ids)
    assert vectors.shape == (2, 3, 4)
    assert (vectors.detach().numpy().astype(int) == np.arange(3)[None, :, None]).all()
    again = module(flow.tensor([7, 3]), flow.tensor([1, 2]))
    np.testing.assert_array_equal(again.detach().numpy(), vectors.detach().numpy()[0, 1:])
    with pytest.raises(ValueError, match="one id for each of the 3 tables"):
        module(flow.tensor([[1, 2]]))
    np.testing.assert_array_equal(table(tmp_path).weight.detach().numpy(), module.weight.detach().numpy())


def test_columns_padding_and_initializers(tmp_path):
    store = oe.make_cached_host_mem_store_options(16, [str(tmp_path)], capacity=6)
    columns = oe.make_table([oe.make_column_options(oe.make_constant_initializer(v)) for v in (1.0, 2.0)])
    module = oe.MultiTableMultiColumnEmbedding("c", [2, 1], flow.float32, flow.int64, [columns], store, padding_idx=0)
    assert module(flow.tensor([0, 3])).tolist() == [[0, 0, 0], [1, 1, 2]]
    module(flow.tensor([0, 3])).sum().backward()
    assert module.weight.grad.to_dense().sum(1).tolist() == [0, 0, 0, 3, 0, 0]
    normal = oe.make_table_options(oe.make_trunc_normal_initializer(std=0.1, a=-0.1, b=0.1))
    module = oe.MultiTableEmbedding("n", 8, flow.float32, flow.int64, [normal], store)
    assert 0 < module.weight.abs().max().item() <= 0.1


def test_a_table_split_over_devices_trains_as_a_whole_one(tmp_path):
    placement, split = flow.placement("cpu", [0, 1, 2, 3]), flow.sbp.split(0)
    ids = flow.tensor([[0, 7, 3], [1, 1, 1], [0, 2, 2], [5, 5, 0]])
    found = []
    for spread in (False, True):
        module = table(tmp_path)
        if spread:
            module = module.to_global(placement, split)
        bias = flow.zeros(1, requires_grad=True)
        groups = [{"params": module.parameters()}] if spread else [{"params": [bias]}]
        optimizer = oe.Optimizer(flow.optim.SGD(groups, lr=0.5), [module])
        for _ in range(2):
            optimizer.zero_grad()
            module(ids.to_global(placement, split) if spread else ids).square().sum().backward()
            optimizer.step()
        module.save_snapshot("last")
        other = table(tmp_path, seed=1)
        other = other.to_global(placement, split) if spread else other
        other.load_snapshot("last")
        np.testing.assert_array_equal(other.weight.detach().numpy(), module.weight.detach().numpy())
        assert module.weight.is_global == spread
        found.append(module.weight.detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: oe.make_cached_ssd_store_options(16, "/x"),
        lambda: oe.make_persistent_table_reader("/x", "s", flow.int64, flow.float32, 4),
        lambda: oe.make_persistent_table_writer("/x", "s", flow.int64, flow.float32, 4),
    ],
)
def test_there_are_no_stores_on_ssd(ask):
    with pytest.raises(AbsentError, match="no store of its own on SSD"):
        ask()
