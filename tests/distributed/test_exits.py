"""Programs that end at random points: none hangs longer than ranks wait for each other, no save is lost.

A save counts as begun when its call came back on every rank. From then on it has to be there after the end, complete
and with its values, whatever ended the program on whichever rank. ``-m exhaustive -s`` runs 200 of them
and prints figures.
"""

import re
import subprocess
import sys
import time

import pytest

from sbpjax import checkpoint
from tests.distributed.running import SCRIPTS, finish, start
from tests.distributed.scripts.ends import Program

TIMEOUT_S = 15
SLACK_S = 20  # for the ways out: a rank ends by itself for 3 s, the launcher stops it for 5, on two busy cores
SAMPLE = (3, 4, 7, 11)
BATCHES = [range(first, first + 20) for first in range(0, 200, 20)]


def begin(folder, seed):
    """Start a program."""
    program = Program(seed)
    arguments = (SCRIPTS / "ends.py", folder / str(seed), seed)
    if program.ranks > 1:
        return program, start("--nproc_per_node", 2, "--cpu_devices", 1, *arguments, timeout=TIMEOUT_S)
    command = [sys.executable, "-u", *map(str, arguments)]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return program, subprocess.Popen(command, start_new_session=True, **piped)


def check(folder, seed, program, process):
    """Wait for the end of a program; return how many saves were there, and for how long it ended in seconds."""
    code, out, err = finish(process)
    now, report = time.time(), f"seed {seed}: {program}\n{out[-2000:]}\n{err[-4000:]}"
    ends = [float(t) for t in re.findall(r"ends ([\d.]+)", out)]
    assert ends, report
    assert now - min(ends) < TIMEOUT_S + SLACK_S, f"{now - min(ends):.1f} s\n{report}"
    well = program.way in ("its end", "exit 0") and program.at == len(program.steps)
    assert (code == 0) or not well, report
    assert (code != 0) or program.way in ("its end", "exit 0"), report
    begun = [k for k in range(len(program.steps)) if out.count(f"begun {k}\n") == program.ranks]
    manager = checkpoint.Manager(folder / str(seed))
    assert set(begun) <= set(manager.steps()), report
    for step in begun:
        found = manager.restore(step)[1]
        assert found["number"] == step and (found["x"].numpy() == step).all(), report
    assert not list((folder / str(seed)).glob("*.partial")), report
    return len(begun), now - min(ends)


def test_a_sample(tmp_path):
    running = {seed: begin(tmp_path, seed) for seed in SAMPLE}
    kept = sum(check(tmp_path, seed, *both)[0] for seed, both in running.items())
    assert kept >= len(SAMPLE)


@pytest.mark.exhaustive
@pytest.mark.parametrize("batch", BATCHES, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_all(batch, tmp_path):
    kept, longest, begun_at = 0, 0.0, time.monotonic()
    for seed in batch:
        saves, seconds = check(tmp_path, seed, *begin(tmp_path, seed))
        kept, longest = kept + saves, max(longest, seconds)
        print(f"{seed}: {seconds:.1f} s, {Program(seed)}", flush=True)
    took = time.monotonic() - begun_at
    print(
        f"{len(batch)} programs in {took:.0f} s, {kept} saves all there, at most {longest:.1f} s from first end to last"
    )
