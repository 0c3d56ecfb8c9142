"""Slots of the cache: least recently used rows leave, against a model in plain Python."""

from collections import OrderedDict

import numpy as np
import pytest

from sbpjax.errors import TableError
from sbpjax.one_embedding.slots import Slots


def given(slots, *args, **options):
    plan = slots.plan(*args, **options)
    plan.carry_out()
    return plan


def test_against_an_ordered_dict():
    rng, count = np.random.default_rng(0), 64
    slots, known, changed, device = Slots("t", count), OrderedDict(), set(), {}
    for step in range(1, 300):
        rows = rng.zipf(1.2, 20) % 300
        writes = step % 3 > 0
        plan = given(slots, rows, step, writes)
        saved = dict(zip(plan.save_slots.tolist(), plan.save_rows.tolist(), strict=True))
        for slot, row in saved.items():
            assert device[slot] == row and row in changed
            changed.discard(row)
        for slot, row in zip(plan.load_slots.tolist(), plan.load_rows.tolist(), strict=True):
            assert device.get(slot) not in changed  # what a step changed was saved before
            device[slot] = row
        assert [device[s] for s in plan.slots.tolist()] == rows.tolist()
        ages = {row: age for age, row in enumerate(known)}
        for row in rows.tolist():
            known[row] = None
            known.move_to_end(row)
        here = set(slots.resident().tolist())
        assert here == set(device.values()) and len(here) <= count
        # Who stayed is not older than who left.
        left = set(ages) - here
        for row in left:
            del known[row]
        assert not left or max(ages[r] for r in left) <= count + 20
        if writes:
            changed.update(rows.tolist())
    assert 0 < slots.hits and slots.hits + slots.misses == 299 * 20


def test_the_least_recently_used_leave():
    slots = Slots("t", 4)
    given(slots, np.array([1, 2, 3, 4]), 1, writes=True)
    given(slots, np.array([1, 3]), 2, writes=False)
    plan = given(slots, np.array([5, 6, 5]), 3, writes=False)
    assert sorted(plan.save_rows.tolist()) == [2, 4] and sorted(plan.load_rows.tolist()) == [5, 6]
    assert plan.slots[0] == plan.slots[2]
    slots.mark_saved()
    assert len(given(slots, np.array([7, 8]), 4, writes=False).save_rows) == 0
    assert len(slots.changed_rows()[0]) == 0


def test_more_different_keys_than_slots():
    slots = Slots("t", 4)
    before = given(slots, np.array([1, 2]), 1, writes=True)
    with pytest.raises(TableError, match="5 different keys in a step\n.*the cache has 4 rows"):
        given(slots, np.array([1, 9, 8, 7, 6]), 2, writes=True)
    assert given(slots, np.array([1, 2]), 3, writes=True).slots.tolist() == before.slots.tolist()
    with pytest.raises(TableError, match="3 different keys in a step, and 2 of lookups before"):
        given(slots, np.array([7, 8, 9]), 4, writes=True, oldest=3)
    assert len(given(slots, np.array([7, 8]), 5, writes=True, oldest=3).load_rows) == 2


def test_a_plan_changes_nothing_until_it_is_carried_out():
    slots = Slots("t", 4)
    given(slots, np.array([1, 2, 3, 4]), 1, writes=True)
    before = slots.resident().tolist(), slots.hits, slots.misses
    first = slots.plan(np.array([5, 6, 1]), 2, writes=True)
    assert (slots.resident().tolist(), slots.hits, slots.misses) == before
    again = slots.plan(np.array([5, 6, 1]), 2, writes=True)
    assert first.save_rows.tolist() == again.save_rows.tolist() and first.slots.tolist() == again.slots.tolist()
    again.carry_out()
    assert {1, 5, 6} < set(slots.resident().tolist())


def test_the_pass_over_all_slots_is_rare(monkeypatch):
    slots, passes, real = Slots("t", 10_000), [], np.argpartition
    monkeypatch.setattr(np, "argpartition", lambda *a: passes.append(1) or real(*a))
    for step in range(200):
        given(slots, np.arange(step * 100, step * 100 + 100), step, writes=False)
    assert len(passes) <= 12  # for 10,000 rows that left, 1,250 at a time
