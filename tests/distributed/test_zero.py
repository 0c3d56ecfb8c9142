"""Checkpoints of 2 × 4 devices under ZeRO, loaded on fewer devices, in other layouts and process counts."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import checkpoint
from tests.distributed import zero_state
from tests.distributed.running import passed

GRID = [[0, 1, 2, 3], [4, 5, 6, 7]]
S, B = flow.sbp.split, flow.sbp.broadcast
LAYOUTS = [([5], B), ([2, 3], S(0)), ([4, 5, 6, 7], S(1)), ([[0, 1], [2, 3]], [S(1), S(0)]), (GRID, [S(0), B])]


def save(folder, stage):
    """Train on eight devices, save; return the tensors by name, and the losses of the steps behind."""
    run = zero_state.Train(GRID, stage)
    run.steps(0, zero_state.STEPS)
    moments = [t for t in run.optimizer.state_tensors() if t.ndim == 2]
    assert moments and all(t.sbp[0].is_split for t in moments)  # the state does lie in parts
    checkpoint.save(run.state(), folder / "zero")
    wanted = zero_state.values(run.state())
    losses = run.steps(zero_state.STEPS, zero_state.MORE)
    np.savez(folder / "zero.npz", losses=losses, **wanted)
    return wanted, losses


def check_what_they_saved(folder, wanted):
    """Assert that what several processes saved has the same bits."""
    for where, how in LAYOUTS[:2]:
        loaded = checkpoint.load(folder / "zero_back", placement=flow.placement("cpu", where), sbp=how)
        zero_state.assert_same_bits(zero_state.values(loaded), wanted)


@pytest.mark.parametrize(
    "stage, ranks, its_stage",
    [
        (3, [0, 1, 2, 3], 1),
        *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in [
            (1, [3], 0), (2, [6, 7], 2), (3, [[0, 1], [2, 3]], 3), (1, [[0, 1], [2, 3]], 3), (2, list(range(8)), 0),
        ]),
    ],
)  # fmt: skip
def test_fewer_devices_in_one_process(stage, ranks, its_stage, tmp_path):
    wanted, losses = save(tmp_path, stage)
    zero_state.check(tmp_path / "zero", wanted, losses, ranks, its_stage, LAYOUTS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("stage, processes, devices", [(3, 2, 1), (3, 2, 2), (2, 4, 1), (1, 4, 2)])
def test_several_processes(stage, processes, devices, tmp_path):
    wanted, _ = save(tmp_path, stage)
    passed("zero.py", processes, devices, tmp_path, stage)
    check_what_they_saved(tmp_path, wanted)
