"""Calls that PyTorch refuses, made of good ones: what a user does wrong, for every op that has a spec.

    wrong("add", Call((x, y), {}))
      "text for 0"     add("bogus", y)
      "size of 1"      add(x, y of other sizes)
      "keyword"        add(x, y, bogus_option=1)

PyTorch says which of them are wrong, and by which builtin class. `outcome` runs one in both libraries and says what
came of it: a value where PyTorch refuses, an error that is not of PyTorch's class, or one that is not told in four
parts.

    python -m tests.op_specs.misuse            # the counts over all ops, and a line for each call that is not good
    python -m tests.op_specs.misuse 0 4        # the same of the first of four shares

A call that both libraries refuse compiles nothing here, so the sweep over all ops takes half a minute on one core.
Ops that PyTorch lacks are compared with a function that has their values; of its errors only the four
parts count.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import sys
import warnings
from collections.abc import Iterator

import numpy as np

from sbpjax.errors import SbpjaxError
from tests.op_specs.engine import SPECS, Spec
from tests.op_specs.engine.cases import draw
from tests.op_specs.engine.libraries import Local, Torch
from tests.support.generate import Call, Input

# PyTorch 2.13 ends its process: it reads memory that is not the pivots' (a segmentation fault, a corrupted heap).
CRASHES = {("lu_unpack", "more dims for 1"), ("linalg.ldl_solve", "more dims for 2")}
GOOD, SILENT, CLASS, RAW = "good", "a value", "another class", "not told in four parts"


def wrong(call: Call) -> Iterator[tuple[str, Call]]:
    """Yield changed calls with a name for each change; some of them may still be right."""
    args, kwargs = call.args, call.kwargs
    yield "keyword", Call(args, {**kwargs, "bogus_option": 1})
    yield "no arguments", Call((), {})
    yield "too many", Call((*args, *([object()] * 9)), kwargs)
    for i, value in enumerate(args):
        for name, changed in _changed(value):
            yield f"{name} for {i}", Call((*args[:i], changed, *args[i + 1 :]), kwargs)
    for key, value in kwargs.items():
        for name, changed in _changed(value):
            yield f"{name} for {key}", Call(args, {**kwargs, key: changed})


def _changed(value) -> Iterator[tuple[str, object]]:
    if isinstance(value, Input):
        yield "text", "bogus"
        yield "an object", _THING
        yield "sizes", _sized(value, tuple(n + 1 for n in value.shape))
        yield "a last size", _sized(value, (*value.shape[:-1], value.shape[-1] + 3) if value.ndim else (2,))
        yield "0 dims", _sized(value, ())
        yield "more dims", _sized(value, (2, 3, *value.shape))
        for dtype in ("float32", "int64", "bool", "complex64"):
            if dtype != value.dtype:
                yield dtype, Input(np.ones(value.shape, dtype), "", False)
    elif isinstance(value, bool):
        yield "text", "bogus"
    elif isinstance(value, int):
        yield "a large number", 99
        yield "a negative number", -99
        yield "text", "bogus"
        yield "a float", 2.5
    elif isinstance(value, float):
        yield "text", "bogus"
    elif isinstance(value, str):
        yield "other text", "bogus"
        yield "a number", 3
    elif isinstance(value, (list, tuple)):
        yield "text", "bogus"
        yield "an empty list", type(value)()
        yield "a list of objects", type(value)([_THING])
        if value and all(isinstance(v, int) for v in value):
            yield "large numbers", type(value)([99] * len(value))
            yield "negative numbers", type(value)([-99] * len(value))
            yield "one more", type(value)([*value, 1])


_THING = object()


def _sized(value: Input, shape: tuple[int, ...]) -> Input:
    return Input(np.resize(np.asarray(value.value), shape).astype(value.base.dtype), "", value.grad)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of one wrong call.

    Attributes:
        kind: `GOOD`, `SILENT`, `CLASS` or `RAW`.
        wanted: PyTorch's error.
        got: the error or the value here.
    """

    kind: str
    wanted: Exception
    got: object

    def words(self) -> str:
        """Return a line that says it."""
        got = f"{type(self.got).__name__}: {self.got}" if isinstance(self.got, Exception) else repr(self.got)
        wanted = f"{builtin_of(self.wanted).__name__}: {str(self.wanted)[:80]!r}"
        return f"{self.kind}; wanted {wanted}; got {got[:100]!r}"


def outcome(spec: Spec, call: Call, ours: Local, peer: Torch) -> Outcome | None:
    """Return what came of a call that PyTorch refuses, None for one that it accepts or does not have."""
    theirs = spec.function(peer, of_peer=True)
    if theirs is None:
        return None
    wanted = _attempt(theirs, call, peer)
    if not isinstance(wanted, Exception):
        return None
    got = _attempt(spec.function(ours), call, ours)
    own = spec.reference is not None  # what it refuses, and by which class, is nobody's rule
    if not isinstance(got, Exception):
        return None if own else Outcome(SILENT, wanted, got)
    if not isinstance(got, SbpjaxError) or not all(f"\n  {part}:" in str(got) for part in ("seen", "rule", "fix")):
        return Outcome(RAW, wanted, got)
    return Outcome(GOOD if own or isinstance(got, builtin_of(wanted)) else CLASS, wanted, got)


def builtin_of(error: Exception) -> type:
    """Return the class of an error that a program can name without importing PyTorch."""
    return next(c for c in type(error).__mro__ if getattr(builtins, c.__name__, None) is c)


def _attempt(function, call: Call, library) -> object:
    try:
        args, kwargs, _ = library.build(call, grad=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)
    except Exception as error:
        return error


def sweep(names) -> Iterator[tuple[str, str, Outcome]]:
    """Yield the op, the change and the outcome of every wrong call of ops."""
    ours, peer = Local(), Torch()
    for name in names:
        drawn = draw(SPECS[name], "forward", 0)
        for what, call in wrong(drawn[1]) if drawn is not None else ():
            by_name = what in ("keyword", "no arguments", "too many") or what.endswith(" for 0")
            if (name, what) in CRASHES or (name.startswith("Tensor.__") and by_name):  # nobody calls x[i] by its name
                continue
            found = outcome(SPECS[name], call, ours, peer)
            if found is not None:
                yield name, what, found


def ops(share: int = 0, of: int = 1) -> list[str]:
    """Return the names of all ops, or of one share of them."""
    return [name for name, spec in SPECS.items() if not spec.alias_of][share::of]


def main() -> None:
    """Print what came of all wrong calls."""
    counts: collections.Counter[str] = collections.Counter()
    for name, what, found in sweep(ops(*map(int, sys.argv[1:3]))):
        counts[found.kind] += 1
        if found.kind != GOOD:
            print(f"{name} | {what} | {found.words()}")
    print(dict(counts))


if __name__ == "__main__":
    main()
