"""`Graph._repr_html_`: a graph in a notebook, one fold per module, with the sbp of every op.

A fold holds a module's own tensors, its inputs and outputs, its ops in program order (forward and backward) with the
strategy that the plan chose, and the modules inside it. The page is self-contained: no script, no file from outside.
"""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple

from sbpjax._core.programs.normalise import source_line
from sbpjax.graph.program.module_names import Names
from sbpjax.sbp import algebra

from .display import Table, as_html, bytes_text
from .graph_text import phases

_MOST = 200  # ops shown per module
_STYLE = (
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
    own = graph._g
    program = None if own.latest is None else own.latest[1]
    ops = {} if program is None else _ops(program, Names(graph))
    moved: dict[str, int] = {}
    if program is not None and program.plan is not None:
        names = Names(graph)
        for boxing in program.plan.boxings:
            path = names.place(boxing.scope, with_op=False).module
            moved[path] = moved.get(path, 0) + boxing.bytes
    parts = [_STYLE, '<div class="sbpjax">', f"<b>{escape(graph.name)}</b> ({escape(type(graph).__name__)})"]
    parts.append(f"<div>{escape(_about(program))}</div>")
    shown: set[str] = set()
    for name, module in own.blocks.items():
        parts.append(_module(name, module, program, ops, moved, shown, is_open=True))
    for path in ops:
        if path not in shown:
            parts.append(_fold(path or "(no module)", "", [_table(ops[path])], moved.get(path, 0), len(ops[path])))
    return "".join([*parts, "</div>"])


def _about(program: Any) -> str:
    if program is None:
        return "not built yet: call it, or compile it for abstract arguments"
    where = "one device" if program.placement is None else repr(program.placement)
    moved = "" if program.plan is None else f"; {bytes_text(program.plan.bytes)} moved per device and step"
    return f"on {where}; {phases(program)}{moved}"


def _module(path: str, module: Any, program: Any, ops: dict, moved: dict, shown: set, *, is_open: bool = False) -> str:
    shown.add(path)
    body = []
    rows = [
        (kind, name, f"{t.dtype}{list(t.shape)}", _layout_text(t))
        for kind, table in (("parameter", module._parameters), ("buffer", module._buffers))
        for name, t in table.items()
        if t is not None
    ]
    if rows:
        body.append(as_html(Table(rows)))
    if path in ops:
        body.append(_table(ops[path]))
    for name, child in module._modules.items():
        if child is not None:
            body.append(_module(f"{path}.{name}", child, program, ops, moved, shown))
    about = f"{type(module).__name__}({'' if module._modules else module.extra_repr()})"
    inside = sum(len(found) for p, found in ops.items() if p == path or p.startswith(f"{path}."))
    count = sum(b for p, b in moved.items() if p == path or p.startswith(f"{path}."))
    return _fold(path, about, body, count, inside, is_open=is_open)


def _fold(path: str, about: str, body: list[str], moved: int, count: int, *, is_open: bool = False) -> str:
    note = f" · {count} ops" * bool(count) + f" · {bytes_text(moved)} moved" * bool(moved)
    head = f"<summary><b>{escape(path)}</b> {escape(about)}<span class='b'>{escape(note)}</span></summary>"
    return f"<details{' open' * is_open}>{head}{''.join(body)}</details>"


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
