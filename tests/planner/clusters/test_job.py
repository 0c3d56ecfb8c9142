"""Simulated jobs: shares that add up, closed forms of simple cases, policies, the published rate of Llama 3."""

import math
import statistics

import pytest

from sbpjax.errors import ConfigError
from sbpjax.plan import Job, simulate

HOUR = 3600.0


def mean(job, runs=6):
    return statistics.mean(simulate(job, seed).goodput for seed in range(runs))


def test_without_failures_only_checkpoints_cost():
    found = simulate(Job(hosts=8, days=30, checkpoint_interval_s=90.0, checkpoint_s=10.0))
    assert found.goodput == pytest.approx(0.9, abs=1e-4) and found.failures == 0


@pytest.mark.parametrize("policy", ["wait", "spare", "shrink"])
def test_shares_add_up_to_the_whole_time(policy):
    job = Job(hosts=64, failures_per_day=20, policy=policy, spares=4, replica=8, stragglers_per_day=10)
    for seed in range(5):
        found = simulate(job, seed)
        assert found.goodput + sum(found.lost.values()) == pytest.approx(1.0)
        assert 0 < found.goodput < 1 and found.failures > 300


def test_goodput_is_that_of_the_closed_form():
    """Of a Poisson process a failure costs half an interval, and detecting and restarting, to first order."""
    between, interval, save, down = 24 * HOUR, HOUR, 30.0, 600.0
    job = Job(
        hosts=100, days=100, failures_per_day=1.0, hardware_share=0.0, checkpoint_interval_s=interval,
        checkpoint_s=save, write_s=0.0, detect_s=0.0, restart_s=down,
    )  # fmt: skip
    expected = interval / (interval + save) * (1 - (interval / 2 + down) / between)
    assert mean(job) == pytest.approx(expected, abs=0.005)


def test_the_best_interval_is_youngs():
    save, between = 60.0, 2 * HOUR
    best = math.sqrt(2 * save * between)
    job = {"hosts": 100, "days": 30, "failures_per_day": 12.0, "hardware_share": 0.0, "checkpoint_s": save}
    job |= {"write_s": 0.0, "detect_s": 0.0, "restart_s": 60.0}
    found = {f: mean(Job(**job, checkpoint_interval_s=f * best), 4) for f in (0.25, 1.0, 4.0)}
    assert max(found, key=found.get) == 1.0


def test_a_checkpoint_counts_when_it_is_on_disk():
    job = {"hosts": 8, "days": 10, "failures_per_day": 24.0, "hardware_share": 0.0, "checkpoint_interval_s": 600.0}
    assert mean(Job(**job, write_s=0.0)) > mean(Job(**job, write_s=590.0)) + 0.05


def test_shrinking_beats_waiting_and_spares_beat_both():
    job = {"hosts": 64, "days": 60, "failures_per_day": 4.0, "hardware_share": 1.0, "repair_s": 6 * HOUR}
    wait, shrink, spare = (
        mean(Job(**job, policy=p, **more))
        for p, more in (("wait", {}), ("shrink", {"replica": 8}), ("spare", {"spares": 8}))
    )
    assert wait < shrink < spare


def test_stragglers_slow_the_whole_job():
    job = Job(hosts=64, days=30, stragglers_per_day=24.0, straggler_s=0.1 * HOUR, straggler_slowdown=2.0)
    # One at a time on average 0.1 of the time, so that it computes at half the speed for 1 - exp(-0.1) of it.
    assert simulate(job).lost["stragglers"] == pytest.approx(0.5 * (1 - math.exp(-0.1)), abs=0.01)


def test_llama_3_at_its_published_rate_of_interruptions():
    """419 interruptions in 54 days on 16,384 GPUs; more than 90 % effective time. The interval is an assumption."""
    job = Job(hosts=2048, days=54, failures_per_day=419 / 54, policy="spare", spares=64, checkpoint_interval_s=600)
    found = [simulate(job, seed) for seed in range(5)]
    assert statistics.mean(f.failures for f in found) == pytest.approx(419, rel=0.05)
    assert 0.90 < statistics.mean(f.goodput for f in found) < 0.97


def test_other_policies_are_refused():
    with pytest.raises(ConfigError, match="policies are wait, spare, shrink"):
        Job(hosts=8, policy="hope")
    with pytest.raises(ConfigError, match="replicas of at most all hosts"):
        Job(hosts=8, replica=16)
