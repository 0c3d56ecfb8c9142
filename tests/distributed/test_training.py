"""The demo GPT under the launcher: the same curve on one, two and four processes, and after kills at random moments."""

import csv

import pytest

from tests.distributed.running import LIMIT_S, SCRIPTS, launch

DEVICES = {"pair": 2}  # the others have eight
STEPS = 12
LOSS_TOLERANCE = 2e-5  # relative, float32 sums in another order over STEPS steps


def train(folder, processes, layout, steps=STEPS, kills=0, latest_s=0.0):
    """Train on so many processes and return the losses by kind and step, and the launcher's errors."""
    folder.mkdir(exist_ok=True)
    devices = DEVICES.get(layout, 8) // processes
    options = ["--nproc_per_node", processes, "--cpu_devices", devices, "--max_restarts", kills]
    cache = {"SBPJAX_PROGRAM_CACHE": "on", "SBPJAX_CACHE_DIR": str(folder / "programs")}  # for starts after a kill
    arguments = [folder, layout, steps, kills, latest_s]
    limit_s = LIMIT_S * (1 + kills // 5)
    code, out, err = launch(*options, SCRIPTS / "gpt.py", *arguments, limit_s=limit_s, **cache)
    assert code == 0, f"{out[-2000:]}\n{err[-6000:]}"
    assert out.count(f"of {processes} passed") == processes
    with (folder / "losses.csv").open(newline="") as file:
        return {(row["kind"], int(row["step"])): float(row["loss"]) for row in csv.DictReader(file)}, err


def batches(folder):
    """Return which steps were taken in each start, and the sums of their tokens."""
    taken, sums = {}, {}
    for line in (folder / "batches").read_text().splitlines():
        start, step, total = map(int, line.split())
        taken.setdefault(start, []).append(step)
        assert sums.setdefault(step, total) == total
    return taken, sums


@pytest.mark.exhaustive
@pytest.mark.parametrize("layout", ["dp", "2d"])
def test_the_curve_does_not_depend_on_the_processes(layout, tmp_path):
    curves = {n: train(tmp_path / str(n), n, layout)[0] for n in (1, 2, 4)}
    for curve in curves.values():
        assert list(curve) == list(curves[1])
        assert list(curve.values()) == pytest.approx(list(curves[1].values()), rel=LOSS_TOLERANCE)


@pytest.mark.exhaustive
def test_twenty_kills_at_random_moments_change_nothing(tmp_path):
    kills, steps = 20, 60
    wanted, _ = train(tmp_path / "undisturbed", 2, "pair", steps)
    got, err = train(tmp_path / "killed", 2, "pair", steps, kills, latest_s=8.0)
    assert err.count("was killed by SIGKILL") == kills
    assert got == wanted  # to the bit
    taken, sums = batches(tmp_path / "killed")
    assert sums == batches(tmp_path / "undisturbed")[1]
    assert len(taken) > 3 and max(t[0] for t in taken.values()) > 0  # killed while training, and gone on from there
    # What went into the last parameters: of each start the steps before the one at which a later start went on.
    kept: list[int] = []
    for start in sorted(taken):
        assert taken[start] == list(range(taken[start][0], taken[start][0] + len(taken[start])))
        kept = [step for step in kept if step < taken[start][0]] + taken[start]
    assert kept == list(range(steps))  # none lost, none twice
