"""`DataLoader`: batches of a dataset, fetched in this process or by worker processes.

    loader = DataLoader(images, batch_size=64, shuffle=True, num_workers=4)
    for x, y in loader:
        ...

Its batches depend on `sbpjax.manual_seed` alone: not on the number of workers, nor on their speed. Workers are
new processes without JAX (`sbpjax.data.loading.worker_main`), so no device is shared and none is forked.

    state = loader.state_dict()                # anywhere in an epoch
    loader.load_state_dict(state)              # the next loop resumes after the last batch
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sbpjax._core import naming
from sbpjax._core.runtime.signature_errors import explain_arguments
from sbpjax._core.runtime.user_line import warn
from sbpjax.errors import DataError, WorkerModuleError, message

from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .fetcher import IterFetcher, MapFetcher, seed_both
from .pool import Pool
from .positions import Parts
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed, start_order


class _Endless(Sampler):
    """Indices for a dataset that is iterated over: they are ignored."""

    def __iter__(self) -> Iterator:
        while True:
            yield None


class _MakeFetcher:
    """Makes the fetcher of a dataset, here or in a worker."""

    def __init__(self, iterable: bool, batched: bool, collate: Callable, drop_last: bool) -> None:
        self.iterable, self.batched, self.collate, self.drop_last = iterable, batched, collate, drop_last

    def __call__(self, dataset: Any) -> Any:
        if self.iterable:
            return IterFetcher(dataset, self.batched, self.collate, self.drop_last)
        return MapFetcher(dataset, self.batched, self.collate)


@explain_arguments
class DataLoader:
    """Batches of a dataset.

    Args:
        dataset: a `Dataset`, or anything with ``__getitem__`` and ``__len__``; or an `IterableDataset`.
        batch_size: samples per batch; None gives the samples themselves.
        shuffle: in a random order.
        sampler: yields the indices in order.
        batch_sampler: yields the lists of indices of the batches.
        num_workers: the number of worker processes; 0 fetches in this process.
        collate_fn: makes a batch of a list of samples.
        pin_memory: transfer the next batch to the device before it is requested.
        drop_last: leave out a last batch that is shorter.
        timeout: seconds to wait for a batch from the workers; 0 for ever.
        worker_init_fn: called with its number in each worker.
        multiprocessing_context: for PyTorch's spelling: workers are always new processes.
        generator: a `sbpjax.Generator` for the order and the seeds; the default one if not given.
        prefetch_factor: batches in work per worker, 2 if not given.
        persistent_workers: keep the workers from one epoch to the next.
        pin_memory_device: for PyTorch's spelling.
        in_order: for PyTorch's spelling: batches always come in order.

    Raises:
        ValueError: arguments that exclude each other.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable | None = None,
        batch_sampler: Iterable | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self._iterable = isinstance(dataset, IterableDataset)
        _require(num_workers >= 0, f"num_workers={num_workers}", "num_workers option should be non-negative", "0")
        _require(timeout >= 0, f"timeout={timeout}", "timeout option should be non-negative", "timeout=0")
        ok = num_workers > 0 or prefetch_factor is None
        rule = "prefetch_factor option could only be specified in multiprocessing; let num_workers > 0"
        _require(ok, f"prefetch_factor={prefetch_factor}", rule, "num_workers=2")
        rule = "persistent_workers option needs num_workers > 0"
        _require(num_workers > 0 or not persistent_workers, "persistent_workers=True", rule, "num_workers=2")
        name = multiprocessing_context if isinstance(multiprocessing_context, str) else "spawn"
        rule = "multiprocessing_context option should specify a valid start method"
        _require(name in ("fork", "spawn", "forkserver"), f"multiprocessing_context={name!r}", rule, "'spawn'")
        if self._iterable:
            rule = "DataLoader with IterableDataset: expected unspecified shuffle, sampler and batch_sampler options"
            _require(not shuffle and sampler is None and batch_sampler is None, "one of them", rule, "shuffle=False")
        rule = "sampler option is mutually exclusive with shuffle"
        _require(sampler is None or not shuffle, f"shuffle={shuffle}", rule, "shuffle=False")
        if batch_sampler is not None:
            rule = "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            ok = batch_size == 1 and not shuffle and sampler is None and not drop_last
            _require(ok, f"batch_size={batch_size}, drop_last={drop_last}", rule, "batch_sampler alone")
            batch_size = None
        elif batch_size is None:
            rule = "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            _require(not drop_last, "drop_last=True", rule, "drop_last=False")
        self.dataset, self.batch_size, self.num_workers, self.drop_last = dataset, batch_size, num_workers, drop_last
        self.pin_memory, self.timeout, self.worker_init_fn = pin_memory, timeout, worker_init_fn
        self.multiprocessing_context, self.generator = multiprocessing_context, generator
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers, self.pin_memory_device, self.in_order = persistent_workers, pin_memory_device, in_order
        if sampler is None and batch_sampler is None:
            sampler = self._default_sampler(bool(shuffle))
        self.sampler: Any = sampler
        if batch_size is not None:
            batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.batch_sampler: Any = batch_sampler
        self._batched = batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if self._batched else default_convert)
        self._pool: Pool | None = None
        self._iterator: _Iterator | None = None
        self._resume: dict[str, Any] | None = None
        self._epochs = 0
        self._numbers = self._parts().numbers()

    def _default_sampler(self, shuffle: bool) -> Sampler:
        if self._iterable:
            return _Endless()
        return RandomSampler(self.dataset, generator=self.generator) if shuffle else SequentialSampler(self.dataset)

    @property
    def _indices(self) -> Any:
        return self.batch_sampler if self._batched else self.sampler

    def __len__(self) -> int:
        if not self._iterable:
            return len(self._indices)
        length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def __iter__(self) -> Iterator:
        self._iterator = _Iterator(self, self._take_resume())
        return self._iterator

    def _started_pool(self, seed: int) -> Pool:
        if self._pool is not None:
            return self._pool
        job = {"dataset": self.dataset, "iterable": self._iterable, "init": self.worker_init_fn}
        job["fetcher"] = self._make_fetcher()
        assert self.prefetch_factor is not None
        pool = Pool(job, self.num_workers, self.prefetch_factor, self.timeout, seed)
        if self.persistent_workers:
            self._pool = pool
        return pool

    def _make_fetcher(self) -> _MakeFetcher:
        return _MakeFetcher(self._iterable, self._batched, self.collate_fn, self.drop_last)

    def close(self) -> None:
        """End the workers that persist."""
        if self._pool is not None:
            self._pool.end()
            self._pool = None

    # -- going on later --------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the loader: the state at the beginning of its epoch, and the number of batches given.

        The state is the seeds, and the states of the samplers and generators of the order, see
        `sbpjax.data.loading.positions`. A loader that cannot resume warns here, and raises in `load_state_dict`.
        """
        if self._iterator is None:
            if self._resume is not None:
                return self._resume
            state = {"batches": 0, "seed": None, "parts": self._parts().begin(self._numbers)}
        else:
            state = self._iterator.state_dict()
        reason = self._resume_obstacle()
        if reason:
            warn(message("DataLoader.state_dict()", *reason))
            state["impossible"] = reason
        return state | {"generator": self._generator_state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Resume, in the next loop, after the batches that were given when `state_dict` was taken.

        Raises:
            DataError: this is the state of another loader, or of one that cannot resume.
        """
        missing = {"batches", "seed", "generator"} - set(state_dict)
        rule = f"missing keys {sorted(missing)}"
        _require(not missing, f"keys {sorted(state_dict)}", rule, "the result of DataLoader.state_dict()")
        if state_dict.get("impossible"):
            raise DataError("DataLoader.load_state_dict(state)", *state_dict["impossible"])
        self._parts().check(state_dict.get("parts", {}))
        self._resume, self._iterator = dict(state_dict), None

    def _resume_obstacle(self) -> tuple[str, str, str] | None:
        """Return the reason why the loader cannot resume, as the parts of an error, or None."""
        once = [part for part in (self.batch_sampler, self.sampler, self.dataset) if isinstance(part, Iterator)]
        if once and self._epochs > 1:
            seen = f"{self._epochs} loops over an iterator, a {type(once[0]).__name__}, which goes on from loop to loop"
            rule = "a loader goes on later with samplers that start anew in every epoch, or have a state_dict"
            return seen, rule, "a class with __iter__, such as sbpjax.utils.data.Sampler"
        if not (self._iterable and self.persistent_workers and self._pool is not None):
            return None
        held = Parts({"dataset": self.dataset}, (self.generator,)).names()
        if not held:
            return None
        seen = f"{', '.join(held)}, of which each persistent worker has a copy that goes on from epoch to epoch"
        rule = "a loader goes on later where positions and generators are in this process, or start anew in every epoch"
        return seen, rule, "persistent_workers=False, or num_workers=0"

    def _parts(self) -> Parts:
        """Return the objects that determine the loader's order."""
        roots = {"dataset": self.dataset} if self._iterable else {}
        return Parts(roots | {"batch_sampler": self.batch_sampler, "sampler": self.sampler}, (self.generator,))

    def _generator_state(self) -> Any:
        return None if self.generator is None else self.generator.get_state().tolist()

    def _take_resume(self) -> dict[str, Any] | None:
        state, self._resume = self._resume, None
        if state is None:
            return None
        if self.generator is not None and state["generator"] is not None:
            self.generator.set_state(state["generator"])
        if state["seed"] is None:
            self._parts().resume(state.get("parts", {}))
            return None
        return state


class _Iterator:
    """One epoch."""

    def __init__(self, loader: DataLoader, resume: dict[str, Any] | None) -> None:
        self._loader = loader
        loader._epochs += 1
        self._given = 0
        self._seed = draw_seed(loader.generator) if resume is None else resume["seed"]
        self._parts = loader._parts()
        resumed = {} if resume is None else resume.get("parts", {})
        self._parts.resume(resumed)
        self._begun = self._parts.begin(loader._numbers) | (
            {"default": resumed["default"]} if "default" in resumed else {}
        )
        skipped = 0 if resume is None else resume["batches"]
        with self._parts.replay_draws(resumed):
            self._indices = start_order(loader._indices, 0 if loader._iterable else skipped)
        self._ahead: collections.deque[Any] = collections.deque()
        self._pool = self._start_pool() if loader.num_workers else None
        self._fetcher: Any = None
        self._number = 0 if loader._iterable else skipped
        if self._pool is not None:
            self._pool.begin(functools.partial(next, self._indices), self._seed, 0 if loader._iterable else skipped)
        for _ in range(skipped if loader._iterable else 0):
            self._fetch()
        self._given = skipped

    def _start_pool(self) -> Pool | None:
        """Return the workers; None in a program of PyTorch's whose dataset holds modules, as torchvision's transforms.

        Such a program finds its batches in this process: workers have no JAX to run modules.
        """
        try:
            return self._loader._started_pool(self._seed)
        except WorkerModuleError as error:
            if not naming.is_torch():
                raise
            self._loader.num_workers = 0
            warn(f"{error}\nThe batches are made in this process.")
            return None

    def __iter__(self) -> _Iterator:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        try:
            batch = self._ahead.popleft() if self._ahead else self._fetch()
        except StopIteration:
            self._end()
            raise
        self._given += 1
        if self._loader.pin_memory and self._pool is not None and self._pool.is_ready():
            try:
                self._ahead.append(self._fetch())
            except StopIteration:
                pass
        return batch

    def _fetch(self) -> Any:
        if self._pool is not None:
            return self._pool.next()
        index = next(self._indices)
        number, self._number = self._number, self._number + 1
        with seed_both(self._seed, number):
            if self._fetcher is None:
                self._fetcher = self._loader._make_fetcher()(self._loader.dataset)
            return self._fetcher.fetch(index)

    def _end(self) -> None:
        if self._loader._iterator is self:
            self._loader._iterator = None
        if self._pool is not None and not self._loader.persistent_workers:
            self._pool.end()

    def state_dict(self) -> dict[str, Any]:
        parts = self._begun | self._parts.seeds()
        return {"batches": self._given, "seed": self._seed, "parts": parts}


def _require(ok: bool, seen: str, rule: str, fix: str) -> None:
    if not ok:
        raise DataError("DataLoader(...)", seen, rule, fix)
