"""Atomic state updates: a program takes the arrays of tensors and its results replace them, all or none.

Between the run of a program with donated inputs and the assignment of its results, the old arrays
are gone and no tensor holds the new ones. Ctrl-C, a signal handler that raises (a time limit, SIGTERM as
`SystemExit`) and exceptions from another thread come between two Python instructions. So there are none: the
run and all assignments are one chain of iterators, and one call into C exhausts it.

    parameters, moments, step count of device 0 ─ run ─ assign ┐
    parameters, moments, step count of device 1 ─ run ─ assign ┴ one call: all of the next step, or nothing

Tensors whose write needs Python (a view of a tensor, a layer's slice of a stack with other views) are not donated
(`plan_writes` returns None): the program runs, and if the writing is interrupted the old values are put back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat, starmap
from operator import add
from typing import Any

from sbpjax._core.compiler.launch import Launcher
from sbpjax._core.jax_private import ArrayImpl
from sbpjax._core.runtime.processes import raise_for_ranks

from ..creation.generator import Generator
from ..handle.mode import mode
from ..handle.tensor import LOCAL, PLACED, Tensor
from .storage import base_of, steps_of, storage_of

_HERE = frozenset((LOCAL, PLACED))
_ARRAYS = frozenset((ArrayImpl,))
_FIRST = (0,)
# Of the slots themselves: `setattr` would look them up by name each time.
_set_array, _set_version = vars(Tensor)["_array"].__set__, vars(Tensor)["_ver"].__set__

# An object, the name of an attribute, its new value.
Assignment = tuple[Any, str, Any]


def commit(*steps: Iterable) -> None:
    """Exhaust iterators, one after the other, in one call into C."""
    deque(chain.from_iterable(steps), maxlen=0)


def make_assigner(assignments: Sequence[Assignment]) -> Iterator:
    """Return an iterator that assigns attributes."""
    return starmap(setattr, assignments)


def advance_counter(generator: Generator) -> Iterator:
    """Return an iterator that advances a generator's counter, for a program that drew from it."""
    stream = generator.trace
    owner, name = ((generator,), ("_drawn",)) if stream is None else ((stream,), ("drawn",))
    return map(setattr, owner, name, map(add, map(getattr, owner, name), (1,)))


class Plan:
    """Writes of a program's future results into tensors, as iterators that run no Python.

    Attributes:
        targets: the tensors that get the first arrays; only their versions change besides.
        versions: those versions.
        known: other assignments whose values are known before the arrays.
        late: objects and attributes that get an array, with its number.
    """

    __slots__ = ("known", "late", "targets", "versions")

    def __init__(self, targets: Sequence[Tensor] = (), versions: Sequence[int] = ()) -> None:
        self.targets, self.versions = targets, versions
        self.known: list[Assignment] = []
        self.late: list[tuple[Any, str, int]] = []

    def steps(self, arrays: list) -> list[Iterator]:
        """Return iterators that write arrays; the list may be filled just before the first of them is read."""
        found: list[Iterator] = [
            map(_set_array, self.targets, arrays),
            map(_set_version, self.targets, self.versions),
        ]
        if self.late:
            owners, names, places = zip(*self.late)
            found.append(map(setattr, owners, names, map(arrays.__getitem__, places)))
        if self.known:
            found.append(make_assigner(self.known))
        return found

    def add(self, x: Tensor, place: int, layout: Any) -> bool:
        """Add the write of one future array into a tensor; return whether that needs no Python."""
        if mode.touch is not None:
            mode.touch(x)
        if x._cell is not None:
            return self._add_cell(x, place, layout)
        self.late.append((x, "_array", place))
        self.known.append((x, "_ver", x._ver + 1))
        self._add_layout(x, layout)
        return True

    def _add_layout(self, x: Tensor, layout: Any) -> None:
        if x._layout is not layout or x._kind not in _HERE:
            self.known += [(x, "_layout", layout), (x, "_kind", LOCAL if layout is None else PLACED)]

    def _add_cell(self, x: Tensor, place: int, layout: Any) -> bool:
        """Add the write of a whole storage; return whether the tensor shows all of it, as the only target."""
        cell = storage_of(x)
        if cell is None or steps_of(x) or base_of(x) is not None:
            return False
        if any(owner is cell for owner, _, _ in self.late):
            return False
        if x._meta is not None and x._meta.data_alias:
            return False
        stamp, version = cell.stamp + 1, cell.version + 1
        self.late += [(cell, "array", place), (x, "_array", place)]
        self.known += [(cell, "layout", layout), (cell, "stamp", stamp), (cell, "version", version)]
        self.known += [(x, "_seen", stamp), (x, "_ver", version)]
        self._add_layout(x, layout)
        return True


def next_versions(targets: Sequence[Tensor]) -> list[int]:
    """Return the versions of tensors that share no storage after one more write."""
    return [x._ver + 1 for x in targets]


def plan_writes(targets: Sequence[Tensor], layouts: Sequence | None = None) -> Plan | None:
    """Return the plan that writes arrays of the tensors' shapes into them; None if that needs Python.

    Args:
        targets: the tensors.
        layouts: the layouts of the arrays; all are local if none are given.
    """
    if mode.touch is None:
        versions: list[int] = []
        # These loops run over all of a model's state before every step.
        if layouts is None:
            for x in targets:
                if x._cell is not None or x._layout is not None or x._kind != LOCAL:
                    break
                versions.append(x._ver + 1)
            else:
                return Plan(targets, versions)
        else:
            for x, layout in zip(targets, layouts):
                if x._cell is not None or x._layout is not layout or x._kind not in _HERE:
                    break
                versions.append(x._ver + 1)
            else:
                return Plan(targets, versions)
    plan = Plan()
    for i, (x, layout) in enumerate(zip(targets, repeat(None) if layouts is None else layouts)):
        if not plan.add(x, i, layout):
            return None
    return plan


def put_all(tensors: Sequence[Tensor], arrays: Sequence, layouts: Sequence | None = None, *also: Iterable) -> None:
    """Write arrays into tensors, see `payload.put`; all of them or none.

    Args:
        tensors: the tensors.
        arrays: one for each of them.
        layouts: their layouts; all are local if none are given.
        also: iterators that are exhausted in the same call into C.
    """
    plan = plan_writes(tensors, layouts) if _ARRAYS.issuperset(map(type, arrays)) else None
    if plan is not None:
        commit(*plan.steps(list(arrays)), *also)
        return

    def write() -> None:
        for x, array, layout in zip(tensors, arrays, repeat(None) if layouts is None else layouts):
            x._set(array, layout)

    write_atomically(tensors, write, *also)


def write_atomically(tensors: Sequence[Tensor], write: Callable[[], Any], *also: Iterable) -> None:
    """Call a function that writes into tensors, and put their old values back if it raises.

    Args:
        tensors: the tensors.
        write: the function; the arrays that the tensors hold must live on.
        also: iterators that are exhausted when it has returned.
    """
    before = make_assigner([part for x in tensors for part in _held_attributes(x)])
    done: list = []
    try:
        write()
        commit(*also, map(done.append, (True,)))
    except BaseException:
        if not done:
            commit(before)
        raise


def _held_attributes(x: Tensor) -> Iterator[Assignment]:
    """Return the attributes that a write into a tensor may change: its own, its base's and their storage's."""
    for owner in (x, base_of(x)):
        for part in (owner, owner._cell, owner._meta) if owner is not None else ():
            names = [name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())]
            yield from ((part, name, getattr(part, name)) for name in names if name[:2] != "__" and hasattr(part, name))


class ComputedResults:
    """In the place of a program's launcher: results that are there before the exchange.

    Args:
        results: the arrays.
    """

    __slots__ = ("call",)
    ready = (True,)

    def __init__(self, results: list) -> None:
        self.call = results.copy  # C, with no Python in which an interrupt could be raised

    def is_ready(self, args: Sequence) -> bool:
        return True


class Run:
    """One program's part of an exchange.

    Args:
        launcher: the program, or its results.
        inputs: its arguments.
        plan: how its first results are written.

    Attributes:
        outs: its results, as soon as it has run.
    """

    __slots__ = ("_after", "inputs", "launcher", "outs", "plan")

    def __init__(self, launcher: Launcher | ComputedResults, inputs: Sequence, plan: Plan) -> None:
        self.launcher: Any = launcher
        self.inputs = () if launcher.__class__ is ComputedResults else inputs
        self.plan = plan
        self.outs: list = []
        self._after: Callable[[], None] | None = None

    def steps(self, fast: bool) -> list[Iterable]:
        """Return iterators that run the program and write its results."""
        outs = self.outs
        if fast:
            found: list = [map(outs.extend, starmap(self.launcher.call, (self.inputs,)))]
        else:
            found, self._after = self.launcher.prepare_call(self.inputs, outs)
        # Ends the exchange with an IndexError if the program was not ready: nothing of it has run, nor runs now.
        found.append(map(outs.__getitem__, _FIRST))
        return found + self.plan.steps(outs)

    def finish(self) -> None:
        """Run the launcher's final callback when the new arrays are assigned."""
        if self._after is not None:
            self._after()
            self._after = None


def exchange(*runs: Run, also: Callable[[], Iterable] | None = None, done: list | None = None) -> None:
    """Run programs that take arrays of tensors, and write their results: all in one call into C.

    If one of them fails, those before it have run and are written, and none after it.

    Args:
        runs: the programs, in order.
        also: makes an iterator that is exhausted after them, in the same call.
        done: a list that gets an entry, in the same call.
    """
    if len(runs) == 1 and runs[0].launcher.ready:
        # The usual case: a step of a small model takes 0.1 ms.
        (run,) = runs
        outs = run.outs
        try:
            steps: list[Iterable] = [*run.plan.steps(outs)]
            if also is not None:
                steps.append(also())
            if done is not None:
                steps.append(map(done.append, _FIRST))
            first = map(outs.extend, starmap(run.launcher.call, (run.inputs,)))
            deque(chain(first, map(outs.__getitem__, _FIRST), *steps), maxlen=0)
            return
        except IndexError:
            if outs:
                raise
    held = None
    done = [] if done is None else done
    for _ in range(2):
        try:
            if not done:
                _exchange([run for run in runs if not run.outs], also, done)
            break
        except BaseException as error:
            # A program that proved not ready runs Python between two runs; an interrupt there is raised at the end.
            if held is not None or not (done or any(run.outs for run in runs)):
                if isinstance(error, Exception):
                    raise_for_ranks(error)  # a lost process appears as an error of the runtime
                raise
            held = error
    for run in runs:
        run.finish()
    if held is not None:
        raise held


def _exchange(runs: list[Run], also: Callable[[], Iterable] | None, done: list) -> None:
    for attempt in range(3):
        # A program that is ready for other arguments misses; the second attempt finds it ready if it has run with
        # these.
        steps = [run.steps(attempt < 2 and run.launcher.is_ready(run.inputs)) for run in runs]
        if also is not None:
            steps.append([also()])
        try:
            commit(*chain.from_iterable(steps), map(done.append, _FIRST))
            return
        except IndexError:
            runs = [run for run in runs if not run.outs]
            if attempt == 2:
                raise
