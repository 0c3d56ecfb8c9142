"""Pipelines whose stages lie in several processes: numbers of one process, and what happens when one fails."""

import time
from pathlib import Path

import pytest

from tests.distributed.running import launch

SCRIPTS = Path(__file__).parent / "scripts"
TIMEOUT_S = 240  # what ranks wait for each other; a quiet machine needs five seconds for all of it


def passed(ranks, devices, *cases):
    run(ranks, devices, "processes.py", *cases)


def run(ranks, devices, script, *arguments):
    code, out, err = launch("--nproc_per_node", ranks, "--cpu_devices", devices, SCRIPTS / script, *arguments)
    assert code == 0, f"{out[-2000:]}\n{err[-6000:]}"
    for rank in range(ranks):
        assert f"[rank {rank}] rank {rank} of {ranks} passed" in out, out[-3000:]


def test_numbers_of_one_process():
    passed(2, 1, "sample")


CASES = ["net", "schedules", "fifty", "interleaved", "random", "all_skip", "halves", "across", "unlike"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("ranks", "devices"), [(2, 1), (4, 1), (2, 2)])
def test_every_case(ranks, devices, case):
    passed(ranks, devices, case)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("ranks", "devices"), [(2, 4), (4, 2)])
def test_data_and_tensor_parallel_inside_stages(ranks, devices):
    passed(ranks, devices, "halves", "across", "grids")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("ranks", "devices"), [(2, 4), (4, 2)])
def test_the_gpt_example_has_the_curve_of_one_device(ranks, devices):
    run(ranks, devices, "gpt.py", 12, 4)


@pytest.mark.parametrize("how", ["raises", "killed"])
def test_a_failing_stage_ends_all_with_one_message(how):
    code, out, err = launch("--nproc_per_node", 2, "--cpu_devices", 1, SCRIPTS / "failing.py", how, timeout=TIMEOUT_S)
    failed = float(next(line for line in out.splitlines() if "] fails at " in line).split()[-1])
    assert time.time() - failed < TIMEOUT_S
    first, second = ([line for line in out.splitlines() if line.startswith(f"[rank {r}] loss")] for r in range(2))
    assert len(first) == 2 and [line.replace("rank 0", "rank 1") for line in first] == second, err[-4000:]
    if how == "killed":
        assert code == 128 + 9 and "rank 1" in err and "was killed by SIGKILL" in err
        return
    assert code == 1 and "rank 1 has the weights of the last finished step" in out
    assert "rank 1" in err and "exited with code 1" in err and "FloatingPointError: a nan in micro-batch 2" in err
