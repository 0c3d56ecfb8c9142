"""Fifteen mistakes, each with one message that says what was seen and what to do."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax import one_embedding as oe
from sbpjax.errors import GraphError, TableError
from tests.one_embedding.training import Model, Step, batches, store, tables

IDS = np.arange(6).reshape(2, 3)


def _trained(folder, optimizer, **options):
    model = Model(tables(folder, "host", **options))
    made = getattr(optim, optimizer)(model.parameters(), lr=0.1)
    ids, labels = batches(1)[0]
    Step(model, made)(flow.tensor(ids), flow.tensor(labels))
    return model


def _other_state(folder):
    _trained(folder, "Adam").embedding.save_snapshot("a")
    model = Model(tables(folder, "host"))
    made = optim.Adagrad(model.parameters(), lr=0.1)
    model.embedding.load_snapshot("a")
    ids, labels = batches(1)[0]
    Step(model, made)(flow.tensor(ids), flow.tensor(labels))


def _accumulated(folder):
    model = Model(tables(folder))
    step = Step(model, optim.Adam(model.parameters(), lr=0.1))
    step.config.set_gradient_accumulation_steps(2)
    ids, labels = batches(1)[0]
    step(flow.tensor(ids), flow.tensor(labels))


def _from_state(folder):
    class Lookup(nn.Graph):
        def __init__(self):
            super().__init__()
            self.table = tables(folder)
            self.shift = flow.tensor([1, 2, 3])

        def build(self, ids):
            return self.table(ids + self.shift)

    Lookup()(flow.tensor(IDS))


def _exported(folder):
    class Lookup(nn.Graph):
        def __init__(self):
            super().__init__()
            self.table = tables(folder)

        def build(self, ids):
            return self.table(ids)

    graph = Lookup()
    graph(flow.tensor(IDS))
    graph.export(folder / "exported", flow.tensor(IDS))


CASES = {
    "ids of floating point": (lambda f: tables(f)(flow.tensor(IDS * 1.0)), "ids of float32|ids of float64"),
    "an id beyond key_type": (
        lambda f: tables(f, key_type=flow.int32)(flow.tensor(IDS + 2**31)),
        r"the id 21474836\d\d\n.*key_type=int32 holds -2147483648 to 2147483647",
    ),
    "a table out of range": (
        lambda f: tables(f)(flow.tensor(IDS), flow.tensor(IDS)),
        r"table 3\n.*tables are numbered 0 to 2",
    ),
    "table_ids of another shape": (lambda f: tables(f)(flow.tensor(IDS), flow.tensor([0])), r"table_ids \[1\]"),
    "no id for a table": (lambda f: tables(f)(flow.tensor(IDS[:, :2])), "one id for each of the 3 tables"),
    "no table": (
        lambda f: oe.MultiTableEmbedding("t", 4, flow.float32, flow.int64, [], store("device", f)),
        "no table",
    ),
    "vectors of integers": (lambda f: tables(f, dtype=flow.int32), "vectors are of floating point"),
    "an optimizer without sparse updates": (
        lambda f: optim.LAMB(tables(f).parameters()),
        "its update moves rows without gradient",
    ),
    "a size_factor too small for the optimizer": (
        lambda f: _trained(f, "Adam", size_factor=2),
        r"size_factor=2\n.*Adam keeps 2 numbers beside each number of a row \(exp_avg, exp_avg_sq\)",
    ),
    "rows of another optimizer": (_other_state, r"rows with the state \['exp_avg', 'exp_avg_sq'\]\n.*Adagrad needs"),
    "a full store": (
        lambda f: tables(f, capacity=8)(flow.tensor(np.arange(9).reshape(3, 3))),
        r"9 new keys, and 0 rows\n.*8 rows at most",
    ),
    "more keys in a step than the cache has rows": (
        lambda f: tables(f, "host")(flow.tensor(np.arange(999).reshape(-1, 3))),
        r"999 different keys in a step\n.*the cache has 326 rows",
    ),
    "micro-batches": (_accumulated, r"set_gradient_accumulation_steps\(1\)"),
    "keys that depend on the state": (_from_state, "keys that depend on parameters, buffers"),
    "an export": (_exported, "lookups in a table by key"),
    "a store that is none": (
        lambda f: oe.MultiTableEmbedding("t", 4, flow.float32, flow.int64, [{}], {"capacity": 3}),
        r"one of the make_\*_store_options",
    ),
    "a snapshot that is not there": (lambda f: tables(f).load_snapshot("x"), "no snapshot there"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_message(case, tmp_path):
    do, message = CASES[case]
    with pytest.raises((TableError, GraphError, ValueError), match=message) as raised:
        do(tmp_path)
    text = str(raised.value)
    assert all(f"\n  {part}:" in text for part in ("seen", "rule", "fix")), text


def test_another_number_of_processes_is_no_mistake(tmp_path):
    """`tests/one_embedding/test_cache.py` reads what two and four processes wrote; here parts of a split are read."""
    placement = flow.placement("cpu", [0, 1, 2, 3])
    table = tables(tmp_path).to_global(placement, flow.sbp.split(0))
    wanted = table(flow.tensor(IDS).to_global(placement, flow.sbp.broadcast)).detach().numpy()
    table.save_snapshot("a")
    one = tables(tmp_path, "disk")
    one.load_snapshot("a")
    np.testing.assert_array_equal(one(flow.tensor(IDS)).detach().numpy(), wanted)
