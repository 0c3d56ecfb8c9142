"""`Graph.profile`: time of a step by op and module.

    profile of Train_0, 10 steps on 4 devices: 1,843 µs per step
    share   µs per step   calls   op                     module
    31.2 %          575       4   dot_general            model.3, backward
    …
     8.0 %          147           no op of the program ran

The steps run under `jax.profiler`, which leaves a trace for TensorBoard and Perfetto. Its events carry the names of
compiled instructions; the compiled program has the op and module of each. Of an instruction that contains others (a
loop) only the time between them counts. Ops that a compiler fused go by the op that gives the result. Of several
processes each sees its own devices.
"""

from __future__ import annotations

import gzip
import json
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sbpjax._core.runtime import processes
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import creation
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.storage.payload import payload, payloads, put
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.signature import TensorSpec
from sbpjax.errors import GraphError, count_text
from sbpjax.graph.program.module_names import Names, Place

from .display import DisplayedReport, Table

_INSTRUCTION = re.compile(r'^\s*(?:ROOT )?%?([\w.-]+) = .*metadata=\{[^}]*op_name="([^"]*)"', re.MULTILINE)
_MODULE = re.compile(r"^HloModule ([\w.-]+)")
_CACHE_KEY = "jax_compilation_cache_include_metadata_in_key"


@dataclass(frozen=True)
class ModuleTime:
    """Instructions of one op in one module.

    Attributes:
        place: the op and the module.
        us: µs per step on one device, in the mean.
        calls: how often one device runs such an instruction per step.
    """

    place: Place
    us: float
    calls: float


@dataclass(frozen=True, repr=False)
class Profile(DisplayedReport):
    """Where the time of a step goes.

    Attributes:
        name: the profiled graph.
        steps: how many ran.
        devices: on how many devices of this process; none if the program's placement has none here.
        step_us: µs per step, from call to call.
        rows: by op and module, the slowest first.
        unattributed_us: µs per step in which a device ran no op of the program, in the mean: waiting for others, the
            host's work.
        directory: where the trace is.
    """

    name: str
    steps: int
    devices: int
    step_us: float
    rows: list[ModuleTime]
    unattributed_us: float
    directory: Path

    def by_module(self) -> dict[str, float]:
        """Return µs per step by module, the slowest first; ``""`` is for ops of no module."""
        found: dict[str, float] = defaultdict(float)
        for row in self.rows:
            found[row.place.module] += row.us
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def table(self, top: int = 20) -> list[tuple[str, str, str, str, str]]:
        """Return ``(share, µs per step, calls, op, module)`` of the slowest ops, then a row for the rest.

        Shares are of the time of all ops and of the unattributed time.
        """
        total = sum(row.us for row in self.rows) + self.unattributed_us or 1.0
        found = [
            (_share(r.us / total), f"{r.us:,.0f}", f"{r.calls:,.3g}", r.place.op, _module(r.place))
            for r in self.rows[:top]
        ]
        rest = self.rows[top:]
        if rest:
            us = sum(row.us for row in rest)
            found.append((_share(us / total), f"{us:,.0f}", "", f"{len(rest)} more", ""))
        left = self.unattributed_us
        return [*found, (_share(left / total), f"{left:,.0f}", "", "unattributed", "no op of the program ran")]

    def _head(self) -> str:
        where = count_text(self.devices, "device")
        steps = f"{self.steps} step{'s' * (self.steps != 1)}"
        return f"profile of {self.name}, {steps} on {where}: {self.step_us:,.0f} µs per step"

    def _blocks(self) -> Iterable[Any]:
        head = ("share", "µs per step", "calls", "op", "module")
        yield self._head(), Table(self.table(), head, right=range(3)), f"trace: {self.directory}"


def profile(graph: Any, program: Any, state: Any, arguments: list[Tensor], steps: int, directory: Any) -> Profile:
    """Run steps of a graph's program under the profiler; see `Graph.profile`."""
    if steps.__class__ is not int or steps < 1:
        raise GraphError(
            f"{graph.name}.profile(steps={steps!r})", f"{steps!r} steps", "a profile is of one step or more", "steps=10"
        )
    if program.pipeline is not None:
        raise GraphError(
            f"{graph.name}.profile",
            f"a step of {len(program.pipeline.compiled)} programs on {len(program.pipeline.stages)} stages",
            "a profile names the ops of one program that runs on one placement",
            "graph.pipeline_report() times every task of every stage",
        )
    folder = Path(tempfile.mkdtemp(prefix="sbpjax-profile-") if directory is None else directory)
    ranks = processes.current()
    if ranks.size > 1:  # processes of one host would write one file
        folder = folder / f"rank{ranks.rank}"
    named = _recompile_named(program)
    before, own = _copy_payloads(state.tensors), program._compiled
    drawn = default_generator._counter
    program._compiled = named
    try:
        _finish(program.run(state, arguments), state)
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # Python's work between steps would be timed with the tracer in it
        with jax.profiler.trace(str(folder), profiler_options=options):
            start = time.perf_counter()
            for _ in range(steps):
                result = program.run(state, arguments)
            _finish(result, state)
            step_us = (time.perf_counter() - start) * 1e6 / steps
    finally:
        program._compiled = own
        default_generator._counter = drawn
        _put_back(before)
    text = named.as_text() or ""
    events = _events(folder, text)
    devices = 1 if program.placement is None else len(program.placement.auto_mesh.local_devices)
    rows, busy_us = _rows(events, _instructions(text), Names(graph), steps, devices) if devices else ([], 0.0)
    return Profile(graph.name, steps, devices, step_us, rows, max(step_us - busy_us, 0.0), folder)


def example_arguments(program: Any) -> list[Tensor]:
    """Return tensors of zeros of the signature that a program was made for."""
    leaves, _ = tree.flatten(program.arguments)
    return [_zeros(leaf) for leaf in leaves if isinstance(leaf, TensorSpec)]


def _zeros(spec: TensorSpec) -> Tensor:
    made = creation.zeros(*spec.shape, dtype=spec.dtype, placement=spec.placement, sbp=spec.sbp)
    return made.requires_grad_() if spec.requires_grad else made


def _recompile_named(program: Any):
    """Compile anew: the cache of compiled programs knows no names, and may give the ones of another graph."""
    before = getattr(jax.config, _CACHE_KEY)
    jax.config.update(_CACHE_KEY, True)
    program.compile()  # for its other preparations

    def step(*inputs):  # a function of its own, since JAX remembers the compilation of another one
        return program.call(*inputs)

    try:
        fresh = jit_without_mesh(step, donate_argnums=tuple(1 + i for i in program.written))
        return fresh.lower(*program.structs).compile()
    finally:
        jax.config.update(_CACHE_KEY, before)


# -- the state is put back -------------------------------------------------------------------------------------------


def _copy_payloads(tensors: list[Tensor]) -> list[tuple]:
    """Return copies of payloads in the host's memory: a device may not have room for them."""
    found = []
    for t in tensors:
        array = payload(t)
        blocks = [(s.device, np.array(s.data, copy=True)) for s in array.addressable_shards]
        found.append((t, t.layout, array.aval, array.sharding, array.committed, blocks))
    return found


def _put_back(held: list[tuple]) -> None:
    for t, layout, whole, sharding, committed, blocks in held:
        if committed:
            parts = [jax.device_put(block, device) for device, block in blocks]
            array = jax.make_array_from_single_device_arrays(whole.shape, sharding, parts, dtype=whole.dtype)
        else:
            array = jax.numpy.asarray(blocks[0][1])
        put(t, array, layout)


def _finish(result: Any, state: Any) -> None:
    outs = [payload(x) for x in tree.flatten(result)[0] if isinstance(x, Tensor)]
    jax.block_until_ready([*outs, *[t for t in payloads(state.tensors) if isinstance(t, jax.Array)]])


# -- the trace ---------------------------------------------------------------------------------------------------------


def _events(folder: Path, text: str) -> list[dict]:
    """Return the events of the program's instructions in the newest trace."""
    files = sorted(folder.glob("**/*.trace.json.gz"), key=lambda p: p.stat().st_mtime)
    if not files:
        return []
    with gzip.open(files[-1]) as file:
        events = json.load(file)["traceEvents"]
    module = _MODULE.match(text)
    name = module.group(1) if module else ""
    found = []
    for event in events:
        args = event.get("args") or {}
        if event.get("ph") == "X" and "hlo_op" in args and args.get("hlo_module", name).split("(")[0] == name:
            found.append(event)
    return found


def _instructions(text: str) -> dict[str, str]:
    """Return the ``op_name`` of every instruction of a compiled program that has one."""
    return dict(_INSTRUCTION.findall(text))


def _rows(events: list[dict], names_of: dict, names: Names, steps: int, devices: int) -> tuple[list[ModuleTime], float]:
    """Return the rows, and for how many µs per step a device was busy."""
    us: dict[Place, float] = defaultdict(float)
    calls: dict[Place, int] = defaultdict(int)
    for event, own in _own_times(events):
        op = event["args"]["hlo_op"]
        place = names.place(names_of[op]) if op in names_of else Place("", op.split(".")[0], False)
        us[place] += own
        calls[place] += 1
    share = steps * devices
    rows = [ModuleTime(place, us[place] / share, calls[place] / share) for place in us]
    return sorted(rows, key=lambda row: -row.us), _busy(events) / share


def _own_times(events: list[dict]):
    """Yield every event with its duration less that of the events inside it, on its thread."""
    threads = defaultdict(list)
    for event in events:
        threads[event.get("pid"), event.get("tid")].append(event)
    for line in threads.values():
        line.sort(key=lambda e: (e["ts"], -e["dur"]))
        own = [e["dur"] for e in line]
        around: list[int] = []
        for i, event in enumerate(line):
            while around and line[around[-1]]["ts"] + line[around[-1]]["dur"] <= event["ts"]:
                around.pop()
            if around:
                own[around[-1]] -= event["dur"]
            around.append(i)
        yield from ((event, max(value, 0.0)) for event, value in zip(line, own, strict=True))


def _busy(events: list[dict]) -> float:
    """Return for how many µs the devices ran something, summed over the devices."""
    lines = defaultdict(list)
    for event in events:
        lines[event["args"].get("device_ordinal", event.get("pid"))].append((event["ts"], event["ts"] + event["dur"]))
    total = 0.0
    for spans in lines.values():
        end = float("-inf")
        for start, stop in sorted(spans):
            total += max(0.0, stop - max(start, end))
            end = max(end, stop)
    return total


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _module(place: Place) -> str:
    way = "backward" if place.backward else ""
    return ", ".join(filter(None, (place.module or "(none)", way)))
