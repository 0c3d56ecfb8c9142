"""Readers and writers of snapshots without a table."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import one_embedding as oe
from sbpjax.errors import TableError
from tests.one_embedding.training import DIM, FEATURES, batches, tables, train


def test_rows_made_elsewhere_go_in(tmp_path):
    keys, rows = np.array([7, -3, 2**60]), np.arange(12, dtype=np.float32).reshape(3, 4)
    with oe.make_persistent_table_writer(
        [str(tmp_path / "t")], "init", flow.int64, flow.float32, DIM, num_tables=FEATURES
    ) as writer:
        writer.write(keys, rows)
        writer.write(flow.tensor(keys), flow.tensor(-rows), np.ones(3))
    table = tables(tmp_path, "host")
    table.load_snapshot("init")
    found = table(flow.tensor([[7, 2**60, 7], [2**60, -3, 8]])).detach().numpy()
    np.testing.assert_array_equal(found[:, :2], [[rows[0], -rows[2]], [rows[2], -rows[1]]])
    assert np.abs(found[:, 2]).max() <= 0.1  # of the third table nothing was written


def test_trained_rows_go_out(tmp_path):
    _, model = train(tmp_path, "host", steps=3)
    table = model.embedding
    table.save_snapshot("a")
    reader = oe.make_persistent_table_reader(str(tmp_path / "t"), "a", flow.int64, flow.float32, DIM)
    assert len(reader) == table.num_rows
    first = batches(1)[0][0]
    wanted = table(flow.tensor(first)).detach().numpy()
    found = {}
    with reader:
        for numbers, keys, rows in reader.with_tables():
            found |= {(t, k): v for t, k, v in zip(numbers.tolist(), keys.tolist(), rows, strict=True)}
    got = [[found[t, int(key)] for t, key in enumerate(line)] for line in first]
    np.testing.assert_array_equal(got, wanted)
    whole = oe.make_persistent_table_reader(str(tmp_path / "t"), "a", flow.int64, flow.float32, 3 * DIM)
    assert next(iter(whole))[1].shape[1] == 3 * DIM


def test_misuse(tmp_path):
    _, model = train(tmp_path, steps=1)
    model.embedding.save_snapshot("a")
    ask = lambda name, kind, dim: oe.make_persistent_table_reader(str(tmp_path / "t"), name, flow.int64, kind, dim)  # noqa: E731
    with pytest.raises(TableError, match="storage_dim=5"):
        ask("a", flow.float32, 5)
    with pytest.raises(TableError, match="value_type=float16"):
        ask("a", flow.float16, DIM)
    with pytest.raises(TableError, match="No such file"):
        ask("b", flow.float32, DIM)
    writer = oe.make_persistent_table_writer(str(tmp_path / "t"), "w", flow.int64, flow.float32, DIM)
    with pytest.raises(TableError, match=r"values float64\[2, 3\]"):
        writer.write(np.arange(2), np.ones((2, 3)))
    with pytest.raises(KeyError), writer:
        raise KeyError("the block ends early")
    assert model.embedding.snapshot_names() == ["a"]
