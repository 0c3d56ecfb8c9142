"""Calls of public functions with extreme integers: ``python -m tests.fuzz.integers FIRST COUNT [REPORT]``.

A call is drawn from an op's spec, or a layer's constructor is called, with one to three integers replaced by numbers
such as 2^62, on one device, on a placement or in a compiled function. It may return or raise. What it may not do is end
the process or keep it busy: each case is run by a child process, which writes the case's number down first. The child
has a limit of memory, since a case may ask for all of it, and of time; a case that ends a child is reported, and the
next child goes on after it. The parent starts no backend, as no process may fork after that.
"""

from __future__ import annotations

import collections
import faulthandler
import inspect
import json
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

import sbpjax as flow
from tests import xla_flags
from tests.op_specs.engine import SPECS
from tests.support.generate import Call, Gen, Input

EXTREME = (
    0, 1, -1, 2**31 - 1, 2**31, -(2**31), 2**32, 2**33, 2**40, 2**48, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30,
    -(10**30),
)  # fmt: skip
MORE_MEMORY = 3 * 2**29  # more would be filled, at a second each
CASE_SECONDS = int(os.environ.get("SBPJAX_FUZZ_SECONDS", "10"))  # of the processor
SLOW_SECONDS = 2
CHILD_CASES = 750  # each leaves a program
WAYS = ("local",) * 8 + ("placed", "compiled")
# A polynomial of degree n takes n steps of a recurrence, here as in PyTorch.
LEFT_OUT = re.compile(r"_polynomial_")


def _is_number(x) -> bool:
    return isinstance(x, int) and not isinstance(x, bool)


def numbers_in(tree, path=()):
    """Return the paths of the integers of nested lists, tuples and dicts."""
    if isinstance(tree, (list, tuple)):
        return [p for i, x in enumerate(tree) for p in numbers_in(x, (*path, i))]
    if isinstance(tree, dict):
        return [p for k, x in tree.items() for p in numbers_in(x, (*path, k))]
    return [path] if _is_number(tree) else []


def replaced(tree, path, value):
    """Return a tree with another value at a path."""
    if not path:
        return value
    if isinstance(tree, dict):
        return {k: replaced(x, path[1:], value) if k == path[0] else x for k, x in tree.items()}
    return type(tree)([replaced(x, path[1:], value) if i == path[0] else x for i, x in enumerate(tree)])


def integer_parameters(function, r) -> dict:
    """Return the names of a function's parameters that take integers, each with an example."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    found = {}
    for p in parameters:
        hint = str(p.annotation)
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.name in ("self", "out"):
            continue
        if re.search(r"\bint\b", hint) or _is_number(p.default) or p.name == "kernel_size":
            found[p.name] = r.choice((2, 3, 4))
    return found


class Case:
    """One call, drawn from its number."""

    def __init__(self, number: int) -> None:
        self.random = r = random.Random(f"integers {number}")
        self.number, self.way = number, r.choice(WAYS)
        self.call = None
        while self.call is None:  # many ops take no integers
            self.name = r.choice(NAMES)
            self.call = self._of_layer(LAYERS[self.name]) if self.name in LAYERS else self._of_op()
        if self.name in LAYERS:
            self.way = "local"

    def _of_layer(self, cls) -> Call | None:
        given = integer_parameters(cls.__init__, self.random)
        needed = [p.name for p in inspect.signature(cls.__init__).parameters.values() if p.default is p.empty]
        chosen = {k: v for k, v in given.items() if k in needed or self.random.random() < 0.2}
        return self._extreme(Call((), chosen), given)

    def _of_op(self) -> Call | None:
        spec = SPECS[self.name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call = spec.make(Gen([self.random.getrandbits(32)]))
        return None if call is None else self._extreme(call, integer_parameters(self.function(), self.random))

    def _extreme(self, call: Call, options: dict) -> Call | None:
        tree = (call.args, call.kwargs)
        free = [k for k in list(options)[len(call.args) :] if k not in call.kwargs]
        if free and self.random.random() < 0.3:
            name = self.random.choice(free)
            tree = (tree[0], {**tree[1], name: options[name]})
        paths = numbers_in(tree)
        if not paths:
            return None
        for path in self.random.sample(paths, min(len(paths), self.random.choice((1, 1, 2, 3)))):
            tree = replaced(tree, path, self.random.choice(EXTREME))
        return Call(*tree)

    def function(self):
        """Return what is called."""
        found = flow
        for part in self.name.split("."):
            found = getattr(found, part, None)
        return found

    def __str__(self) -> str:
        args = [shown(x) for x in self.call.args] + [f"{k}={shown(v)}" for k, v in self.call.kwargs.items()]
        return f"{self.number} {self.way} {self.name}({', '.join(args)})"

    def run(self) -> None:
        """Make the call and read its results."""
        from tests.op_specs.engine.libraries import Placed
        from tests.op_specs.engine.outcome import local

        library = local()
        if self.way == "placed":
            import numpy as np

            library = Placed("2", np.random.default_rng(self.number))
        args, kwargs, _ = library.build(self.call, self.random.random() < 0.3)
        function = self.function()
        if self.way == "compiled":
            tensors = [x for x in args if isinstance(x, flow.Tensor)]

            def program(tensors):
                rest = iter(tensors)
                return function(*[next(rest) if isinstance(x, flow.Tensor) else x for x in args], **kwargs)

            result = flow.compile(program)(tensors)
        else:
            result = function(*args, **kwargs)
        for t in library.tensors(result)[:4]:
            read(t)


def read(t) -> None:
    """Read a tensor, or be refused."""
    str(t)
    small = t.numel() < 2**20
    if small or t.numel() > 2**34:
        (t if small else t + 1).numpy()


def shown(x) -> str:
    """Return an argument in short."""
    if isinstance(x, Input):
        return f"{x.dtype}{list(x.base.shape)}{x.suffix}"
    if isinstance(x, (list, tuple)):
        return f"{type(x).__name__}({', '.join(map(shown, x))})"
    return repr(x)[:60]


LAYERS = {
    f"nn.{name}": cls
    for name in dir(flow.nn)
    if isinstance(cls := getattr(flow.nn, name), type) and issubclass(cls, flow.nn.Module) and cls is not flow.nn.Graph
}
NAMES = [name for name in (*sorted(SPECS), *sorted(LAYERS), *sorted(LAYERS)) if not LEFT_OUT.search(name)]


def children_run(first: int, count: int, report=None) -> dict:
    """Run cases; return how many returned, were refused or raised raw errors, and those that were slow or ended it."""
    tally: collections.Counter = collections.Counter()
    ended: list[str] = []
    slow: list[str] = []
    examples: dict[str, str] = {}
    raw: collections.Counter = collections.Counter()
    at, last = first, first + count
    while at < last:
        out, into = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(out)
            _child(at, min(last, at + CHILD_CASES), into)
        os.close(into)
        started = ""
        with os.fdopen(out, errors="replace") as lines:
            for line in lines:
                kind, _, text = line.rstrip("\n").partition("\t")
                if kind == "start":
                    started = text
                    at += 1
                    continue
                if kind == "slow":
                    slow.append(text)
                    continue
                tally[kind] += 1
                if kind == "raw":
                    raw[re.sub(r"\d+", "#", text)] += 1
                    examples.setdefault(re.sub(r"\d+", "#", text), started)
        status = os.waitpid(pid, 0)[1]
        if status:
            reason = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
            ended.append(f"{reason}\t{started}")
            tally["ended"] += 1
        if report is not None:
            found = {
                "next": at,
                "tally": tally,
                "ended": ended,
                "slow": slow,
                "raw": [(n, text, examples[text]) for text, n in raw.most_common()],
            }
            Path(report).write_text(json.dumps(found, indent=1))
    return {"tally": dict(tally), "ended": ended, "slow": slow, "raw": raw}


def _child(first: int, last: int, into: int) -> None:
    """Run cases, and write a line before and after each."""
    warnings.simplefilter("ignore")
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {xla_flags.QUICK}"
    if "SBPJAX_FUZZ_STDERR" not in os.environ:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    else:
        faulthandler.register(signal.SIGPROF, chain=True)
    write = os.fdopen(into, "w", buffering=1).write
    str(flow.zeros(2) + 1)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + MORE_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for number in range(first, last):
        case = Case(number)
        write(f"start\t{case}\n")
        signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)  # ends the process
        signal.alarm(15 * CASE_SECONDS)  # and one that waits
        kind, text, began = "returned", "", time.process_time()
        try:
            case.run()
        except Exception as error:
            own = isinstance(error, flow.errors.SbpjaxError)
            kind, text = ("refused", "") if own else ("raw", f"{case.name} {type(error).__name__}: {error}"[:200])
            text = " ".join(text.split())
            del error
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        if (took := time.process_time() - began) > SLOW_SECONDS:
            write(f"slow\t{took:.1f} s {case}\n")
        write(f"{kind}\t{text}\n")
    os._exit(0)


if __name__ == "__main__":
    try:
        found = children_run(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    print(json.dumps({k: found[k] for k in ("tally", "ended")}, indent=1))
