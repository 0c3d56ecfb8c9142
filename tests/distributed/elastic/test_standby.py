"""Standbys: processes that take the place of a rank, with its environment and under its lease."""

import dataclasses
import signal
import time

import pytest

from sbpjax.distributed import launch, rank_processes
from sbpjax.distributed.elastic.epochs import Epoch, Host
from sbpjax.distributed.elastic.host_ranks import HostRanks
from tests.distributed.elastic.simulated import run
from tests.distributed.elastic.test_host_ranks import wait

EPOCH = Epoch(3, (Host(4, "a", "h4:1"),), nonce="n", master="10.0.0.1:77")
SCRIPT = """
import os, sys, time
modules = [name for name in ("sbpjax.train", "ours") if name in sys.modules]
with open(f"{sys.argv[1]}/{os.getpid()}.partial", "w") as file:
    print(__name__, os.environ["SBPJAX_JOB_EPOCH"], *modules, repr(sys.stdin.read()), file=file)
os.rename(file.name, f"{sys.argv[1]}/{os.getpid()}")
time.sleep(100)
"""


@pytest.fixture
def ranks(tmp_path, monkeypatch):
    monkeypatch.setattr(rank_processes, "_STANDBY_AFTER_S", 0.0)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "ours.py").write_text("")
    words = ["--standby", "ours,no_such_module", str(tmp_path / "train.py"), str(tmp_path)]
    made = HostRanks(launch.parser().parse_args(words), b"k" * 32, "h4:1")
    yield made
    run(made.stop(0.0))
    made.close()


def start(ranks, folder, epoch):
    """Start an epoch; return the process of its rank, and the text that this wrote."""
    ranks.extend(time.monotonic() + 100)
    ranks.start(epoch, epoch.hosts[0])
    process = ranks.ranks[0].process
    path, deadline = folder / str(process.pid), time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    return process, path.read_text()


def test_a_standby_is_the_next_rank_and_ends_with_its_lease(ranks, tmp_path, capfd):
    _, text = start(ranks, tmp_path, EPOCH)
    assert text == "__main__ 3 ''\n"
    ranks.keep_standbys()
    (standby,) = ranks._standbys
    run(ranks.stop(0.0))
    process, text = start(ranks, tmp_path, dataclasses.replace(EPOCH, number=4))
    assert process is standby.process and text == "__main__ 4 sbpjax.train ours ''\n"
    assert "no_such_module cannot be imported" in capfd.readouterr().err
    ranks.extend(time.monotonic())
    assert wait(ranks) == (0, -signal.SIGKILL)


def test_a_standby_that_died_is_replaced_by_a_fresh_process(ranks, tmp_path):
    start(ranks, tmp_path, EPOCH)
    ranks.keep_standbys()
    (standby,) = ranks._standbys
    standby.process.kill()
    standby.process.wait()
    run(ranks.stop(0.0))
    process, text = start(ranks, tmp_path, dataclasses.replace(EPOCH, number=4))
    assert process.pid != standby.process.pid and text == "__main__ 4 ''\n"


def test_standbys_end_with_the_launcher(ranks, tmp_path):
    start(ranks, tmp_path, EPOCH)
    ranks.keep_standbys()
    (standby,) = ranks._standbys
    ranks.close()
    assert standby.process.wait(20) == -signal.SIGKILL
