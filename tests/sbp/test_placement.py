"""Placements: any hierarchy, any order of ranks, and errors before any device is touched in vain."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from sbpjax.errors import PlacementError, PlacementTypeError
from sbpjax.sbp.placement import current_placement, flat_placement, placement


def four_parts(error) -> list[str]:
    lines = str(error.value).splitlines()
    assert [x.strip().split(":")[0] for x in lines[1:]] == ["seen", "rule", "fix"]
    assert "test_placement.py:" in lines[0]
    return lines


@pytest.mark.parametrize(
    "ranks, hierarchy",
    [
        ([0], (1,)),
        ([3, 1, 2], (3,)),
        (range(4), (4,)),
        (np.arange(6).reshape(2, 3), (2, 3)),
        ([[[0, 1], [2, 3]], [[4, 5], [6, 7]]], (2, 2, 2)),
        ({0: [0, 1], 1: [2, 3]}, (4,)),
    ],
)
def test_hierarchies(ranks, hierarchy):
    place = placement("cpu", ranks)
    assert place.hierarchy == hierarchy == place.ranks.shape
    assert place.size == np.prod(hierarchy) and place.type == place.device_type == "cpu"
    assert place.mesh.devices.shape == hierarchy and place.mesh.axis_names == place.axis_names
    assert [d.id for d in place.devices.flat] == list(place.ranks.flat)


def test_order_is_meaningful():
    assert placement("cpu", [0, 1]) != placement("cpu", [1, 0])
    assert placement("cpu", [[0, 1]]) != placement("cpu", [0, 1])
    assert placement("cpu", [0, 1]) == placement("cpu", range(2))
    assert len({placement("cpu", [0, 1]), placement("cpu", (0, 1)), placement("cpu", [1, 0])}) == 2


def test_repr_and_pickle():
    place = placement("cpu", [[0, 1], [2, 3]])
    assert repr(place) == 'sbpjax.placement(type="cpu", ranks=[[0, 1], [2, 3]])'
    assert pickle.loads(pickle.dumps(place)) == place


def test_all_devices():
    assert placement.all("cpu").ranks.tolist() == list(range(len(jax.devices("cpu"))))


def test_ranks_cannot_be_written():
    with pytest.raises(ValueError):
        placement("cpu", [0, 1]).ranks[0] = 1


def test_of_devices_and_flat():
    devices = np.array(jax.devices("cpu")[:4])[[2, 0, 3, 1]].reshape(2, 2)
    place = placement.of_devices(devices)
    assert place.ranks.tolist() == [[2, 0], [3, 1]] and place.is_present
    assert flat_placement(place) == placement("cpu", [2, 0, 3, 1])
    assert flat_placement(placement("cpu", [1])) == placement("cpu", [1])


def test_scope():
    assert current_placement() is None
    with placement("cpu", [0, 1]) as outer:
        with placement("cpu", [2]) as inner:
            assert current_placement() is inner
        assert current_placement() is outer
    assert current_placement() is None


def test_scope_ends_with_an_error():
    with pytest.raises(ZeroDivisionError), placement("cpu", [0]):
        raise ZeroDivisionError
    assert current_placement() is None


@pytest.mark.parametrize(
    "type, ranks, expected",
    [
        ("cpu", [0, 99], "ranks [99]"),
        ("cpu", [-1, 0], "ranks [-1]"),
        ("cpu", [0, 1, 1], "[1] more than once"),
        ("cpu", [], "shape (0,)"),
        ("cpu", [[0, 1], [2]], "ragged"),
        ("cpu", 0, "shape ()"),
        ("xpu", [0], "type 'xpu'"),
    ],
)
def test_impossible_placements(type, ranks, expected):
    with pytest.raises(PlacementError) as error:
        placement(type, ranks)
    assert isinstance(error.value, (ValueError, RuntimeError))
    assert expected in four_parts(error)[1]


@pytest.mark.parametrize("type, ranks", [(0, [0]), (None, [0]), ("cpu", [0.5]), ("cpu", ["0"]), ("cpu", [True])])
def test_wrong_types(type, ranks):
    with pytest.raises(PlacementTypeError) as error:
        placement(type, ranks)
    four_parts(error)


def test_a_type_without_devices():
    if any(d.platform == "tpu" for d in jax.devices()):
        pytest.skip("this machine has a TPU")
    with pytest.raises(PlacementError) as error:
        placement("tpu", [0])
    assert "'tpu'" in four_parts(error)[0]


MANY = """
import numpy as np
import sbpjax as flow
import sbpjax
for ranks in (range(64), np.arange(64).reshape(8, 8), np.arange(64).reshape(8, 8).T, range(63, -1, -1)):
    place = flow.placement("cpu", ranks)
    assert eval(repr(place)) == place and (place.ranks == np.asarray(ranks)).all()
    print(place)
print(flow.ones(64, placement=place, sbp="S0").sum())
"""


def test_many_ranks_print_as_ranges_that_are_taken_again():
    where = {**os.environ, "SBPJAX_CPU_DEVICES": "64", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", MANY], env=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    flat, grid, columns, back, *tensor = done.stdout.splitlines()
    assert flat == 'sbpjax.placement(type="cpu", ranks=range(64))'
    assert grid == 'sbpjax.placement(type="cpu", ranks=np.arange(64).reshape(8, 8))'
    assert columns.startswith('sbpjax.placement(type="cpu", ranks=[range(0, 57, 8), range(1, 58, 8), ')
    assert back == 'sbpjax.placement(type="cpu", ranks=range(63, -1, -1))'
    assert "ranks=range(63, -1, -1)" in "".join(tensor) and "62, 61" not in done.stdout


def test_errors_show_many_ranks_as_ranges():
    with pytest.raises(PlacementError) as caught:
        placement("cpu", range(1000))
    assert str(caught.value).startswith("placement('cpu', range(1000))")
    assert f"seen: ranks range({len(jax.devices('cpu'))}, 1000)" in str(caught.value)
    with pytest.raises(PlacementError, match=r"placement\('cpu', \[0, 1, 2, (\d+, )*\.\.\.\]\)(?s:.*)ragged"):
        placement("cpu", [*range(500), [500]])
    with pytest.raises(PlacementError, match=r"ranks range\(20\) more than once"):
        placement("cpu", [*range(20), *range(20)])
