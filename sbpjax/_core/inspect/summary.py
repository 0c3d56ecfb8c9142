"""`summary`: the modules of a model with their results, parameters, layouts and bytes, before anything runs.

    >>> print(sbpjax.summary(model, x))
    Sequential on sbpjax.placement(type="cpu", ranks=[0, 1])

                kind        shape          sbp  parameters  bytes per device
    (model)     Sequential  float32[4, 8]  S1           40              96 B
      0         Linear      float32[4, 8]  S1           40              96 B
        weight  parameter   float32[8, 4]  S0           32              64 B
        bias    parameter   float32[8]     B             8              32 B
      1         ReLU        float32[4, 8]  S1            0               0 B

    40 parameters, 40 of them trained; 96 B of parameters and buffers per device

The shape and sbp of a module are those of its result. Bytes are of parameters and buffers, as stored on one device:
padding and the copies that a `broadcast` holds are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import fork_rng
from sbpjax._core.tensor.dispatch.abstract import empty
from sbpjax._core.tensor.storage.payload import Snapshot, payload, payload_metadata, substitute_payload
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.signature import as_tensor
from sbpjax.errors import GraphTypeError
from sbpjax.nn.module import Module
from sbpjax.sbp import algebra

from .display import DisplayedReport, Table, bytes_text

_HEAD = ("", "kind", "shape", "sbp", "parameters", "bytes per device")


@dataclass(frozen=True)
class Row:
    """A module, a parameter or a buffer.

    Attributes:
        name: its dotted name, empty for the model.
        kind: the class of a module, ``"parameter"``, ``"buffer"``.
        shapes: dtype and shape of the tensor, of a module those of its results; empty if it was not called.
        sbps: the nd-sbp of each, empty for a local tensor.
        parameters: how many numbers the parameters have; those of a shared one count where it is first met.
        bytes: the size of its parameters and buffers on one device.
        note: other facts: ``"shared"``, ``"frozen"``, ``"× 3"`` calls.
    """

    name: str
    kind: str
    shapes: tuple[str, ...] = ()
    sbps: tuple[str, ...] = ()
    parameters: int = 0
    bytes: int = 0
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table."""
        depth = self.name.count(".") + 1 if self.name else 0
        name = "  " * depth + (self.name.rpartition(".")[2] or "(model)")
        kind = f"{self.kind} {self.note}".rstrip()
        sbps = ", ".join(self.sbps if len(set(self.sbps)) > 1 else self.sbps[:1])
        return name, kind, ", ".join(self.shapes), sbps, f"{self.parameters:,}", bytes_text(self.bytes)


@dataclass(frozen=True, repr=False)
class Summary(DisplayedReport):
    """The modules of a model: print it, or show it in a notebook.

    Attributes:
        title: the model's class and its placement.
        rows: a `Row` per module, parameter and buffer, in the order of ``named_modules``.
        trained: how many numbers the parameters have that require grad.
    """

    title: str
    rows: tuple[Row, ...]
    trained: int

    @property
    def parameters(self) -> int:
        """How many numbers the parameters have."""
        return self.rows[0].parameters

    @property
    def bytes(self) -> int:
        """The bytes of parameters and buffers on one device."""
        return self.rows[0].bytes

    def _blocks(self) -> Iterable[Any]:
        yield self.title
        faint = [i for i, row in enumerate(self.rows) if row.kind in ("parameter", "buffer")]
        yield Table([row.cells() for row in self.rows], _HEAD, right=(4, 5), faint=faint)
        held = f"{bytes_text(self.bytes)} of parameters and buffers per device"
        yield f"{self.parameters:,} parameters, {self.trained:,} of them trained; {held}"


def summary(model: Module, *args: Any, **kwargs: Any) -> Summary:
    """Return the modules of a model with their results, parameters, sbp and bytes per device; nothing runs.

    The forward is called on tensors without data, in evaluation mode, and leaves the model as it was.

    Args:
        model: the model, its tensors local, global, or without data.
        *args: example arguments of its forward: tensors, `TensorSpec`, `jax.ShapeDtypeStruct`, other values; without
            any the results are left out.
        **kwargs: the same by name.

    Returns:
        A `Summary`, with a row per module, parameter and buffer.

    Raises:
        GraphTypeError: `model` is no module.
        DataDependentError: the forward needs the value of a tensor.

    Example:
        >>> print(sbpjax.summary(sbpjax.nn.Linear(2, 3), sbpjax.ones(4, 2)))  # doctest: +NORMALIZE_WHITESPACE
        Linear on one device
        <BLANKLINE>
                  kind       shape          sbp  parameters  bytes per device
        (model)   Linear     float32[4, 3]                9              36 B
          weight  parameter  float32[3, 2]                6              24 B
          bias    parameter  float32[3]                   3              12 B
        <BLANKLINE>
        9 parameters, 9 of them trained; 36 B of parameters and buffers per device
    """
    if not isinstance(model, Module):
        seen, rule = f"a {type(model).__name__}", "a summary is of an nn.Module"
        raise GraphTypeError("summary(model, ...)", seen, rule, "sbpjax.summary(graph.model.to(nn.Module), x)")
    results = _record_calls(model, args, kwargs) if args or kwargs else {}
    seen: set[int] = set()
    rows = tuple(_rows("", model, results, seen))
    places = list(dict.fromkeys(t.layout.placement for t in _tensors(model) if t.layout is not None))
    where = " and ".join(map(repr, places)) or "one device"
    trained = sum(math.prod(p.shape) for p in model.parameters() if p.requires_grad)
    return Summary(f"{type(model).__name__} on {where}", rows, trained)


def _record_calls(model: Module, args: tuple, kwargs: dict) -> dict[int, list]:
    """Return by the id of a module the results of its calls, of a forward on tensors without data."""
    leaves, structure = tree.flatten((args, kwargs))
    args, kwargs = tree.unflatten(structure, [_without_data(as_tensor(leaf)) for leaf in leaves])
    found: dict[int, list] = {}

    def note(module: Module, _: Any, output: Any) -> None:
        found.setdefault(id(module), []).append([x for x in tree.flatten(output)[0] if isinstance(x, Tensor)])

    tensors = State(model).tensors
    before = [Snapshot(t) for t in tensors]
    modes = [(module, module.training) for module in model.modules()]
    with ExitStack() as undone:
        for module, mode in modes:
            undone.callback(setattr, module, "training", mode)
            undone.callback(module.register_forward_hook(note).remove)
        for tensor, snapshot in zip(tensors, before, strict=True):
            undone.callback(snapshot.put_back, tensor)
            substitute_payload(tensor, payload(_without_data(tensor)), tensor.layout)
        undone.enter_context(fork_rng())
        undone.enter_context(no_grad())
        model.eval()
        model(*args, **kwargs)
    return found


def _without_data(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    layout = leaf.layout
    return empty(
        tuple(leaf.shape), payload_metadata(leaf).dtype, *(() if layout is None else (layout.placement, layout.sbp))
    )


def _rows(name: str, module: Module, results: dict[int, list], seen: set[int]) -> Iterator[Row]:
    """Yield the row of a module, then those of its tensors and of the modules in it."""
    calls = results.get(id(module), [])
    note = "shared" if id(module) in seen else f"× {len(calls)}" if len(calls) > 1 else ""
    inside: list[Row] = []
    if id(module) not in seen:
        seen.add(id(module))
        for kind, table in (("parameter", module._parameters), ("buffer", module._buffers)):
            for own, tensor in table.items():
                if tensor is not None:
                    inside.append(_row(f"{name}.{own}" if name else own, kind, tensor, seen))
        for own, child in module._modules.items():
            if child is not None:
                inside += _rows(f"{name}.{own}" if name else own, child, results, seen)
    shapes, sbps = _describe_tensors(calls[0] if calls else [])
    depth = name.count(".") + 1 if name else 0
    direct = [row for row in inside if row.name.count(".") == depth]
    parameters, held = sum(row.parameters for row in direct), sum(row.bytes for row in direct)
    yield Row(name, type(module).__name__, shapes, sbps, parameters, held, note)
    yield from inside


def _row(name: str, kind: str, tensor: Tensor, seen: set[int]) -> Row:
    shapes, sbps = _describe_tensors([tensor])
    if id(tensor) in seen:
        return Row(name, kind, shapes, sbps, note="shared")
    seen.add(id(tensor))
    count = math.prod(tensor.shape) if kind == "parameter" else 0
    note = "frozen" if kind == "parameter" and not tensor.requires_grad else ""
    return Row(name, kind, shapes, sbps, count, _on_device(tensor), note)


def _describe_tensors(tensors: list[Tensor]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return dtype and shape of tensors, and the nd-sbp of those that are global."""
    shapes = tuple(f"{t.dtype.name}{list(t.shape)}" for t in tensors)
    return shapes, tuple(algebra.nd_name(t.layout.codes) for t in tensors if t.layout is not None)


def _on_device(tensor: Tensor) -> int:
    """Return the bytes of a tensor on one device, padding included."""
    shape = tuple(tensor.shape) if tensor.layout is None else tensor.layout.local_shape
    return math.prod(shape) * payload_metadata(tensor).dtype.itemsize


def _tensors(model: Module) -> Iterator[Tensor]:
    yield from model.parameters()
    yield from model.buffers()
