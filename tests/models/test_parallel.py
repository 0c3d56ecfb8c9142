"""Mesh specs: placements, sbp of logical axes, and one error for what cannot be."""

import importlib.util

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import PlacementError
from sbpjax.models.parallel import AXIS_RULES, Parallel

B, S = flow.sbp.broadcast, flow.sbp.split


def spec(**axes):
    return Parallel(**axes, device="cpu")


def test_axes_are_those_of_more_than_one_part_outermost_first():
    whole = spec(tensor=2, data=2, fsdp=2)
    assert whole.axes == ("data", "fsdp", "tensor") and whole.devices == 8
    assert whole.placement == flow.placement("cpu", np.arange(8).reshape(2, 2, 2))
    assert whole.batch == [S(0), S(0), B]
    assert whole.equation == "data=2 × fsdp=2 × tensor=2 = 8"
    alone = spec()
    assert alone.axes == ("data",) and alone.placement == flow.placement("cpu", [0]) and alone.equation == "no axis = 1"


def test_positions_are_split_over_context():
    whole = spec(data=2, context=2, tensor=2, sequence=True)
    assert whole.axes == ("data", "context", "tensor") and whole.batch == [S(0), S(1), B]
    assert whole.place(np.zeros((4, 6))).sbp == (S(0), S(1), B) and whole.place(np.zeros(4)).sbp == (S(0), B, B)


def test_stages_have_their_own_placements():
    stages = spec(pipeline=2, data=2, tensor=2).placements
    assert stages == [flow.placement("cpu", [[0, 1], [2, 3]]), flow.placement("cpu", [[4, 5], [6, 7]])]
    assert spec(pipeline=2, ranks=(5, 3)).placements == [flow.placement("cpu", [5]), flow.placement("cpu", [3])]


@pytest.mark.parametrize(
    "logical_axes, want",
    [
        (("heads", "width"), [B, S(1), S(0)]),
        (("width", "hidden"), [B, S(0), S(1)]),
        (("vocab",), [B, B, S(0)]),
        (("width",), [B, S(0), B]),
        (("whole", "whole"), [B, B, B]),
        (("width", "width"), [B, S(0), B]),  # an axis splits one dim
        (("hidden", "heads"), [B, B, S(0)]),
    ],
)
def test_logical_axes_become_sbps(logical_axes, want):
    assert spec(data=2, fsdp=2, tensor=2).sbp(logical_axes) == want


def test_new_logical_axis_is_a_rule():
    own = Parallel(data=2, tensor=2, device="cpu", axis_rules={**AXIS_RULES, "classes": "tensor"})
    assert own.sbp(("classes", "width")) == [B, S(0)]
    with pytest.raises(PlacementError, match=r"a dim of logical axis 'classes'[\s\S]*logical axes are vocab"):
        spec(tensor=2).sbp(("classes",))


def test_a_batch_is_split_over_data_and_fsdp():
    batch = np.arange(16).reshape(8, 2)
    x = spec(data=2, fsdp=2, tensor=2).place(batch)
    assert x.sbp == (S(0), S(0), B) and (x.numpy() == batch).all()
    assert spec(pipeline=2).place(batch, -1).placement == flow.placement("cpu", [1])


@pytest.mark.parametrize(
    "given, seen",
    [
        ({"data": 0}, r"data=0[\s\S]*a whole number of parts, at least 1"),
        ({"tensor": 2.0}, r"tensor=2.0"),
        ({"data": True}, r"data=True"),
        ({"sequence": 2}, r"sequence=2\)[\s\S]*sequence is a flag[\s\S]*context=2"),
        ({"context": 2, "context_by": "rings"}, r"context_by='rings'[\s\S]*one of ring, ulysses"),
        ({"data": 2, "ranks": (0, 0)}, r"ranks=\[0, 0\], 1 devices[\s\S]*data=2: as many devices"),
        ({"axis_rules": {"heads": "tenser"}}, r"logical axis 'heads' on 'tenser'[\s\S]*axes are pipeline, data"),
    ],
)
def test_specs_that_cannot_be(given, seen):
    with pytest.raises(PlacementError, match=seen) as error:
        spec(**given)
    assert all(part in str(error.value) for part in ("\n  seen: ", "\n  rule: ", "\n  fix:  "))


def test_too_few_devices():
    with pytest.raises(PlacementError, match=r"8 devices of type 'cpu'[\s\S]*data=3 × tensor=4 = 12 devices"):
        _ = spec(data=3, tensor=4).placement


@pytest.mark.aot
@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs the extra aot")
def test_a_machine_that_is_not_there():
    stages = Parallel(pipeline=2, data=2, device="v5p:2x2x1").placements
    assert [stage.hierarchy for stage in stages] == [(2,), (2,)] and stages[0].topology_name == "v5p:2x2x1"
    assert sorted(rank for stage in stages for rank in stage.ranks) == [0, 1, 2, 3]
    with pytest.raises(PlacementError, match="has 4 devices"):
        Parallel(data=8, device="v5p:2x2x1").placement  # noqa: B018
