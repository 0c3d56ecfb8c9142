"""What a state may hold besides tensors: each kind comes back as it was, unknown classes are refused by name."""

import argparse
import collections
import datetime
import decimal
import enum
import fractions
import logging
import pathlib
import sys
import types
import uuid
import zoneinfo

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import errors
from sbpjax.data.checkpoint import codec, tree

S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
Point = collections.namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Mine:
    pass


class Settings(dict):
    pass


VALUES = {
    "plain": [1, 2.5, -0.0, None, True, "text", "\ud800", 10**30, float("inf")],
    "set": {1, "a", (2, 3), frozenset({4})},
    "dates": [
        datetime.date(2026, 11, 23),
        datetime.datetime(2026, 11, 23, 5, 6, 7, 89),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=-3))),
        datetime.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("UTC")),
        datetime.time(4, 5),
        datetime.timedelta(days=-1, microseconds=3),
    ],
    "paths": [pathlib.Path("/a/b"), pathlib.PureWindowsPath("c:\\d")],
    "enums": [Colour.RED, Level.HIGH],
    "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
    "counter": collections.Counter("aab"),
    "deque": collections.deque([1, 2], maxlen=3),
    "size": flow.ones(2, 3).shape,
    "dtypes": [flow.float32, flow.bfloat16, np.dtype("int8")],
    "device": flow.device("cpu:1"),
    "placement": flow.placement("cpu", [[0, 1], [2, 3]]),
    "sbp": (S(0), S(3), B, P),
    "numpy": [np.float32(0.1), np.int8(-3), np.bool_(True), np.str_("é"), np.datetime64("2026-11-23", "s")],
    "complex": 1 - 2j,
    "bytes": [b"\x00\xff", bytearray(b"ab")],
    "range": [range(1, 9, 2), slice(None, 3)],
    "exact": [decimal.Decimal("0.1"), fractions.Fraction(1, 3), uuid.UUID(int=7)],
    "keys": {1: "a", "1": "b", None: 2, (1, 2): 3, 2.5: 4, b"k": 5, datetime.date(2026, 1, 1): 6},
    "named": Point(1, [2]),
    "no key": {"": 1},
}


@pytest.mark.parametrize("name", VALUES)
def test_round_trip(name, tmp_path):
    flow.save({name: VALUES[name]}, tmp_path / "c")
    found = flow.load(tmp_path / "c")[name]
    assert found == VALUES[name] and type(found) is type(VALUES[name])
    if isinstance(found, (list, tuple)):
        assert [type(a) for a in found] == [type(b) for b in VALUES[name]]


def test_namespaces_defaults_and_tensors_inside(tmp_path):
    many = collections.defaultdict(list, a=[flow.ones(2)])
    state = {
        "many": many,
        "options": argparse.Namespace(lr=0.1, betas=(0.9, 0.99)),
        "names": types.SimpleNamespace(inner=argparse.Namespace(x=flow.arange(3))),
        "point": Point(flow.ones(1), 2),
        "twice": {1: flow.ones(1), "1": flow.zeros(1)},
    }
    flow.save(state, tmp_path / "c")
    found = flow.load(tmp_path / "c")
    assert type(found["many"]) is collections.defaultdict and found["many"]["new"] == []
    assert found["many"]["a"][0].tolist() == [1, 1]
    assert found["options"] == state["options"] and type(found["names"]) is types.SimpleNamespace
    assert found["names"].inner.x.tolist() == [0, 1, 2] and found["point"].x.tolist() == [1]
    assert found["twice"][1].item() == 1 and found["twice"]["1"].item() == 0  # two keys of one spelling


@pytest.mark.parametrize(
    "value, words",
    [
        (Mine(), "is a Mine of tests" if __name__.startswith("tests") else "is a Mine of"),
        (Settings(a=1), "is a Settings"),
        (collections.defaultdict(lambda: 1), "default_factory"),
        (len, "builtin_function_or_method"),
        (Mine, "is a type"),
        (np.array([object()]), "object"),
        ({(1, Mine()): 2}, "is a Mine"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_unknown_classes_are_refused_by_name(value, words, tmp_path):
    with pytest.raises(errors.CheckpointError) as raised:
        flow.save({"a": {"b": value}}, tmp_path / "c")
    assert words in str(raised.value) and "\n  fix:  " in str(raised.value) and not (tmp_path / "c").exists()


def test_a_state_that_holds_itself(tmp_path):
    state = {}
    state["again"] = state
    with pytest.raises(errors.CheckpointError, match="without an end"):
        flow.save(state, tmp_path / "c")


@pytest.mark.parametrize(
    "code",
    [
        {"": "enum", "class": "os.system", "name": "x", "value": 3},
        {"": "enum", "class": "antigravity.Thing", "name": "x", "value": 3},
        {"": "namedtuple", "class": "os.stat_result", "fields": ["a"], "items": [3]},
    ],
    ids=lambda c: c["class"],
)
def test_a_file_imports_and_calls_nothing(code):
    before = set(sys.modules)
    found = tree.unpack(code, None)
    assert found in (3, (3,)) and not type(found).__module__.startswith("os") and set(sys.modules) == before


@pytest.mark.parametrize(
    "code", [{"": "call", "class": "os.system"}, {"": "defaultdict", "factory": "eval", "items": []}, {"": []}], ids=str
)
def test_kinds_that_are_not_known(code):
    with pytest.raises((errors.CheckpointError, KeyError, TypeError)):
        tree.unpack(code, None)


def test_omegaconf(tmp_path, monkeypatch, caplog):
    """Stand-ins: the package is optional and not among the tests' own."""
    module = types.ModuleType("omegaconf")

    class DictConfig:
        def __init__(self, content):
            self.content = content

    class ListConfig(DictConfig):
        pass

    class OmegaConf:
        create = staticmethod(lambda value: (DictConfig if isinstance(value, dict) else ListConfig)(value))

        @staticmethod
        def to_container(value, resolve):
            assert resolve is False  # references such as ${a} stay
            return value.content

    module.DictConfig, module.ListConfig, module.OmegaConf = DictConfig, ListConfig, OmegaConf
    monkeypatch.setitem(sys.modules, "omegaconf", module)
    plain = {"a": 1, "b": "${a}", "c": [1, {"d": None}]}
    flow.save({"config": DictConfig(plain), "list": ListConfig([1])}, tmp_path / "c")
    found = flow.load(tmp_path / "c")
    assert type(found["config"]) is DictConfig and found["config"].content == plain
    assert type(found["list"]) is ListConfig
    monkeypatch.setitem(sys.modules, "omegaconf", None)  # not installed
    monkeypatch.setattr(codec, "_notes", set())
    with caplog.at_level(logging.WARNING, "sbpjax.checkpoint"):
        assert flow.load(tmp_path / "c") == {"config": plain, "list": [1]}
        flow.load(tmp_path / "c")
    assert [r.message for r in caplog.records if "omegaconf" in r.message.lower()] == [
        "a checkpoint holds OmegaConf configurations; omegaconf is not installed: they are read as plain ones"
    ]
