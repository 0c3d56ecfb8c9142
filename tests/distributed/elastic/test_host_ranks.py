"""Ranks of a host: their environment, their lease, and their ends."""

import asyncio
import signal
import time
from pathlib import Path

import pytest

from sbpjax.distributed import launch
from sbpjax.distributed.elastic.epochs import Epoch, Host
from sbpjax.distributed.elastic.host_ranks import HostRanks
from tests.distributed.elastic.simulated import run

EPOCH = Epoch(3, (Host(0, "a", "h0:1", 3), Host(4, "a", "h4:1", 2)), nonce="n", master="10.0.0.1:77")


@pytest.fixture
def make(tmp_path):
    made = []

    def start(text, lease_s=60.0, epoch=EPOCH, options=()):
        words = [*options, "--nproc_per_node", "2", "--no_python", "sh", "-c", f"cd {tmp_path}; {text}"]
        ranks = HostRanks(launch.parser().parse_args(words), b"k" * 32, "h4:1")
        made.append(ranks)
        ranks.extend(time.monotonic() + lease_s)
        ranks.start(epoch, epoch.hosts[1])
        return ranks

    yield start
    for ranks in made:
        run(ranks.stop(0.0))
        ranks.close()


def wait(ranks, limit_s=30):
    deadline = time.monotonic() + limit_s
    while ranks.poll()[1]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return ranks.poll()[0]


def test_environment(make, tmp_path, monkeypatch):
    monkeypatch.setenv("SBPJAX_JOB_SECRET_FILE", "/no")
    names = "$MASTER_ADDR:$MASTER_PORT $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $NODE_SIZE $RESTART_COUNT"
    text = f'echo "{names} $SBPJAX_JOB_EPOCH" > $RANK; echo $SBPJAX_JOB_SECRET$SBPJAX_JOB_SECRET_FILE > secret$RANK'
    assert wait(make(text)) is None
    assert (tmp_path / "3").read_text() == "10.0.0.1:77 3/5 0/2 2 2 3\n"
    assert (tmp_path / "4").read_text() == "10.0.0.1:77 4/5 1/2 2 2 3\n"
    first = (tmp_path / "secret3").read_text()
    assert len(first) == 65 and first == (tmp_path / "secret4").read_text()
    other = Epoch(4, EPOCH.hosts, nonce="n", master=EPOCH.master)
    assert wait(make(text, epoch=other)) is None and (tmp_path / "secret3").read_text() != first


def test_ranks_have_the_absolute_paths_of_the_files_of_tls(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--tls_cert", "host.pem", "--tls_key", "host.key", "--tls_ca", "/ca/job.pem")
    assert wait(make("echo $SBPJAX_JOB_TLS > tls$RANK", options=options)) is None
    assert (tmp_path / "tls3").read_text() == f"{tmp_path}/host.pem:{tmp_path}/host.key:/ca/job.pem\n"


def test_ranks_and_their_children_end_when_the_lease_is_not_extended(make, tmp_path):
    begun = time.monotonic()
    ranks = make("trap '' TERM; sleep 100 & echo $! > child$RANK; wait", 2.0)
    assert wait(ranks)[1] == -signal.SIGKILL and 1.5 < time.monotonic() - begun < 20
    for rank in (3, 4):
        stat = Path("/proc", (tmp_path / f"child{rank}").read_text().strip(), "stat")
        while stat.exists() and stat.read_text().split()[2] != "Z":
            assert time.monotonic() - begun < 20
            time.sleep(0.01)


def test_a_lease_that_is_extended(make):
    ranks = make("sleep 3", 2.0)
    ranks.extend(time.monotonic() + 60)
    assert wait(ranks) is None


def test_stop_gives_time_to_save_and_no_more(make, tmp_path, capfd):
    ranks = make("trap 'touch saved$RANK; [ $RANK = 3 ] && exit 75' TERM; touch up$RANK; while :; do sleep 0.05; done")
    while len(list(tmp_path.glob("up*"))) < 2:
        time.sleep(0.01)
    begun = time.monotonic()
    asyncio.run(ranks.stop(2.0))
    assert len(list(tmp_path.glob("saved*"))) == 2 and 1.5 < time.monotonic() - begun < 20
    assert ranks.poll() == (None, False) and "exited" not in capfd.readouterr().err


def test_the_failure_of_a_rank_is_reported(make, capfd):
    ranks = make("[ $RANK = 4 ] && echo broken >&2 && exit 9; sleep 100")
    while ranks.poll()[0] is None:
        time.sleep(0.01)
    assert ranks.poll() == ((4, 9), True)
    asyncio.run(ranks.stop(0.0))
    err = capfd.readouterr().err
    assert "rank 4" in err and "exited with code 9" in err and "    broken" in err


def test_two_jobs_with_one_secret_keep_their_snapshots_apart():
    options = launch.parser().parse_args(["train.py"])
    made = [HostRanks(options, b"k" * 32, address) for address in ("h4:1", "h4:2", "h4:1")]
    try:
        first, other, again = [ranks.snapshots for ranks in made]
    finally:
        for ranks in made:
            ranks.close()
    assert first == again != other
