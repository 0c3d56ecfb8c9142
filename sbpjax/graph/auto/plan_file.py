"""Plan files that people edit: a Python module of names and layouts, or the same as JSON.

    HIERARCHY = (2, 4)

    PARAMETERS = {
        "model.blocks.*.up.weight": "S1,S0",  # 12 × [4096, 1024] float32
        "model.norm.weight": "B,B",  # [1024] float32
    }
    STATE = {...}
    BATCH = {...}
    ACTIVATIONS = {...}

A pattern matches all names that fit it, where equal layers have equal layouts. Every entry of the file is pinned when
it is loaded, so an edit changes its own entry and the conversions around it, and nothing else; a tensor deleted from
the file is the planner's to choose. An exact name wins over a pattern, and of two patterns the later one.

The Python form is a module: it may be imported, may compute its entries, and is run when it is loaded.
`Sharding.lay_out` brings the tensors of a model into their layouts without any planner.
"""

from __future__ import annotations

import fnmatch
import json
import runpy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sbpjax._core.planner.boundaries import Activation
from sbpjax._core.programs.plan import Codes, Plan
from sbpjax.errors import SbpError
from sbpjax.sbp import algebra

from .planning_problem import BATCH, BUFFER, PARAMETER, STATE, Input, PlanningProblem
from .rows import TensorRow, activation_rows, group_rows, unknown_name_error

_FORMAT = 1
_MOST_RANKS = 2**30
_SECTIONS = {
    PARAMETER: ("PARAMETERS", "updated by optimizers"),
    BUFFER: ("BUFFERS", "other tensors of modules"),
    STATE: ("STATE", "of optimizers"),
    BATCH: ("BATCH", "arguments of the step"),
    "activation": ("ACTIVATIONS", "results of modules"),
}


@dataclass(frozen=True)
class Sharding:
    """Names and layouts.

    Attributes:
        hierarchy: the placement's.
        axis_names: the names of its axes, in whose terms a file may give an nd-sbp: ``{"data": "S0"}``.
        entries: kind → name or pattern → nd-sbp, in the order of the file.
        notes: kind → name or pattern → the comment after it in the file.
        title: the title of the planned step.
    """

    hierarchy: tuple[int, ...]
    entries: Mapping[str, Mapping[str, Codes]]
    notes: Mapping[str, Mapping[str, str]] = field(default_factory=dict, compare=False)
    title: str = field(default="step", compare=False)
    axis_names: tuple[str, ...] | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        return hash((self.hierarchy, self._items()))

    def _items(self) -> tuple:
        return tuple((kind, tuple(table.items())) for kind, table in self.entries.items())

    def find(self, kind: str, name: str) -> Codes | None:
        """Return the nd-sbp of a name, None if it is not in the file."""
        table = self.entries.get(kind, {})
        if name in table:
            return table[name]
        fits = [codes for pattern, codes in table.items() if fnmatch.fnmatchcase(name, pattern)]
        # Of several patterns the last one counts: a file may begin with a rule, with its exceptions after it.
        return fits[-1] if fits else None

    def pins(self, problem: PlanningProblem) -> tuple[dict[int, Codes], dict[Activation, Codes]]:
        """Return the pins of inputs and activations for a step.

        Raises:
            SbpError: the file is of another hierarchy, names a tensor that the step has not, or splits a dim that a
                tensor has not.
        """
        if tuple(self.hierarchy) != problem.sizes:
            raise SbpError(
                f"the plan of {self.title}",
                f"hierarchy {tuple(self.hierarchy)} in the file, {problem.sizes} of the step",
                "a plan is of one hierarchy: an nd-sbp has one entry per axis",
                "plan anew for this placement, or edit HIERARCHY and every entry",
            )
        inputs = {i: x for i, x in enumerate(problem.inputs) if x.shape}
        every = problem.activations()
        self._check({x.kind: [] for x in inputs.values()} | _names(inputs.values(), every))
        pins = {i: x.input_codes(c) for i, x in inputs.items() if (c := self._layout_for_input(x)) is not None}
        marks = {a: c for n, a in every.items() if (c := self.find("activation", n)) is not None}
        for label, shape, codes in (
            *((inputs[i].name, inputs[i].tensor_shape, inputs[i].user_codes(c)) for i, c in pins.items()),
            *((a.name, a.shape, c) for a, c in marks.items()),
        ):
            if any(c >= len(shape) for c in codes):
                raise SbpError(
                    f"{label}: {algebra.nd_name(codes)!r} in the plan of {self.title}",
                    f"a tensor of shape {list(shape)}",
                    f"split(d) needs d < {len(shape)}",
                    "split a dim that the tensor has",
                )
        return pins, marks

    def _layout_for_input(self, x: Input) -> Codes | None:
        """Return the nd-sbp of an input; of a stack, that of all its tensors."""
        found = {n: self.find(x.kind, n) for n in x.names}
        if len(set(found.values())) > 1:
            raise SbpError(
                f"the plan of {self.title}",
                ", ".join(f"{n} {'free' if c is None else algebra.nd_name(c)}" for n, c in found.items()),
                "these layers run as one loop over stacks of their tensors, which share one layout",
                "give all of them one layout, or config.enable_block_scan(False)",
            )
        return next(iter(found.values()))

    def plan(self, problem: PlanningProblem) -> Plan:
        """Return the plan of a step with every entry of the file pinned."""
        return problem.plan(*self.pins(problem))

    def lay_out(self, model: Any, placement: Any, *, prefix: str = "") -> None:
        """Convert the parameters and buffers of a model to their layouts; tensors missing in the file are broadcast.

        Args:
            model: a module.
            placement: where to; of the file's hierarchy.
            prefix: the beginning of the names in the file, such as the graph's name for the model: ``"model"``.
        """
        start = f"{prefix}." if prefix else ""
        for kind, found in ((PARAMETER, model.named_parameters()), (BUFFER, model.named_buffers())):
            for name, tensor in list(found):
                codes = self.find(kind, start + name)
                codes = (algebra.B,) * len(self.hierarchy) if codes is None else codes
                tensor.data = tensor.data.to_global(placement, algebra.to_sbp(codes))

    def _check(self, names: dict[str, list[str]]) -> None:
        for kind, table in self.entries.items():
            known = names.get(kind, [])
            for entry in table:
                if entry not in known and not any(fnmatch.fnmatchcase(n, entry) for n in known):
                    raise unknown_name_error(entry, known, f"{_SECTIONS[kind][0]} of the plan of {self.title}")

    # -- as text -------------------------------------------------------------------------------------------------------

    def as_dict(self) -> dict:
        """Return the plan for JSON."""
        found: dict[str, Any] = {"format": _FORMAT, "title": self.title, "hierarchy": list(self.hierarchy)}
        if self.axis_names is not None:
            found["axis_names"] = list(self.axis_names)
        for kind, (section, _) in _SECTIONS.items():
            if kind in self.entries:
                found[section.lower()] = {n: algebra.nd_name(c) for n, c in self.entries[kind].items()}
        return found

    def json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(self.as_dict(), indent=2) + "\n"

    def python(self) -> str:
        """Return the plan as a Python module."""
        grid = " × ".join(map(str, self.hierarchy))
        lines = [
            f'"""Layouts of the tensors of {self.title} on {grid} ranks.',
            "",
            "S0 is split along dim 0, B broadcast, P a partial sum; one entry per axis of the placement.",
            "Edit an entry to pin it; delete one to leave it to the planner.",
            "`graph.config.set_auto_parallel_plan(file)` reads this file.",
            '"""',
            "",
            f"HIERARCHY = {tuple(map(int, self.hierarchy))}",
            *([] if self.axis_names is None else [f"AXIS_NAMES = {self.axis_names}"]),
        ]
        for kind, (section, about) in _SECTIONS.items():
            if kind not in self.entries:
                continue
            lines += ["", f"# {about}", f"{section} = {{"]
            notes = self.notes.get(kind, {})
            for name, codes in self.entries[kind].items():
                note = f"  # {notes[name]}" if notes.get(name) else ""
                lines.append(f"    {json.dumps(name)}: {json.dumps(algebra.nd_name(codes))},{note}")
            lines.append("}")
        return "\n".join(lines) + "\n"

    def save(self, path: str | Path) -> Path:
        """Write the plan to a file, ``.py`` or ``.json``."""
        path = Path(path)
        path.write_text(self.json() if _checked_suffix(path, "save") == ".json" else self.python(), encoding="utf-8")
        return path


def load(path: str | Path) -> Sharding:
    """Return the plan that a file holds; a Python file is run.

    Args:
        path: a file that `Sharding.save` or `Report.save` wrote, edited or not.

    Raises:
        SbpError: the file is no plan, or a layout in it cannot be read.
    """
    path = Path(path)
    suffix = _checked_suffix(path, "load")
    if not path.is_file():
        raise _no_plan(path, "no such file")
    if suffix == ".json":
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise _no_plan(path, f"text that is no JSON: {error}") from None
        data = {k.upper(): v for k, v in data.items()} if isinstance(data, dict) else {}
        if data.get("FORMAT", _FORMAT) != _FORMAT:
            raise _no_plan(path, f"format {data['FORMAT']}, this version reads {_FORMAT}")
    else:
        # Run, not parsed: the file is the user's own Python, and may compute its entries.
        data = runpy.run_path(str(path))
    sections = {kind: data[section] for kind, (section, _) in _SECTIONS.items() if section in data}
    if "HIERARCHY" not in data or not sections:
        raise _no_plan(path, f"the names {sorted(k for k in data if k.isupper())}")
    hierarchy = _sizes(data["HIERARCHY"], path)
    names = _axis_names(data.get("AXIS_NAMES"), hierarchy, path)
    entries = {kind: _table(table, hierarchy, names, _SECTIONS[kind][0], path) for kind, table in sections.items()}
    return Sharding(hierarchy, entries, title=str(data.get("TITLE", path.stem)), axis_names=names)


def _axis_names(names: Any, hierarchy: tuple[int, ...], path: Path) -> tuple[str, ...] | None:
    if names is None:
        return None
    found = tuple(names) if isinstance(names, (list, tuple)) else ()
    if len(found) != len(hierarchy) or len(set(map(str, found))) != len(found) or {type(n) for n in found} != {str}:
        raise _no_plan(path, f"AXIS_NAMES {str(names)[:80]}, not a name for each of {len(hierarchy)} axes")
    return found


def _sizes(hierarchy: Any, path: Path) -> tuple[int, ...]:
    sizes = tuple(hierarchy) if isinstance(hierarchy, (list, tuple)) else ()
    if not sizes or not all(type(n) is int and 0 < n <= _MOST_RANKS for n in sizes):
        raise _no_plan(path, f"HIERARCHY {str(hierarchy)[:80]}, not the sizes of a placement")
    return sizes


def _table(
    table: Any, hierarchy: tuple[int, ...], names: tuple[str, ...] | None, section: str, path: Path
) -> dict[str, Codes]:
    """Return the entries of a section."""
    if not isinstance(table, Mapping) or not all(isinstance(name, str) for name in table):
        raise _no_plan(path, f"{section} of type {type(table).__name__}, not a table of names and layouts")
    try:
        return {name: algebra.parse(sbp, hierarchy, names=names) for name, sbp in table.items()}
    except SbpError:
        raise
    except Exception as error:  # a layout may be of any type that JSON has
        raise _no_plan(path, f"a layout in {section} that cannot be read: {error}") from None


def sharding_of(problem: PlanningProblem, plan: Plan) -> Sharding:
    """Return the names and layouts of a plan, equal layers as patterns."""
    rows: list[TensorRow] = []
    for x, codes in zip(problem.inputs, plan.in_codes, strict=True):
        if x.shape and x.kind in _SECTIONS:
            rows.append(TensorRow(x.kind, x.name, x.names, x.tensor_shape, x.dtype, x.user_codes(codes)))
    entries: dict[str, dict[str, Codes]] = {}
    notes: dict[str, dict[str, str]] = {}
    names = [n for r in rows for n in r.names]
    for row in [*_split_ambiguous_rows(rows, names), *_split_ambiguous_rows(activation_rows(problem, plan), None)]:
        entries.setdefault(row.kind, {})[row.name] = row.codes
        count = f"{len(row.names)} × " if len(row.names) > 1 else ""
        notes.setdefault(row.kind, {})[row.name] = f"{count}{list(row.shape)} {row.dtype}"
    names = problem.placement.axis_names if problem.placement.named else None
    return Sharding(problem.sizes, entries, notes, problem.title, names)


def _split_ambiguous_rows(rows: list[TensorRow], names: list[str] | None) -> Iterable[TensorRow]:
    """Return rows of equal layers under a pattern that fits no other name."""
    every = [n for r in rows for n in r.names] if names is None else names
    for row in group_rows(rows) if names is not None else rows:
        others = [n for n in every if n not in row.names and fnmatch.fnmatchcase(n, row.name)]
        # A pattern that fits another tensor, too, would pin that one when the file is read.
        if len(row.names) > 1 and others:
            for name in row.names:
                yield TensorRow(row.kind, name, (name,), row.shape, row.dtype, row.codes)
        else:
            yield row


def _names(inputs: Iterable, every: Mapping[str, Activation]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"activation": list(every)}
    for x in inputs:
        found.setdefault(x.kind, []).extend(x.names)
    return found


def _checked_suffix(path: Path, operation: str) -> str:
    if path.suffix not in (".py", ".json"):
        raise SbpError(
            f"sbpjax.auto.{operation}({str(path)!r})",
            f"the ending {path.suffix!r}",
            "a plan is a Python module or JSON",
            f'"{path.stem}.py" or "{path.stem}.json"',
        )
    return path.suffix


def _no_plan(path: Path, seen: str) -> SbpError:
    return SbpError(
        f"sbpjax.auto.load({str(path)!r})",
        seen,
        "a plan has HIERARCHY and one of " + ", ".join(section for section, _ in _SECTIONS.values()),
        "write one with graph.auto_parallel_report().save(...)",
    )
