"""`torch.utils.benchmark`: times of a statement, until its results are there.

Timer("x @ x", globals={"x": torch.ones(64, 64)}).blocked_autorange()      # a Measurement: median, mean, iqr
"""

from __future__ import annotations

import statistics
import timeit
from dataclasses import dataclass, field
from typing import Any

import jax


@dataclass
class Measurement:
    """Times of a statement, in seconds.

    Args:
        number_per_run: how often a run executes it.
        raw_times: the time of each run.
        label: its name in tables, and those of `sub_label` and `description`.
    """

    number_per_run: int
    raw_times: list[float]
    label: str = ""
    sub_label: str | None = None
    description: str | None = None
    num_threads: int = 1
    metadata: dict = field(default_factory=dict)

    @property
    def times(self) -> list[float]:
        """Seconds of one execution, by run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """Their mean."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """Their median."""
        return statistics.median(self.times)

    @property
    def iqr(self) -> float:
        """The distance of their quartiles."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4)
        return high - low

    def __repr__(self) -> str:
        return f"<Measurement {self.label}: median {self.median * 1e6:.2f} us of {len(self.times)} runs>"


class Timer:
    """A statement to be timed.

    Args:
        stmt: the statement.
        setup: another one, run once before.
        globals: the names that they use.
        label: names of the measurement; so are `sub_label` and `description`.
        options: `num_threads` and others, accepted: XLA has a pool of threads of its own.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        *,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        **options: Any,
    ) -> None:
        self._timer = timeit.Timer(stmt, setup, globals=dict(globals or {}))
        self._names = label or stmt, sub_label, description

    def _time(self, number: int) -> float:
        start = timeit.default_timer()
        self._timer.timeit(number)
        jax.block_until_ready(jax.live_arrays())
        return timeit.default_timer() - start

    def timeit(self, number: int = 1000000) -> Measurement:
        """Return the time of `number` executions, after some that are not counted."""
        self._time(max(number // 100, 2))
        return Measurement(number, [self._time(number)], *self._names)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Return the times of runs that last `min_run_time` seconds together, after some that are not counted."""
        self._time(2)
        number = 1
        while self._time(number) < min_run_time / 100:
            number *= 10
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._time(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, *self._names)

    adaptive_autorange = blocked_autorange


class Compare:
    """A table of measurements.

    Args:
        results: the measurements.
    """

    def __init__(self, results: list[Measurement]) -> None:
        self.results = list(results)

    def extend_results(self, results: list[Measurement]) -> None:
        """Add measurements."""
        self.results.extend(results)

    def trim_significant_figures(self) -> None:
        """Do nothing: two decimals of a microsecond are printed."""

    def colorize(self, rowwise: bool = False) -> None:
        """Do nothing: the table has no colours."""

    def __str__(self) -> str:
        rows = [(m.label, m.sub_label or "", m.description or "", f"{m.median * 1e6:.2f} us") for m in self.results]
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths)) for row in rows)

    def print(self) -> None:
        """Print the table."""
        print(self)
