"""Rows by key: made on first sight, evicted, put."""

import numpy as np
import pytest

from sbpjax import one_embedding as oe
from sbpjax.errors import TableError
from sbpjax.one_embedding.initializers import RowInitializer
from sbpjax.one_embedding.store import VALUE, RowStore

INITIAL = RowInitializer([oe.make_table_options(oe.make_uniform_initializer(0.0, 1.0))], [2], None, 0)


def made(capacity=100, **options):
    return RowStore("t", 2, np.float32, INITIAL, capacity, **options)


def ask(store, keys, step, **options):
    keys = np.asarray(keys)
    return store.rows_of(np.zeros(len(keys), np.int64), keys, step, **options)


@pytest.mark.parametrize("in_files", [False, True])
def test_rows_are_made_once(in_files, tmp_path):
    store = made(folder=str(tmp_path) if in_files else None)
    rows = ask(store, [5, -7, 5, 2**62], 1)
    assert rows[0] == rows[2] and len(set(rows.tolist())) == 3 and len(store) == 3
    np.testing.assert_array_equal(store.read(VALUE, rows), INITIAL.rows(np.zeros(4, int), np.array([5, -7, 5, 2**62])))
    store.add_column("sum", np.float32, 0.25)
    store.write(VALUE, rows[:1], np.array([[8.0, 9.0]], np.float32))
    again = ask(store, [2**62, 5, 11], 2)
    assert again[:2].tolist() == [rows[3], rows[0]]
    assert store.read(VALUE, again[1:2]).tolist() == [[8, 9]]
    assert store.read("sum", again).tolist() == [[0.25, 0.25]] * 3
    assert store.counts.data[rows[0]] == 2 and store.seen.data[rows[1]] == 1


def test_a_full_store_says_so_and_takes_nothing():
    store = made(capacity=4)
    ask(store, [1, 2, 3], 1)
    with pytest.raises(TableError, match=r"2 new keys, and 3 rows\n.*4 rows at most"):
        ask(store, [3, 4, 5], 2)
    assert len(store) == 3 and ask(store, [4], 3).tolist() == [3]


@pytest.mark.parametrize(("evict", "gone"), [("age", {1, 2}), ("frequency", {3, 4})])
def test_what_makes_room(evict, gone):
    store = made(capacity=6, evict=evict)
    store.add_column("sum", np.float32, 0.0)
    for step in range(3):
        ask(store, [1, 2], step)
    ask(store, [3, 4], 4)
    ask(store, [5, 6], 5)
    ask(store, [5, 6], 6)
    store.write("sum", store.live(), np.ones((6, 2), np.float32))
    rows = ask(store, [7, 8], 7)
    assert len(store) == 6
    assert store.read("sum", rows).tolist() == [[0, 0]] * 2  # nothing of the row that it was
    here = {int(k) for k in store.keys.data[store.live()]}
    assert here == {1, 2, 3, 4, 5, 6, 7, 8} - gone
    np.testing.assert_array_equal(store.read(VALUE, rows), INITIAL.rows(np.zeros(2, int), np.array([7, 8])))


def test_rows_that_are_in_use_stay():
    store = made(capacity=4, evict="age")
    rows = ask(store, [1, 2, 3, 4], 1)
    ask(store, [4, 9], 2, fixed=lambda: rows[:2])
    assert {int(k) for k in store.keys.data[store.live()]} == {1, 2, 4, 9}
    with pytest.raises(TableError, match="0 of them may make room"):
        ask(store, [1, 10], 3, fixed=lambda: store.live())


def test_age_alone():
    store = made(capacity=3, evict_after=2)
    for step, key in enumerate([1, 2, 3]):
        ask(store, [key], step)
    with pytest.raises(TableError, match="0 of them may make room"):
        ask(store, [4], 2)
    ask(store, [4], 5)
    assert {int(k) for k in store.keys.data[store.live()]} == {4}


def test_put_and_clear():
    store = made(capacity=3)
    keys = np.array([3, 1])
    store.put(np.zeros(2, int), keys, {VALUE: np.ones((2, 2)), "seen": np.array([4, 5]), "counts": np.array([6, 7])})
    assert ask(store, [1], 9).tolist() == [1] and store.counts.data[1] == 8
    with pytest.raises(TableError, match="2 new keys, and 2 rows"):
        store.put(np.zeros(2, int), np.array([8, 9]), {VALUE: np.ones((2, 2))})
    store.clear()
    assert len(store) == 0 and ask(store, [1], 1).tolist() == [0]
