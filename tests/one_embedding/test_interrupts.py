"""Tables under interrupts: wherever a lookup or an update is cut off, every key has the row of a whole step."""

import random
import signal
import threading
import time

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import one_embedding as oe
from sbpjax import optim
from sbpjax.one_embedding import prefetch
from sbpjax.one_embedding.initializers import RowInitializer
from sbpjax.one_embedding.store import VALUE, RowStore
from tests.one_embedding.training import FEATURES, KEYS, Model, Step, batches, tables
from tests.support.interrupts import WARM, Machine, check, equal, interrupt_at

# A generator that is interrupted as it is closed.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
ROOM = "/one_embedding/"
INTERRUPTS = 12  # of each loop, at random moments
# Every key of every table, known or not.
ALL_KEYS = np.tile(np.arange(KEYS) * 2**50 - 2**60, FEATURES)
ALL_TABLES = np.repeat(np.arange(FEATURES), KEYS)


class TableMachine(Machine):
    """A training of tables whose rows come and leave; a step that was cut off is taken again."""

    def __init__(self, folder, kind="host", in_graph=False, model=None):
        model = Model(tables(folder, kind, cache_mb=0.01)) if model is None else model
        made = optim.Adam(model.parameters(), lr=0.05)
        graph = Step(model, made) if in_graph else None
        self.given = given = [(flow.tensor(ids[:24]), flow.tensor(labels[:24])) for ids, labels in batches(40)]

        def on(batch):
            if graph is not None:
                graph(*batch)
                return
            made.zero_grad()
            model(*batch).backward()
            made.step()

        self.on = on
        super().__init__(model, made, lambda: on(given[self.done() % len(given)]))
        self.others = flow.tensor(batches(1, seed=9)[0][0][:24])

    def done(self):
        state = self.optimizer.state.get(self.module.linear.weight)
        return int(state["step"].item()) if state else 0

    def state(self):
        table, linear = self.module.embedding, self.module.linear
        with flow.no_grad():  # rows leave for others before anything is flushed
            vectors = table(self.others).numpy()
        table.flush()
        found = {"vectors": vectors}
        found |= {"step": self.done(), "weight": linear.weight.detach().numpy(), "bias": linear.bias.detach().numpy()}
        return found | values_of(table._cache.store)


def values_of(store):
    """Return the columns of all keys; a key without a row has what it would begin with."""
    rows = store._map.find(ALL_TABLES, ALL_KEYS)
    found = {}
    for name, column in store.columns.items():
        first = store._initial.rows(ALL_TABLES, ALL_KEYS) if name == VALUE else column.fill
        found[name] = np.where((rows >= 0)[:, None], column.data[np.maximum(rows, 0)], first)
    return found


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
def test_an_interrupt_at_any_line_of_a_table_leaves_whole_rows(in_graph, tmp_path):
    place = check(lambda: TableMachine(tmp_path, in_graph=in_graph), within=ROOM)
    assert place > 100


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
def test_an_interrupt_of_a_step_leaves_whole_rows(in_graph, tmp_path):
    check(lambda: TableMachine(tmp_path, "disk", in_graph), every=61)


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
def test_a_signal_in_a_loop_that_prefetches_leaves_whole_rows(in_graph, tmp_path):
    machine, twin = (TableMachine(tmp_path, in_graph=in_graph) for _ in range(2))
    for each in (machine, twin):
        for _ in range(WARM):
            each.step()
    draw, tried, threads = random.Random(5), 0, threading.active_count()

    def handle(signum, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handle)
    try:
        while tried < INTERRUPTS:
            start = machine.done()
            batches_now = [machine.given[(start + i) % len(machine.given)] for i in range(6)]
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0005, 0.06))
                for batch in machine.module.embedding.prefetch(batches_now, keys=lambda batch: batch[0]):
                    machine.on(batch)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                tried += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            flow.set_grad_enabled(True)
            while twin.done() < machine.done():
                twin.step()
            assert equal(machine.state(), twin.state()), tried
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    deadline = time.monotonic() + 10
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= threads


def test_a_batch_that_is_planned_as_its_loop_ends_hinders_no_lookup(tmp_path, monkeypatch):
    machine, twin = (TableMachine(tmp_path) for _ in range(2))
    plan = prefetch._plan
    monkeypatch.setattr(prefetch, "_plan", lambda *given: (time.sleep(0.2), plan(*given)))
    with pytest.raises(KeyboardInterrupt):
        for batch in machine.module.embedding.prefetch(machine.given[:6], keys=lambda batch: batch[0]):
            machine.module(*batch)
            raise KeyboardInterrupt
    assert equal(machine.state(), twin.state())


@pytest.mark.parametrize("in_graph", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["eager", "graph"])
def test_an_interrupt_as_an_optimizer_takes_over_leaves_whole_rows(in_graph, tmp_path):
    machine = TableMachine(tmp_path, in_graph=in_graph)
    for _ in range(3):
        machine.step()
    machine.module.embedding.save_snapshot("a")
    held = {name: t.numpy().copy() for name, t in machine.module.linear.state_dict().items()}

    def anew():
        """Load what was saved, and let a new optimizer come."""
        machine.module.embedding.load_snapshot("a")
        machine.module.linear.load_state_dict({name: flow.tensor(t) for name, t in held.items()})
        return TableMachine(tmp_path, in_graph=in_graph, model=machine.module)

    before, after = anew().state(), anew()
    after.step()
    after = after.state()
    place, finished = 0, False
    while not finished:
        new = anew()
        finished = interrupt_at(new.step, place, within=ROOM)
        found = new.state()
        whole = after if new.done() else before
        assert all(np.array_equal(found[name], whole[name]) for name in (VALUE, "weight", "bias", "vectors")), place
        if not new.done():
            new.step()
            found = new.state()
        assert equal(found, after), place
        place += 31


def test_an_interrupt_of_a_snapshot_leaves_one_or_the_other(tmp_path):
    machine = TableMachine(tmp_path)
    table, wanted = machine.module.embedding, {}
    for name in ("a", "b"):
        for _ in range(2):
            machine.step()
        place, finished = 0, False
        while not finished:
            finished = interrupt_at(lambda name=name: table.save_snapshot(name), place, within=ROOM)
            if name in table.snapshot_names():
                table._snapshots.open_snapshot(name)  # it is complete
            place += 29
        wanted[name] = machine.state()
    names, place, finished = {"a": "b", "b": "a"}, 0, 0
    now = "b"
    while finished < 2:
        finished += interrupt_at(lambda: table.load_snapshot(names[now]), place, within=ROOM)  # noqa: B023
        found = machine.state()
        same = [name for name in names if np.array_equal(found[VALUE], wanted[name][VALUE])]
        assert same and np.array_equal(found["exp_avg"], wanted[same[0]]["exp_avg"]), place
        now, place = same[0], place + 29


@pytest.mark.parametrize("evict", ["", "frequency"])
def test_an_interrupt_of_a_store_leaves_all_new_keys_or_none(evict):
    def made():
        initial = RowInitializer([oe.make_table_options(oe.make_uniform_initializer(0.0, 1.0))], [2], None, 0)
        store = RowStore("t", 2, np.float32, initial, 6 if evict else 100, evict=evict)
        store.add_column("sum", np.float32, 0.0)
        for step, keys in enumerate([[1, 2, 3], [1, 4, 5, 6]]):
            rows = ask(store, keys, step)
            store.write("sum", rows, np.full((len(rows), 2), step + 1, np.float32))
        return store

    def ask(store, keys, step):
        return store.rows_of(np.zeros(len(keys), np.int64), np.array(keys), step)

    def content(store):
        rows = store.live()
        found = store._map.find(store.tables.data[rows], store.keys.data[rows])
        assert found.tolist() == rows.tolist()
        parts = (store.keys.data[rows].tolist(), store.read(VALUE, rows).tolist(), store.read("sum", rows).tolist())
        return {key: parts for key, *parts in zip(*parts, strict=True)}

    whole = made()
    before = content(whole)
    ask(whole, [7, 8, 1], 2)
    after, place, finished, seen = content(whole), 0, False, []
    while not finished:
        store = made()
        finished = interrupt_at(lambda store=store: ask(store, [7, 8, 1], 2), place, within=ROOM)
        seen.append(content(store))
        assert seen[-1] in (before, after), place
        ask(store, [7, 8, 1], 2)
        assert content(store) == after, place
        place += 1
    assert before in seen and after in seen
