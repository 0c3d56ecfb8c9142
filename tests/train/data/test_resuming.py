"""Every kind of dataset: the same batches on any number of ranks and workers, from any step on, whatever is killed."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sbpjax as flow
from sbpjax.utils.data import DataLoader, GlobalLoader
from tests.train.data.kinds import BATCH, KINDS, SAMPLES, digest, long, values, write

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path):
    write(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_batches_on_any_number_of_ranks_and_workers(kind, folder):
    whole = [values(batch) for batch in DataLoader(KINDS[kind](folder), BATCH)]
    assert len(whole) == SAMPLES // BATCH and len({json.dumps(batch) for batch in whole}) == len(whole)
    for ranks in (1, 2, 4):
        placement = flow.placement("cpu", list(range(ranks)))
        loader = GlobalLoader(DataLoader(KINDS[kind](folder), BATCH), placement, flow.sbp.split(0))
        found = list(loader)
        assert [values(batch) for batch in found] == whole
        parts = found[0].values() if isinstance(found[0], dict) else found[0]
        assert all(part.placement == placement and part.sbp == (flow.sbp.split(0),) for part in parts)
    assert [values(batch) for batch in DataLoader(KINDS[kind](folder), BATCH, num_workers=2)] == whole


@pytest.mark.parametrize("kind", KINDS)
def test_any_step_is_a_beginning(kind, folder):
    whole = [values(batch) for batch in DataLoader(KINDS[kind](folder), BATCH)]
    for step in (1, 5, len(whole) - 1):
        loader = DataLoader(KINDS[kind](folder), BATCH)
        loader.load_state_dict(loader.state_dict() | {"batches": step, "seed": 0})
        assert [values(batch) for batch in loader] == whole[step:]


def killed_runs(folder, kills, workers):
    """Go through a dataset in runs that are killed at random moments; look at what is left behind each time."""
    moment = random.Random(0)
    command = [sys.executable, "-m", "tests.train.data.kinds", str(folder), str(workers)]
    expected = [digest(batch) for batch in DataLoader(long(folder), BATCH // 4)]
    for _ in range(kills):
        run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            assert run.stdout.readline()  # its first batches
            time.sleep(moment.random() * 0.01)
            assert run.poll() is None
        finally:
            run.kill()
            run.communicate()
        taken = json.loads((folder / "run.json").read_text())["taken"]
        assert taken == expected[: len(taken)]  # none lost, none doubled
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    assert json.loads((folder / "run.json").read_text())["taken"] == expected


@pytest.mark.slow
def test_a_killed_run_loses_and_doubles_nothing(folder):
    killed_runs(folder, kills=1, workers=0)


@pytest.mark.slow
@pytest.mark.exhaustive  # twenty-one processes with JAX
def test_twenty_kills_lose_and_double_nothing(folder):
    killed_runs(folder, kills=20, workers=2)
