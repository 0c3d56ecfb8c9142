"""Nested values come back as they were: types, order, 1-tuples, None; leaves have readable paths."""

import dataclasses
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import sbpjax as flow
from sbpjax._core.tracing import tree
from sbpjax.errors import GraphTypeError

Pair = namedtuple("Pair", ["left", "right"])


@dataclasses.dataclass(frozen=True)
class Batch:
    ids: object
    size: int = 3


class Bag(list):
    pass


@dataclasses.dataclass
class Output(OrderedDict):
    """As the outputs of models in diffusers: a dict, whose fields are its items."""

    sample: object
    extra: object = None

    def __post_init__(self):
        self.update({k: v for k, v in vars(self).items() if v is not None})


X, Y = flow.ones(2), flow.zeros(3)
VALUES = {
    "tensor": X,
    "none": None,
    "one-tuple": (X,),
    "empty": ((), [], {}),
    "nested": [X, (Y, [X], {"b": 1, "a": Y})],
    "ordered": OrderedDict(z=X, a=Y),
    "default": defaultdict(list, {"k": [X]}),
    "namedtuple": Pair(X, Pair(1, None)),
    "dataclass": Batch(X),
    "subclass": Bag([X, 2]),
    "dict with fields": Output(X),
    "dataclass without a tensor": Batch(1, 2),
}


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif dataclasses.is_dataclass(a):
        same(vars(a), vars(b))
    else:
        assert a is b or a == b


@pytest.mark.parametrize("name", VALUES)
def test_round_trip(name):
    leaves, structure = tree.flatten(VALUES[name])
    same(tree.unflatten(structure, leaves), VALUES[name])
    hash(structure)
    assert len(tree.paths(structure)) == len(leaves)


def test_a_default_dict_keeps_what_makes_a_default():
    leaves, structure = tree.flatten(VALUES["default"])
    assert tree.unflatten(structure, leaves)["new"] == []


def test_paths_read_like_python():
    value = {"ids": X, "rest": (Pair(Y, 1), Batch(X))}
    _, structure = tree.flatten(value)
    assert tree.paths(structure, "batch") == [
        "batch['ids']",
        "batch['rest'][0].left",
        "batch['rest'][0].right",
        "batch['rest'][1].ids",
        "batch['rest'][1].size",
    ]


def test_keys_of_dicts_keep_their_order():
    a, b = ({"a": X, "b": Y}, {"b": Y, "a": X})
    assert tree.flatten(a)[1] != tree.flatten(b)[1]


@pytest.mark.parametrize(
    "a, b",
    [(1, 1.0), (1, True), (0.0, -0.0), ("a", b"a"), (np.zeros(2), np.zeros(3)), (np.zeros(2), np.ones(2)), ({1}, {2})],
)
def test_different_static_values_have_different_keys(a, b):
    assert tree.static_key(a) != tree.static_key(b)
    assert tree.static_key(a) == tree.static_key(a)


def test_equal_static_values_have_equal_keys():
    assert tree.static_key(float("nan")) == tree.static_key(float("nan"))
    assert tree.static_key(np.arange(3)) == tree.static_key(np.arange(3))
    assert tree.static_key(slice(0, 3)) == tree.static_key(slice(0, 3))


def test_a_value_without_hash_is_refused():
    class Mutable:
        __hash__ = None

    with pytest.raises(GraphTypeError, match=r"(?s)called with x\[0\].*Mutable, which has no hash.*fix: "):
        tree.static_key(Mutable(), "x[0]")
