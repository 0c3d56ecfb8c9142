"""Containers that say when they change."""

import copy
import pickle

import pytest

from sbpjax._core.tensor.storage.version_counter import Fields, Group, Items, States, Table, changes

DICT_CHANGES = {
    "set": lambda d: d.__setitem__("a", 3),
    "new": lambda d: d.__setitem__("z", 3),
    "del": lambda d: d.__delitem__("a"),
    "pop": lambda d: d.pop("a"),
    "popitem": lambda d: d.popitem(),
    "setdefault": lambda d: d.setdefault("z", 3),
    "update": lambda d: d.update(a=3),
    "ior": lambda d: d.__ior__({"a": 3}),
    "clear": lambda d: d.clear(),
}
LIST_CHANGES = {
    "set": lambda x: x.__setitem__(0, 5),
    "slice": lambda x: x.__setitem__(slice(0, 2), [5]),
    "del": lambda x: x.__delitem__(0),
    "iadd": lambda x: x.__iadd__([5]),
    "imul": lambda x: x.__imul__(2),
    "append": lambda x: x.append(5),
    "extend": lambda x: x.extend([5]),
    "insert": lambda x: x.insert(0, 5),
    "pop": lambda x: x.pop(),
    "remove": lambda x: x.remove(2),
    "sort": lambda x: x.sort(reverse=True),
    "reverse": lambda x: x.reverse(),
    "clear": lambda x: x.clear(),
}


def made(kind):
    items = {"a": 1, "b": 2}
    return States(list, items) if kind is States else kind(items)


@pytest.mark.parametrize("kind", [Table, Fields, States, Group])
@pytest.mark.parametrize("change", DICT_CHANGES)
def test_every_change_of_a_dict_moves_the_mark_and_does_what_it_does(kind, change):
    d, plain = made(kind), {"a": 1, "b": 2}
    before = changes.now
    DICT_CHANGES[change](d)
    assert changes.now is not before
    DICT_CHANGES[change](plain)
    assert dict(d) == plain


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_every_change_of_a_list_moves_the_mark_and_does_what_it_does(change):
    x, plain = Items([1, 2, 3]), [1, 2, 3]
    before = changes.now
    LIST_CHANGES[change](x)
    assert changes.now is not before
    LIST_CHANGES[change](plain)
    assert x == plain


def test_all_methods_that_change_the_base_are_replaced():
    for kind, base in ((Table, dict), (Fields, dict), (States, dict), (Group, dict), (Items, list)):
        reading = {"copy", "fromkeys", "get", "items", "keys", "values", "count", "index"}
        public = {name for name in vars(base) if not name.startswith("_")} - reading
        special = {"__setitem__", "__delitem__", *(n for n in vars(base) if n.startswith("__i") and n != "__init__")}
        for name in public | (special - {"__iter__", "__init_subclass__"}):
            assert name in vars(kind), f"{kind.__name__}.{name}"
    assert "move_to_end" in vars(Table)


def test_reading_moves_nothing_and_a_missing_state_does():
    table, states = made(Table), made(States)
    before = changes.now
    assert (list(table), table.get("a"), len(states), "z" in states) == (["a", "b"], 1, 2, False)
    assert changes.now is before
    assert states["z"] == []
    assert changes.now is not before


def test_a_learning_rate_moves_no_mark_unless_it_is_of_another_kind():
    group = Group({"lr": 0.1, "momentum": 0.9})
    before = changes.now
    group["lr"] = 0.2
    assert changes.now is before
    assert group["lr"] == 0.2
    group["lr"] = 1
    assert changes.now is not before
    before = changes.now
    group["momentum"] = 0.8
    assert changes.now is not before


@pytest.mark.parametrize("kind", [Table, Fields, States, Group, Items])
def test_copies_are_of_the_same_kind_and_equal(kind):
    d = Items([1, 2]) if kind is Items else made(kind)
    for twin in (copy.copy(d), copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
        assert type(twin) is kind
        assert twin == d
        assert twin is not d
