"""Pool of worker processes of a loader: start, dispatch of tasks, supervision, shutdown.

A map-style dataset's next batch goes to the worker with the fewest tasks, and results are put back in order; a batch
does not depend on its worker (`sbpjax.data.loading.fetcher`). The workers of an `IterableDataset` take turns.

Workers end when their socket closes, which the operating system does for a killed training process too; those that do
not are ended by signals, or end themselves without their parent (`_core.runtime.parent_death`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import pickle
import selectors
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from sbpjax._core.runtime.user_line import full_tracebacks
from sbpjax.errors import SbpjaxError, WorkerError, WorkerModuleError, WorkerTimeoutError

from . import transport
from .host_functions import from_numpy
from .pickle_by_value import main_file, reduce_object

_END_S = 5.0  # how long a worker may take to end when its socket closes


class _JobPickler(pickle.Pickler):
    """Pickles a dataset for a worker: tensors go as their values."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.tensor = getattr(sys.modules["sbpjax"], "Tensor", ())
        self.module = getattr(sys.modules.get("sbpjax.nn"), "Module", ())  # without it no object is a module

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, self.module):
            rule = "workers have no JAX, and so no modules"
            fix = "apply the module in the training process, hold its numbers as NumPy arrays, or num_workers=0"
            seen = f"a module in the dataset or its functions: {type(obj).__name__}"
            raise WorkerModuleError("DataLoader(num_workers > 0)", seen, rule, fix)
        if isinstance(obj, self.tensor) and not isinstance(obj, type):
            return from_numpy, (np.asarray(obj.detach().numpy()),)
        return reduce_object(obj)


def _pickle_job(job: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    try:
        _JobPickler(file).dump(job)
    except WorkerError:
        raise
    except Exception as error:
        rule = f"values for worker processes are pickled: {type(error).__name__}: {error}"
        fix = "define dataset, collate_fn and worker_init_fn at the top of a module, or num_workers=0"
        raise WorkerError("DataLoader(num_workers > 0)", "dataset or functions", rule, fix) from error
    return file.getvalue()


def _main_module(job: bytes) -> tuple[str, str] | None:
    """Return where the main module is, if the workers need it: ``("module", name)`` after ``-m``, else its path."""
    if b"__main__" not in job and b"__mp_main__" not in job:
        return None
    path = main_file()
    if path is None:
        rule = (
            "of a notebook or a prompt, functions and plain classes go to the workers, but no enumerations and the like"
        )
        fix = "put it into a module beside the notebook, or num_workers=0"
        raise WorkerError("DataLoader(num_workers > 0)", "an object of a class defined in __main__", rule, fix)
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.origin is not None and os.path.abspath(spec.origin) == path:
        return "module", spec.name
    return "path", path


def _refuse_inside_a_worker() -> None:
    if "is_light" in vars(sys.modules["sbpjax"]):
        rule = "a worker imports the main script again to find the dataset in it, and must not start the training there"
        fix = "put the main program under if __name__ == '__main__':"
        raise WorkerError("DataLoader(num_workers > 0)", "a loop inside a worker process", rule, fix)


def _aliases() -> list[str]:
    """Return the names that sbpjax answers to in this process, as `torch` under `sbpjax.mock_torch`."""
    ours = sys.modules["sbpjax"]
    found = []
    for name in ("torch", "oneflow"):
        module = sys.modules.get(f"sbpjax._core.compat.{name}_alias")
        if module is not None and ours is not None and module.is_enabled():
            found.append(name)
    return found


class _Worker:
    """One process and its socket."""

    def __init__(self, process: subprocess.Popen, sock: socket.socket, views: transport.Views) -> None:
        self.process, self.sock, self.views = process, sock, views
        self.outstanding = 0
        self.ended = False

    def send(self, command: str, number: int = 0, index: Any = None, seed: int = 0) -> None:
        data = pickle.dumps((command, number, index, seed, self.views.pop_released()))
        with contextlib.suppress(ConnectionError):  # a dead worker is found out when its results are waited for
            transport.send(self.sock, data)


def _end(workers: list[_Worker], selector: selectors.BaseSelector) -> None:
    selector.close()
    for worker in workers:
        worker.sock.close()
    deadline = time.monotonic() + _END_S
    for worker in workers:
        try:
            worker.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()


def _exception_class(module: str, name: str) -> type[Exception]:
    """Return the class of a worker's exception, RuntimeError where this process has none of that name."""
    try:
        home: Any = sys.modules.get(module) or importlib.import_module(module)
        found: Any = functools.reduce(getattr, name.split("."), home)
    except Exception:  # of a module that is imported, too
        return RuntimeError
    return found if isinstance(found, type) and issubclass(found, Exception) else RuntimeError


class Pool:
    """The workers of a loader.

    Args:
        job: dataset, fetcher (a function of the dataset), init function, whether it is iterable.
        workers: the number of workers.
        ahead: the prefetch limit: batches in work per worker.
        timeout_s: how long to wait for a batch, 0 for ever.
        seed: of the random numbers while workers set up.
    """

    def __init__(self, job: dict[str, Any], workers: int, ahead: int, timeout_s: float, seed: int) -> None:
        self._iterable, self._ahead, self._timeout_s, self._seed = job["iterable"], ahead, timeout_s, seed
        _refuse_inside_a_worker()
        pickled = _pickle_job(job)
        main = _main_module(pickled)
        from .device_transfer import adopt_array  # workers load this module without JAX

        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._finish = weakref.finalize(self, _end, self._workers, self._selector)
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        path = [os.path.abspath(p) for p in sys.path]
        setup = {"path": path, "argv": sys.argv, "main": main, "job": pickled, "aliases": _aliases()}
        for number in range(workers):
            self._workers.append(self._start(root, transport.Views(adopt_array)))
            data = {**setup, "id": number, "workers": workers, "seed": seed}
            with contextlib.suppress(ConnectionError):
                transport.send(self._workers[-1].sock, pickle.dumps(data))
        self._tasks: Callable[[], Any] | None = None
        self._results: dict[int, Any] = {}
        self._owner: dict[int, _Worker] = {}
        self._next_task = self._next_result = 0
        self._exhausted = True
        self._turn = 0
        for worker in self._workers:
            worker.outstanding = 1  # its "ready"

    def _start(self, root: str, views: transport.Views) -> _Worker:
        ours, theirs = socket.socketpair()
        command = [sys.executable, os.path.join(root, "data", "loading", "worker_main.py")]
        by_main = threading.current_thread() is threading.main_thread()
        command += [str(theirs.fileno()), root, str(os.getpid()), str(int(by_main))]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        worker = _Worker(process, ours, views)
        self._selector.register(ours, selectors.EVENT_READ, worker)
        return worker

    # -- an epoch --------------------------------------------------------------------------------------------------

    def begin(self, tasks: Callable[[], Any], seed: int, first: int) -> None:
        """Start an epoch.

        Args:
            tasks: returns the next index, raises StopIteration after the last.
            seed: of the epoch.
            first: the number of the first batch.
        """
        while self._owner:  # tasks of an abandoned epoch
            self._receive()
        self._tasks, self._seed, self._exhausted = tasks, seed, False
        self._results.clear()
        self._next_task = self._next_result = first
        for worker in self._workers:
            worker.ended = False
            worker.send("epoch", seed=seed)
        self._feed()

    def _feed(self) -> None:
        """Give out tasks until every worker has enough."""
        while not self._exhausted and len(self._owner) + len(self._results) < self._ahead * len(self._workers):
            worker = self._next_worker()
            if worker is None:
                return
            try:
                assert self._tasks is not None
                index = self._tasks()
            except StopIteration:
                self._exhausted = True
                return
            number, self._next_task = self._next_task, self._next_task + 1
            self._owner[number] = worker
            worker.outstanding += 1
            worker.send("fetch", number, index, self._seed)

    def _next_worker(self) -> _Worker | None:
        if self._iterable:  # in turn, over those that have not ended
            living = [w for w in self._workers if not w.ended]
            if not living:
                self._exhausted = True
                return None
            count = len(self._workers)
            for _ in range(count):
                worker = self._workers[self._turn % count]
                self._turn += 1
                if not worker.ended:
                    return worker
        return min(self._workers, key=lambda w: w.outstanding)

    def is_ready(self) -> bool:
        """Return whether the next batch is here."""
        while self._next_result not in self._results and self._selector.select(0):
            self._receive()
        return self._next_result in self._results

    def next(self) -> Any:
        """Return the next batch; StopIteration after the last."""
        while True:
            if self._next_result in self._results:
                kind, value = self._results.pop(self._next_result)
                self._next_result += 1
                self._feed()
                if kind == "end":
                    continue
                if kind == "error":
                    raise value
                return value
            if self._next_result >= self._next_task:
                self._feed()
                if self._next_result >= self._next_task:
                    raise StopIteration
            self._receive()

    def _receive(self) -> None:
        """Wait for a message of any worker and take it."""
        ready = self._selector.select(self._timeout_s or None)
        if not ready:
            rule = f"DataLoader timed out after {self._timeout_s} seconds"
            seen = f"no batch from {len(self._workers)} workers, pids {[w.process.pid for w in self._workers]}"
            raise WorkerTimeoutError("the next batch", seen, rule, "DataLoader(..., timeout=0) waits for ever")
        for key, _ in ready:
            worker: _Worker = key.data
            try:
                data, descriptors = transport.receive(worker.sock)
            except (EOFError, ConnectionError):
                raise self._death_error(worker) from None
            kind, number, value, where = pickle.loads(data)
            worker.outstanding -= 1
            if kind == "failed":
                self.end()
                raise self._make_exception(worker, value, " while it set up")
            if kind == "ready":
                continue
            self._owner.pop(number, None)
            if kind == "batch":
                value = worker.views.unpack(value, where, descriptors)
            elif kind == "error":
                value = self._make_exception(worker, value, "")
            else:
                worker.ended = True
            self._results[number] = kind, value

    def _make_exception(self, worker: _Worker, report: tuple, when: str) -> Exception:
        """Return a worker's exception, with its traceback in the text; one in four parts needs none.

        A class that cannot be imported here, or takes other arguments than a text, becomes a WorkerError.
        """
        where, name, text, trace = report
        kind = _exception_class(*where)
        index = self._workers.index(worker)
        if issubclass(kind, SbpjaxError) and "\n  seen: " in text and not full_tracebacks():
            operation, _, rest = text.partition("\n")
            return kind(f"{operation}, in DataLoader worker process {index}{when}\n{rest}")
        text = f"Caught {name} in DataLoader worker process {index}{when}.\nOriginal {trace}"
        if issubclass(kind, KeyError):  # whose text is shown with \n for line breaks
            kind = type(kind.__name__, (kind,), {"__str__": Exception.__str__})
        with contextlib.suppress(Exception):  # its class takes other arguments, or makes another text of them
            error = kind(text)
            if text in str(error):
                return error
        seen = f"Caught {name} in DataLoader worker process {index}{when}: {report[2]}"
        rule = f"an exception is raised again as its class with one text, and {name} does not take one"
        return WorkerError("the next batch", seen, rule, f"look where it was raised.\nOriginal {trace}")

    def _death_error(self, worker: _Worker) -> WorkerError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.process.wait(1.0)
        code = worker.process.returncode
        pid = worker.process.pid
        self.end()
        seen = f"worker {self._workers.index(worker) if worker in self._workers else '?'}, exit code {code}"
        rule = f"DataLoader worker (pid {pid}) exited unexpectedly"
        rule += f", killed by signal {-code}" if code is not None and code < 0 else ""
        fix = "see what it printed; a signal 9 is often a lack of memory: fewer workers or smaller batches"
        return WorkerError("the next batch", seen, rule, fix)

    def end(self) -> None:
        """End all workers; harmless if they have ended."""
        self._finish()
