"""Discrete-event simulation of a long training job: failures, stragglers, checkpoints, restarts, fewer hosts.

    >>> llama_3 = Job(hosts=2048, days=54, failures_per_day=419 / 54, policy="spare", spares=64)
    >>> 0.8 < simulate(llama_3).goodput < 0.95
    True

The job is in one of the states computing, checkpoint, restart and waiting; events end a state, and wait in a queue
ordered by time (`heapq`). A failure takes the work since the last checkpoint on disk. Some failures take a host, too,
until it is repaired. What follows is the policy:

    wait      the job waits until all hosts are back
    spare     spare hosts take the place of broken ones; it waits if there are none left
    shrink    it goes on with the hosts that are left, in whole replicas, and grows again at a checkpoint

Goodput is the work that lasts over the time: the share of a job on machines that never fail and never save.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sbpjax.errors import ConfigError

POLICIES = ("wait", "spare", "shrink")
_DAY_S = 86400.0


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training job and the machines that it runs on.

    Attributes:
        hosts: that compute.
        days: how long.
        failures_per_day: interruptions of the whole job.
        hardware_share: of these, the share that takes a host until it is repaired.
        repair_s: until a host is back.
        spares: hosts that stand by, for the policy ``"spare"``.
        policy: one of `POLICIES`.
        replica: hosts of one replica of the model, which the policy ``"shrink"`` removes at once.
        checkpoint_interval_s: computing time between two checkpoints.
        checkpoint_s: for which a checkpoint stops computing.
        write_s: until it is on disk, beside computing.
        detect_s: until a failure is noticed.
        restart_s: until the job computes again.
        stragglers_per_day: slow hosts, each of which slows the whole job.
        straggler_s: until it is found or recovers.
        straggler_slowdown: the factor on step time meanwhile.
    """

    hosts: int
    days: float = 30.0
    failures_per_day: float = 0.0
    hardware_share: float = 0.5
    repair_s: float = 4 * 3600.0
    spares: int = 0
    policy: str = "wait"
    replica: int = 1
    checkpoint_interval_s: float = 1800.0
    checkpoint_s: float = 10.0
    write_s: float = 120.0
    detect_s: float = 60.0
    restart_s: float = 300.0
    stragglers_per_day: float = 0.0
    straggler_s: float = 1800.0
    straggler_slowdown: float = 1.5

    def __post_init__(self) -> None:
        operation = f"Job(hosts={self.hosts}, policy={self.policy!r})"
        if self.policy not in POLICIES:
            raise ConfigError(operation, repr(self.policy), f"policies are {', '.join(POLICIES)}", "policy='wait'")
        if self.hosts < 1 or not 1 <= self.replica <= self.hosts or self.checkpoint_interval_s <= 0:
            seen = f"replica={self.replica}, checkpoint_interval_s={self.checkpoint_interval_s}"
            rule = "a job has hosts, replicas of at most all hosts, and time between checkpoints"
            raise ConfigError(operation, seen, rule, "replica=1, checkpoint_interval_s=1800")


@dataclass(frozen=True)
class Outcome:
    """What became of a job's time.

    Attributes:
        goodput: the share of the time that is work which lasts.
        lost: by cause, the share of the time: ``checkpoint``, ``rework``, ``restart``, ``waiting``, ``shrunk``,
            ``stragglers``. With `goodput` they add up to 1.
        failures: interruptions.
    """

    goodput: float
    lost: Mapping[str, float]
    failures: int


def simulate(job: Job, seed: int = 0) -> Outcome:
    """Return the outcome of a job.

    Args:
        job: the job.
        seed: of the failures.

    Example:
        >>> simulate(Job(hosts=8, days=1, checkpoint_s=0.0)).goodput
        1.0
    """
    run = _Run(job, random.Random(seed))
    while run.now < run.end:
        run.step()
    total = run.end
    lost = {cause: seconds / total for cause, seconds in run.lost.items() if seconds}
    return Outcome(run.work / total, lost, run.failures)


class _Run:
    """The state of a simulation."""

    def __init__(self, job: Job, rng: random.Random) -> None:
        self.job, self.rng, self.end = job, rng, job.days * _DAY_S
        self.now = self.work = self.saved = 0.0  # work in seconds of all hosts at full speed
        self.lost: dict[str, float] = defaultdict(float)
        self.state = "computing"
        self.epoch = 0  # of a restart: events of earlier ones are void
        self.broken = self.failures = self.slow = 0
        self.active = job.hosts
        self.queue: list[tuple[float, int, str, Any]] = []
        self.order = itertools.count()
        self._next_failure()
        self._next_straggler()
        self._at(job.checkpoint_interval_s, "checkpoint", self.epoch)

    def step(self) -> None:
        """Go on to the next event."""
        time, _, kind, value = heapq.heappop(self.queue) if self.queue else (self.end, 0, "", None)
        self._pass(min(time, self.end) - self.now)
        self.now = min(time, self.end)
        if self.now < self.end:
            getattr(self, f"_on_{kind}")(value)

    def _at(self, after: float, kind: str, value: Any = None) -> None:
        heapq.heappush(self.queue, (self.now + after, next(self.order), kind, value))

    def _pass(self, seconds: float) -> None:
        if self.state != "computing":
            self.lost[self.state] += seconds
            return
        share = self.active / self.job.hosts
        speed = share / (self.job.straggler_slowdown if self.slow else 1.0)
        self.work += seconds * speed
        self.lost["shrunk"] += seconds * (1.0 - share)
        self.lost["stragglers"] += seconds * (share - speed)

    def _next_failure(self) -> None:
        if self.job.failures_per_day:
            self._at(self.rng.expovariate(self.job.failures_per_day / _DAY_S), "failure")

    def _next_straggler(self) -> None:
        if self.job.stragglers_per_day:
            self._at(self.rng.expovariate(self.job.stragglers_per_day / _DAY_S), "straggler")

    def _on_failure(self, _: None) -> None:
        self.failures += 1
        self._next_failure()
        self.lost["rework"] += self.work - self.saved
        self.work = self.saved
        if self.rng.random() < self.job.hardware_share:
            self.broken += 1
            self._at(self.job.repair_s, "repair")
        self.epoch += 1
        self.state = "restart"
        self._at(self.job.detect_s + self.job.restart_s, "start", self.epoch)

    def _on_repair(self, _: None) -> None:
        self.broken -= 1
        if self.state == "waiting":
            self._on_start(self.epoch)

    def _hosts(self) -> int:
        """Return how many hosts can compute now."""
        job = self.job
        left = job.hosts + (job.spares if job.policy == "spare" else 0) - self.broken
        if left >= job.hosts:
            return job.hosts
        return left // job.replica * job.replica if job.policy == "shrink" else 0

    def _on_start(self, epoch: int) -> None:
        if epoch != self.epoch:
            return
        self.active = self._hosts()
        self.state = "computing" if self.active else "waiting"
        if self.active:
            self._at(self.job.checkpoint_interval_s, "checkpoint", epoch)

    def _on_checkpoint(self, epoch: int) -> None:
        if epoch != self.epoch:
            return
        self.state = "checkpoint"
        self._at(self.job.checkpoint_s, "resume", epoch)

    def _on_resume(self, epoch: int) -> None:
        if epoch != self.epoch:
            return
        self._at(self.job.write_s, "saved", (epoch, self.work))
        self.state = "computing"
        self._at(self.job.checkpoint_interval_s, "checkpoint", epoch)

    def _on_saved(self, value: tuple[int, float]) -> None:
        epoch, work = value
        if epoch != self.epoch:  # a write that a failure interrupted
            return
        self.saved = work
        if self._hosts() > self.active:  # it grows from the checkpoint that was just written
            self.lost["rework"] += self.work - self.saved
            self.work = self.saved
            self.epoch += 1
            self.state = "restart"
            self._at(self.job.restart_s, "start", self.epoch)

    def _on_straggler(self, _: None) -> None:
        self._next_straggler()
        self.slow += 1
        self._at(self.job.straggler_s, "recovery")

    def _on_recovery(self, _: None) -> None:
        self.slow -= 1
