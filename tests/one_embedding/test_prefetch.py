"""The thread that runs ahead: batches that are skipped, lookups between, ends and errors."""

import threading

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import optim
from sbpjax.errors import TableError
from tests.one_embedding.training import Model, Step, batches, tables


def run(folder, kind, steps=14, skip=(), between=(), prefetch=True):
    """Train with batches left out and lookups between steps; return the losses."""
    model = Model(tables(folder, kind))
    step = Step(model, optim.Adam(model.parameters(), lr=0.05))
    pairs = [(flow.tensor(ids), flow.tensor(labels)) for ids, labels in batches(steps)]
    losses = []
    for number, (ids, labels) in enumerate(model.embedding.prefetch(pairs, lambda b: b[0]) if prefetch else pairs):
        if number in between:
            with flow.no_grad():
                model.eval()
                model(flow.tensor(batches(1, seed=number)[0][0]), labels)
                model.train()
        if number not in skip:
            losses.append(step(ids, labels).item())
    return losses


@pytest.mark.parametrize(("skip", "between"), [((), ()), ((0, 3, 4, 9), ()), ((), (2, 3, 7)), ((5,), (5, 6))])
def test_the_curve_is_that_without_a_thread(skip, between, tmp_path):
    wanted = run(tmp_path, "device", skip=skip, between=between, prefetch=False)
    assert run(tmp_path, "host", skip=skip, between=between) == wanted


def test_it_runs_ahead(tmp_path):
    model = Model(tables(tmp_path, "host"))
    step = Step(model, optim.Adam(model.parameters(), lr=0.05))
    cache, found = model.embedding._cache, []
    pairs = [(flow.tensor(ids), flow.tensor(labels)) for ids, labels in batches(8)]
    for ids, labels in model.embedding.prefetch(pairs, lambda b: b[0]):
        step(ids, labels)
        for _ in range(200):
            if cache.unapplied:
                break
            threading.Event().wait(0.01)
        found.append(sum(entry.plan is not None for entry in cache.unapplied))
    assert found == [1] * 7 + [0]  # the rows of the next batch are there before it is asked for


def test_a_snapshot_while_the_next_batch_is_prepared(tmp_path):
    model = Model(tables(tmp_path, "host"))
    step = Step(model, optim.Adam(model.parameters(), lr=0.05))
    pairs = [(flow.tensor(ids), flow.tensor(labels)) for ids, labels in batches(10)]
    losses = []
    for number, (ids, labels) in enumerate(model.embedding.prefetch(pairs, lambda b: b[0])):
        losses.append(step(ids, labels).item())
        model.embedding.save_snapshot(f"step-{number}")
    assert losses == run(tmp_path, "device", 10, prefetch=False)


def test_leaving_early_and_errors_of_the_loader(tmp_path):
    model = Model(tables(tmp_path, "host"))
    step = Step(model, optim.Adam(model.parameters(), lr=0.05))

    def loader():
        yield from [(flow.tensor(ids), flow.tensor(labels)) for ids, labels in batches(3)]
        raise OSError("no more")

    before = threading.active_count()
    for ids, labels in model.embedding.prefetch(loader(), lambda b: b[0]):
        step(ids, labels)
        break
    with pytest.raises(OSError, match="no more"):
        for ids, labels in model.embedding.prefetch(loader(), lambda b: b[0]):
            step(ids, labels)
    with pytest.raises(TableError, match="the cache has 326 rows"):
        for ids in model.embedding.prefetch([flow.tensor(np.arange(999).reshape(-1, 3))], lambda b: b):
            step(ids, flow.zeros(333))
    assert threading.active_count() == before
    losses = [step(flow.tensor(ids), flow.tensor(labels)).item() for ids, labels in batches(3)]
    assert np.isfinite(losses).all()
