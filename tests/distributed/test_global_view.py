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


def test_new_tensors_are_global_in_a_global_mode():
    placement, sbp = flow.placement("cpu", [0, 1]), flow.sbp.split(0)
    with flow.utils.global_view.global_mode(True, placement=placement, sbp=sbp):
        made = [flow.ones(4, 2, device="cpu"), flow.tensor([1.0, 2]), flow.rand(4), flow.arange(4)]
        current = flow.utils.global_view.current_global_mode()
        assert current.is_enabled and current.placement == placement and current.sbp == sbp
        assert all(x.is_global and x.placement == placement and x.sbp == (sbp,) for x in made)
        assert made[0].to_local() is made[0] and made[0].to(made[0].device).is_global
        with flow.utils.global_view.global_mode(False):
            assert not flow.ones(1).is_global
        other = flow.ones(2, placement=placement, sbp=flow.sbp.broadcast)
        assert other.sbp == (flow.sbp.broadcast,)
    assert not flow.ones(1).is_global and not flow.utils.global_view.current_global_mode().is_enabled
    with pytest.raises(TypeError, match="needs placement and sbp"):
        flow.utils.global_view.global_mode(True)
