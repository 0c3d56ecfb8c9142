"""`Graph._repr_html_`: a graph in a notebook, one fold per module, with the sbp of every op.

A fold holds a module's own tensors, its inputs and outputs, its ops in program order (forward and backward) with the
strategy that the plan chose, and the modules inside it; equal layers are one fold. The page is self-contained: no
script, no file from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from itertools import groupby
from types import MappingProxyType
from typing import Any, NamedTuple

from sbpjax._core.programs.normalise import source_line
from sbpjax.graph.program.module_names import Names
from sbpjax.sbp import algebra

from .display import Table, as_html, bytes_text
from .equal_layers import LoopedLayers
from .graph_text import phases

_MOST = 200  # ops shown per module
STYLE = (
    "<style>.sbpjax{font-family:monospace;font-size:12px}.sbpjax details{margin-left:1.2em}"
    ".sbpjax table{margin-left:1.2em;border-collapse:collapse}.sbpjax td,.sbpjax th{padding:0 .8em 0 0;"
    "text-align:left;white-space:pre}.sbpjax .b{color:#888}</style>"
)


class _Op(NamedTuple):
    name: str
    shapes: str
    strategy: str
    times: int
    line: str
    backward: bool


def page(graph: Any) -> str:
    """Return the HTML of a graph."""
    program = None if graph._g.latest is None else graph._g.latest[1]
    where, names = _about(program), Names(graph)
    head = f"<b>{escape(graph.name)}</b> ({escape(type(graph).__name__)})<div>{escape(where)}</div>"
    moved: dict[str, int] = {}
    for boxing in () if program is None or program.plan is None else program.plan.boxings:
        path = names.place(boxing.scope, with_op=False).module
        moved[path] = moved.get(path, 0) + boxing.bytes
    return f'{STYLE}<div class="sbpjax">{head}{Layers(graph, moved).html()}</div>'


def _about(program: Any) -> str:
    if program is None:
        return "not built yet: call it, or compile it for abstract arguments"
    where = "one device" if program.placement is None else repr(program.placement)
    moved = "" if program.plan is None else f"; {bytes_text(program.plan.bytes)} moved per device and step"
    return f"on {where}; {phases(program)}{moved}"


class Layers:
    """The modules of a graph as folds; equal neighbours are one fold.

    ``tables``: module → tables shown in it besides its tensors and ops.
    ``looped``: the names of layers that run as a loop; each of them shows the loop's ops.
    """

    def __init__(
        self,
        graph: Any,
        moved: Mapping[str, int],
        tables: Mapping[str, list[Table]] = MappingProxyType({}),
        notes: Mapping[str, str] = MappingProxyType({}),
        looped: LoopedLayers | None = None,
    ) -> None:
        own = graph._g
        self._roots = own.blocks
        ops = {} if own.latest is None else _ops(own.latest[1], Names(graph))
        self._ops = _ops_of_each_layer(ops, looped or LoopedLayers({}))
        self._moved, self._tables, self._notes = moved, tables, notes
        self._shown: set[str] = set()

    def html(self) -> str:
        """Return the folds of all modules, then those of optimizers and of ops outside modules."""
        parts = [self._module(name, module, is_open=True) for name, module in self._roots.items()]
        for path in dict.fromkeys((*self._ops, *self._tables)):
            if path not in self._shown:
                parts.append(self._fold(path, path or "(no module)", "", self._own_tables(path)))
        return "".join(parts)

    def _own_tables(self, path: str) -> list[str]:
        ops = [_table(self._ops[path])] if path in self._ops else []
        return [*map(as_html, self._tables.get(path, ())), *ops]

    def _module(self, path: str, module: Any, *, is_open: bool = False) -> str:
        self._shown.add(path)
        rows = [
            (kind, name, f"{t.dtype}{list(t.shape)}", _layout_text(t))
            for kind, table in (("parameter", module._parameters), ("buffer", module._buffers))
            for name, t in table.items()
            if t is not None
        ]
        body = [as_html(Table(rows))] if rows else []
        body += self._own_tables(path)
        children = {name: child for name, child in module._modules.items() if child is not None}
        texts = {name: self._module(f"{path}.{name}", child) for name, child in children.items()}
        body += _fold_equal(path, texts)
        about = f"{type(module).__name__}({'' if module._modules else module.extra_repr()})"
        return self._fold(path, path, about, body, is_open=is_open)

    def _fold(self, path: str, title: str, about: str, body: list[str], *, is_open: bool = False) -> str:
        count = sum(len(found) for p, found in self._ops.items() if _is_inside(p, path))
        moved = sum(size for p, size in self._moved.items() if _is_inside(p, path))
        note = f" · {count} ops" * bool(count) + f" · {bytes_text(moved)} moved" * bool(moved)
        note += f" · {self._notes[path]}" if path in self._notes else ""
        head = f"<summary><b>{escape(title)}</b> {escape(about)}<span class='b'>{escape(note)}</span></summary>"
        return f"<details{' open' * is_open}>{head}{''.join(body)}</details>"


def _is_inside(path: str, module: str) -> bool:
    return path == module or path.startswith(f"{module}.")


def _fold_equal(path: str, texts: Mapping[str, str]) -> Iterable[str]:
    """Yield the folds of a module's children; neighbours with numbers for names that are otherwise equal are one."""

    def without_number(name: str) -> str:
        own = escape(f"{path}.{name}")
        return texts[name].replace(f"{own}.", "*.").replace(f"{own}<", "*<") if name.isdigit() else name

    for same, names in groupby(texts, without_number):
        first, *more = names
        if more:
            own = escape(f"{path}.{first}–{more[-1]}")
            yield same.replace("*.", f"{own}.").replace("*<", f"{own}<")
        else:
            yield texts[first]


def _table(ops: list[_Op]) -> str:
    rows: list[tuple[str, ...]] = [
        (f"{op.name}{' (backward)' * op.backward}", op.shapes, op.strategy, f"× {op.times}" * (op.times > 1), op.line)
        for op in ops[:_MOST]
    ]
    if len(ops) > _MOST:
        rows.append((f"{len(ops) - _MOST} more",))
    faint = {k for k, op in enumerate(ops[:_MOST]) if op.backward}
    return as_html(Table(rows, ("op", "result", "strategy", "", "line"), faint=faint))


def _layout_text(tensor: Any) -> str:
    layout = tensor.layout
    return "" if layout is None else f"({', '.join(map(algebra.name, layout.codes))})"


def _ops(program: Any, names: Names) -> dict[str, list[_Op]]:
    """Return by module the ops of a program, those in loops too."""
    found: dict[str, list[_Op]] = {}
    if program.plan is None:
        for eqn in program.flat.eqns:
            _add(found, eqn, names, "", 1, "")
    else:
        _collect_plan(found, program.plan, names, "", 1)
    return found


def _ops_of_each_layer(ops: dict[str, list[_Op]], looped: LoopedLayers) -> dict[str, list[_Op]]:
    """Return the ops of modules with those of a loop in each of its layers, not in the one that gave them its name."""
    found: dict[str, list[_Op]] = {}
    for module, own in ops.items():
        paths = looped.paths(module)
        for path in paths:
            found.setdefault(path, []).extend(op._replace(times=-(-op.times // len(paths))) for op in own)
    return found


def _collect_plan(found: dict, plan: Any, names: Names, around: str, times: int) -> None:
    for i, eqn in enumerate(plan.program.eqns):
        if i in plan.bodies:
            inner = f"{around}/{eqn.source_info.name_stack}".strip("/")
            _collect_plan(found, plan.bodies[i], names, inner, times * eqn.params["length"])
            continue
        ins = " | ".join(map(algebra.nd_name, plan.ins(i) if eqn.invars else ()))
        outs = " | ".join(map(algebra.nd_name, plan.outs(i) if eqn.outvars else ()))
        _add(found, eqn, names, around, times, f"{ins} → {outs}")


def _add(found: dict, eqn: Any, names: Names, around: str, times: int, strategy: str) -> None:
    place = names.place(f"{around}/{eqn.source_info.name_stack}".strip("/"), with_op=False)
    shapes = ", ".join(f"{getattr(v.aval, 'dtype', '')}{list(getattr(v.aval, 'shape', ()))}" for v in eqn.outvars)
    op = _Op(eqn.primitive.name, shapes, strategy, times, source_line(eqn), place.backward)
    found.setdefault(place.module, []).append(op)
