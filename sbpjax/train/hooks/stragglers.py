"""`Stragglers`: find the rank that the others wait for.

    step 200   rank       0     1     2     3     median
               data ms    2     2     2    31     2           rank 3 is named: its disk, its workers
               probe ms   1.1   1.0   2.9   1.1   1.1         rank 2 is named: its devices, or their host

All ranks of a synchronous step take the same time, whichever is slow: the others wait in its collectives. So each rank
measures its own work: the wait for a batch, and a small product on each of its devices.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from sbpjax.errors import TrainError
from sbpjax.utils import host

from .hook import Hook

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer

_SIZE, _RUNS = 512, 3  # of the product, 0.3 GFLOP
_LEAST_MS = 1.0  # a rank that takes less holds nobody up
_multiply = host.jit_without_mesh(lambda x: x @ x)


class Stragglers(Hook):
    """Compare the ranks at regular intervals, and name those slower than twice the median.

    The times of each rank are metrics, ``ranks/RANK/data_ms`` and ``ranks/RANK/probe_ms``, as is the number of those
    that are named, ``stragglers``.

    Args:
        every: steps between two comparisons, over which times are averaged.
        factor: how many times the median a rank may take.

    Raises:
        TrainError: an option is out of its range.

    Example:
        >>> Stragglers(every=200).factor
        2.0
    """

    def __init__(self, *, every: int = 100, factor: float = 2.0):
        if every < 1 or factor <= 1:
            rule = "every is a number of steps, 1 at least, factor above 1"
            raise TrainError("Stragglers(...)", f"every={every}, factor={factor}", rule, "every=100, factor=2.0")
        self.every, self.factor = every, factor
        self._data_s = 0.0

    def before_run(self, trainer: Trainer) -> None:
        """Begin to count, and compile the product."""
        self._data_s = trainer.data_s
        probe_ms()

    def after_step(self, trainer: Trainer) -> None:
        """Compare if it is due; all processes call it."""
        if trainer.step % self.every:
            return
        trainer.loss.numpy()  # the devices are free for the product
        data_ms = (trainer.data_s - self._data_s) / self.every * 1e3
        self._data_s = trainer.data_s
        gathered = host.current().exchange("comparing step times", [data_ms, probe_ms()])
        slow = 0
        for place, name in enumerate(("data_ms", "probe_ms")):
            times = {rank: found[place] for rank, found in gathered.items()}
            trainer.record({f"ranks/{rank}/{name}": ms for rank, ms in times.items()})
            for rank, ratio in find_slow(times, self.factor).items():
                slow += 1
                trainer.write_text(
                    f"at step {trainer.step:,} rank {rank} is slow: {name} {times[rank]:.3g}, {ratio:.1f} × the median"
                )
        trainer.record({"stragglers": slow})


def find_slow(times_ms: Mapping[int, float], factor: float) -> dict[int, float]:
    """Return the ranks that take more than a multiple of the median, with their ratios to it.

    Example:
        >>> find_slow({0: 2.0, 1: 2.0, 2: 10.0}, 2.0)
        {2: 5.0}
    """
    median = max(statistics.median_low(list(times_ms.values())), 1e-3)
    return {rank: ms / median for rank, ms in times_ms.items() if ms > max(factor * median, _LEAST_MS)}


@host.hide_mesh
def probe_ms() -> float:
    """Return the time of a product on the slowest device of this process, the best of some runs."""
    slowest = 0.0
    for device in jax.local_devices():
        x = jax.device_put(jnp.ones((_SIZE, _SIZE), jnp.float32), device)
        _multiply(x).block_until_ready()
        times = []
        for _ in range(_RUNS):
            begin_s = time.perf_counter()
            _multiply(x).block_until_ready()
            times.append(time.perf_counter() - begin_s)
        slowest = max(slowest, min(times))
    return slowest * 1e3
