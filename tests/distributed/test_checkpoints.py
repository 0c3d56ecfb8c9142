"""Training that is killed at random moments goes on from its last checkpoint."""

import pytest

from tests.distributed.running import SCRIPTS, launch


@pytest.mark.parametrize("kills, steps", [(1, 6), pytest.param(20, 200, marks=pytest.mark.exhaustive)])
def test_training_survives_kills_at_random_moments(kills, steps, tmp_path):
    options = ["--nproc_per_node", 2, "--cpu_devices", 1, "--max_restarts", kills]
    code, out, err = launch(*options, SCRIPTS / "survivor.py", tmp_path, kills, steps)
    assert code == 0, f"{out[-2000:]}\n{err[-6000:]}"
    assert err.count("was killed by SIGKILL") == kills and out.count("of 2 passed") == 2
