"""Nested structures of tensors: all of them to global, all of them to local."""

import collections

import pytest

import sbpjax as flow
from sbpjax import errors

Pair = collections.namedtuple("Pair", "left right")
WHERE = flow.placement("cpu", [0, 1])


def test_there_and_back():
    tree = {"a": flow.ones(4), "b": [flow.zeros(2, 2), 3], "c": (Pair(flow.ones(2), "text"), None)}
    spread = flow.utils.global_view.to_global(tree, WHERE, flow.sbp.split(0))
    assert spread["a"].sbp == (flow.sbp.split(0),) and spread["b"][0].is_global and spread["b"][1] == 3
    assert isinstance(spread["c"][0], Pair) and spread["c"][0].left.is_global and spread["c"] == (spread["c"][0], None)
    again = flow.utils.global_view.to_local(spread)
    assert again["a"].is_local and again["a"].tolist() == [1.0] * 4
    assert flow.utils.global_view.to_local(again)["a"].is_local


def test_incomplete():
    with pytest.raises(errors.MixedTensorError):
        flow.utils.global_view.to_global([flow.ones(2)], WHERE)


def test_every_device():
    assert flow.env.all_device_placement("cpu") == flow.placement.all("cpu")
