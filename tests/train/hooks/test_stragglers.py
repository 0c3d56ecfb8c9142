"""Slow ranks are named."""

import pytest

from sbpjax.errors import TrainError
from sbpjax.train import Stragglers
from sbpjax.train.hooks.stragglers import find_slow
from sbpjax.utils import host
from tests.train.cases import records, trainer


@pytest.mark.parametrize(("times", "slow"), [
    ({0: 5.0}, {}), ({0: 5.0, 1: 11.0}, {1: 2.2}), ({0: 5.0, 1: 9.0, 2: 5.0}, {}),
    ({0: 0.0, 1: 0.4}, {}), ({0: 0.0, 1: 0.0, 2: 40.0}, {2: 40000.0}),
])  # fmt: skip
def test_those_above_twice_the_median_are_slow(times, slow):
    assert find_slow(times, 2.0) == pytest.approx(slow)


def test_a_slow_rank_is_named_and_recorded(tmp_path, monkeypatch):
    made = trainer(tmp_path, hooks=[Stragglers(every=3)])
    world = host.current()
    exchange = world.exchange

    def with_two_more(operation, value, members=None):
        found = exchange(operation, value, members)
        return found | {1: [3 * value[0] + 50.0, value[1]], 2: value} if operation == "comparing step times" else found

    monkeypatch.setattr(world, "exchange", with_two_more)
    lines = []
    monkeypatch.setattr(made, "write_text", lines.append)
    made.fit()
    assert [line.split(":")[0] for line in lines if "slow" in line] == [f"at step {n} rank 1 is slow" for n in (3, 6)]
    found = records(tmp_path)
    assert [found[step]["stragglers"] for step in (3, 6)] == [1, 1]
    assert found[3]["ranks/1/data_ms"] == pytest.approx(3 * found[3]["ranks/0/data_ms"] + 50)


@pytest.mark.parametrize("options", [{"every": 0}, {"factor": 1.0}])
def test_wrong_options(options):
    with pytest.raises(TrainError, match="every is a number of steps"):
        Stragglers(**options)
