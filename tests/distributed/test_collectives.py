"""Collectives between four processes (two: test_together.py), and the same script with threads as ranks."""

import pytest

import sbpjax as flow
from sbpjax._core.runtime import collective_trace
from tests.distributed.running import SCRIPTS, passed


@pytest.mark.exhaustive
def test_four_processes():
    passed("collectives.py", 4)


def test_threads(capsys, monkeypatch):
    ranks = 3
    monkeypatch.setattr(collective_trace._switch, "mode", "sampled")  # the script sets another
    source = compile((SCRIPTS / "collectives.py").read_text(), "collectives.py", "exec")
    flow.simulate(ranks=ranks)(lambda: exec(source, {"__name__": "script"}))()
    assert capsys.readouterr().out.count("passed") == ranks


def test_one_process_is_a_group_of_one():
    dist = flow.distributed
    x = flow.tensor([1.0, 2.0])
    dist.all_reduce(x)
    dist.broadcast(x, src=0)
    gathered = [flow.empty(2)]
    dist.all_gather(gathered, x)
    assert x.tolist() == gathered[0].tolist() == [1.0, 2.0]
    assert (dist.get_rank(), dist.get_world_size(), dist.is_initialized()) == (0, 1, False)
    objects = [None]
    dist.all_gather_object(objects, "me")
    assert objects == ["me"]
    dist.barrier()
