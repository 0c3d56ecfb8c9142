"""Agents as processes: real signals, real ranks, and a network that is cut in two."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

from sbpjax.distributed import launch
from sbpjax.distributed.elastic import run
from sbpjax.errors import DistributedError
from tests.distributed.elastic.agents import Agents, namespaces
from tests.distributed.elastic.simulated import free_ports

KEY = b"k" * 32


def local(folder, hosts, silence_s, *options):
    return Agents(folder, [f"127.0.0.1:{port}" for port in free_ports(hosts)], silence_s, *options)


def test_a_host_is_stopped_comes_back_and_another_leaves(tmp_path):
    with local(tmp_path, 3, 3.0) as agents:
        agents.start(0, 1, 2)
        epoch = agents.trains([0, 1, 2])
        agents.signal(0, signal.SIGSTOP)  # its ranks are sessions of their own, and go on: their watchers kill them
        epoch = agents.trains([1, 2], after=epoch)
        agents.signal(0, signal.SIGCONT)
        epoch = agents.trains([0, 1, 2], after=epoch)
        agents.signal(2, signal.SIGTERM)
        assert agents.processes.pop(2).wait(30) == launch.EXIT_RESTART
        agents.trains([0, 1], after=epoch)
        assert agents.finish() == dict.fromkeys(range(2), 0)
        agents.check()


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(3))
def test_random_signals_to_launchers_never_give_two_trainings(tmp_path, seed):
    chance = random.Random(seed)
    with local(tmp_path, 4, 3.0, "--max_restarts", "1000", "--state_dir", tmp_path / "state") as agents:
        agents.start(0, 1, 2, 3)
        agents.trains(range(4))
        for _ in range(12):
            node = chance.choice(sorted(agents.processes))
            if chance.random() < 0.3:
                agents.signal(node, signal.SIGSTOP)
                time.sleep(chance.uniform(0, 8))
                agents.signal(node, signal.SIGCONT)
            elif chance.random() < 0.4:
                ranks = [file for file in agents.logs.iterdir() if file.stat().st_mtime > time.time() - 0.2]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(chance.choice(ranks).name.split("-")[0]) if ranks else 2**30, signal.SIGKILL)
            else:
                agents.signal(node, signal.SIGKILL)
                time.sleep(chance.uniform(0, 4))
                agents.start(node)
            time.sleep(chance.uniform(0, 4))
        agents.trains(range(4))
        assert agents.finish() == dict.fromkeys(range(4), 0)
        agents.check()


@pytest.mark.exhaustive
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="namespaces need root and ip")
def test_of_a_network_in_two_halves_one_trains(tmp_path):
    try:
        made = namespaces(4)
        names, addresses, cut, join = made.__enter__()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no namespaces here: {error.stderr}")
    try:
        with Agents(tmp_path, addresses, 3.0, before=lambda node: ("ip", "netns", "exec", names[node])) as agents:
            agents.start(0, 1, 2, 3)
            epoch = agents.trains([0, 1, 2, 3])
            cut()
            epoch = agents.trains([0, 1], after=epoch)
            time.sleep(8)
            assert agents.trains([0, 1]) == epoch
            join()
            epoch = agents.trains([0, 1, 2, 3], after=epoch)
            agents.signal(0, signal.SIGKILL)
            epoch = agents.trains([1, 2, 3], after=epoch)
            cut()  # 1 | 2 3
            agents.trains([2, 3], after=epoch)
            assert {agents.processes[node].poll() for node in (1, 2, 3)} == {None}
            agents.check()
    finally:
        made.__exit__(None, None, None)


def options(*words):
    given = launch.parser().parse_args([*words, "train.py"])
    given.min_hosts, given.max_hosts = 1, 2
    return given


def test_settings_of_the_options(tmp_path, monkeypatch):
    made = run.make_settings(options("--hosts", "127.0.0.1:1234,192.0.2.7", "--state_dir", str(tmp_path / "s")), KEY)
    assert (made.node, made.address, made.bind) == (0, "127.0.0.1:1234", "127.0.0.1")  # the address that is its own
    assert made.seeds == {0: "127.0.0.1:1234", 1: "192.0.2.7:29400"} and made.state_path.endswith("_node_0.json")
    assert KEY.hex() not in repr(made) and (tmp_path / "s").stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("SLURM_NODEID", "3")
    made = run.make_settings(options("--master_addr", "127.0.0.1", "--master_port", "7"), KEY)
    assert (made.node, made.seeds, made.master_port) == (3, {0: "127.0.0.1:29400"}, 7)
    assert made.address == "127.0.0.1:29400"
    made = run.make_settings(options("--node_rank", "1", "--master_addr", "host0", "--local_addr", "host1"), KEY)
    assert (made.node, made.address, made.bind) == (1, "host1:29400", "")


@pytest.mark.parametrize("words, text", [
    (("--hosts", "192.0.2.7,192.0.2.8"), "0 of the addresses"),
    (("--hosts", "127.0.0.1", "--tls_cert", "a.pem"), "--tls_ca FILE"),
    (("--hosts", "127.0.0.1", "--tls_cert", "a", "--tls_key", "b", "--tls_ca", "c"), "PEM files"),
])  # fmt: skip
def test_wrong_options(words, text):
    with pytest.raises(DistributedError, match=text):
        run.make_settings(options(*words), KEY)


@pytest.mark.parametrize("words, text", [
    (("--nnodes", "3:2"), "1 <= min <= max"),
    (("--nnodes", "1:2", "--host_timeout", "0.1"), "silent for up to a second"),
    (("--nnodes", "1:x"), "invalid"),
])  # fmt: skip
def test_wrong_counts(words, text, capsys):
    with pytest.raises(SystemExit):
        launch.main([*words, "train.py"])
    assert text in capsys.readouterr().err
