"""`torch.utils.benchmark`: times of a statement, run until enough time has passed.

    Timer("x @ y", globals={"x": x, "y": y}).blocked_autorange().median      # seconds per run

A block of runs ends when the devices have finished, so that what is launched is timed as well.
"""

from __future__ import annotations

import statistics
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax


@dataclass
class Measurement:
    """Times of one statement.

    Attributes:
        number_per_run: how often the statement ran in each block.
        raw_times: seconds of each block.
        stmt: the statement.
        label: what it is called.
        sub_label: what this one is called among those of its label.
        description: what else there is to say.
    """

    number_per_run: int
    raw_times: list[float]
    stmt: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    num_threads: int = 1
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def times(self) -> list[float]:
        """Seconds per run, one number per block."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median of `times`."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of `times`."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance of the quartiles of `times`."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def title(self) -> str:
        """What the statement is called."""
        name = self.label or self.stmt
        return f"{name}: {self.sub_label}" if self.sub_label else name

    def __repr__(self) -> str:
        runs = f"{len(self.raw_times)} blocks of {self.number_per_run} runs"
        return f"<Measurement {self.title}: median {self.median * 1e6:.2f} us, IQR {self.iqr * 1e6:.2f} us, {runs}>"


class Timer:
    """Times a statement.

    Args:
        stmt: the statement, or a function without arguments.
        setup: what runs once before each block.
        timer: a clock, in seconds.
        globals: the names that the statement uses.
        label: what it is called.
        sub_label: what this one is called among those of its label.
        description: what else there is to say.
        options: accepted: an environment, threads and a language.
    """

    def __init__(
        self,
        stmt: str | Callable = "pass",
        setup: str | Callable = "pass",
        timer: Callable[[], float] = time.perf_counter,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        **options: Any,
    ) -> None:
        self._clock = timer
        self._timer = timeit.Timer(stmt, setup, self._now, globals)
        self._said = {
            "stmt": stmt if isinstance(stmt, str) else getattr(stmt, "__name__", repr(stmt)),
            "label": label,
            "sub_label": sub_label,
            "description": description,
        }

    def _now(self) -> float:
        jax.effects_barrier()
        for device in jax.local_devices():
            jax.device_put(0.0, device).block_until_ready()
        return self._clock()

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, **self._said)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Run the statement a number of times, after one run to warm up."""
        self._timer.timeit(1)
        return self._measured(number, [self._timer.timeit(number)])

    def _number(self, min_run_time: float) -> int:
        number = 1
        while self._timer.timeit(number) < min(min_run_time / 1000, 1e-3):
            number *= 10
        return number

    def blocked_autorange(self, callback: Callable | None = None, min_run_time: float = 0.2) -> Measurement:
        """Run blocks of many runs until a time has passed.

        Args:
            callback: called with the number of runs and the seconds of every block.
            min_run_time: that time in seconds.
        """
        number, times = self._number(min_run_time), []
        while sum(times) < min_run_time:
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: Any = None
    ) -> Measurement:
        """Run blocks until their quartiles are near each other, or a time has passed.

        Args:
            threshold: the quartiles' distance over the median.
            min_run_time: seconds to run at least.
            max_run_time: seconds to run at most.
            callback: called with the number of runs and the seconds of every block.
        """
        number, times = self._number(min_run_time), []
        while sum(times) < max_run_time:
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
            found = self._measured(number, times)
            if sum(times) >= min_run_time and len(times) > 3 and found.iqr <= threshold * found.median:
                break
        return self._measured(number, times)


class Compare:
    """Prints measurements below each other.

    Args:
        results: the measurements.
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: list[Measurement]) -> None:
        """Add measurements."""
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Do nothing: there are few as it is."""

    colorize = highlight_warnings = trim_significant_figures

    def __str__(self) -> str:
        rows = [f"{m.title[:48]:<48} {m.description or '':<24} {m.median * 1e6:>14.2f} us" for m in self._results]
        return "\n".join(rows)

    def print(self) -> None:
        """Print them."""
        print(self)
