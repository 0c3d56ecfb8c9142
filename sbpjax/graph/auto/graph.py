"""Auto parallelism of a graph: chooses free tensors of its state, and converts them to the planned layouts.

    self.config.enable_auto_parallel(True)                      # the state is on a placement, broadcast
    self.config.enable_auto_parallel(True, placement=p)         # the state is local: an ordinary model

A tensor of the state (parameter, buffer, optimizer state) is *free* if it is local, or broadcast on every axis: it has
no layout of the user's. One with ``weight.to_global(sbp=split(0))`` has, and keeps it, except with
``enable_auto_parallel_ignore_user_sbp_config(True)``. The program is planned with free tensors as free inputs, an
updated one coming back in its input layout; then `AbstractState.lay_out` converts them, once. So ``param.sbp`` is right
afterwards, in eager code too.

A tensor that a plan has laid out stays so: it is marked, and later programs of this and of other graphs (another batch
size, an evaluation) take it as it is, or two programs would convert the model back and forth. `release` takes the marks
away, `keep` sets them: so a broadcast can be insisted on.

In such a program a local tensor is the logical value: an ordinary model makes constants that know no placement. Local
arguments are laid out as the plan likes in every call; if all arguments are local, the results are.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sbpjax._core.compiler import conversions
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.storage.payload import Snapshot, payload, put, refresh_tensor, substitute_payload
from sbpjax.errors import GraphConfigError, OutOfMemoryError
from sbpjax.graph.module_proxy import _options, checkpoints_of, note_options
from sbpjax.graph.program.slots import StateSlot
from sbpjax.nn.containers import ModuleList, Sequential
from sbpjax.sbp import Layout
from sbpjax.sbp.abstract import of_layout
from sbpjax.sbp.algebra import B, shift_splits
from sbpjax.sbp.hierarchies import Hierarchies
from sbpjax.sbp.layout import layout_of
from sbpjax.sbp.placement import placement as Placement

log = logging.getLogger("sbpjax.graph")

# A tensor's layout if it is to be taken as it is, or `_FREE`.
_MARK = "_laid_by_plan"
_FREE = "free"


@dataclass(frozen=True)
class Auto:
    """The options of auto parallelism in `GraphConfig`; part of a program's key.

    Attributes:
        placement: the target of a local state, or devices whose grid is to be chosen; None if the state is on its
            placement already.
        ignore_user: whether layouts that the user gave to state and intermediate values are given up.
        user_plan: a `sbpjax.graph.auto.plan_file.Sharding` whose layouts are pinned.
    """

    placement: Placement | Hierarchies | None = None
    ignore_user: bool = False
    user_plan: Any = None

    @contextlib.contextmanager
    def tracing(self):
        """Take local tensors as logical values within the block, and drop `to_global` if the user is ignored."""
        before, mode.auto = mode.auto, self
        try:
            yield
        finally:
            mode.auto = before

    def is_free(self, t: Tensor) -> bool:
        """Return whether the planner may choose the layout of a tensor of the state; a local one was not requested."""
        layout = t.layout
        mark = t.__dict__.get(_MARK)
        # The mark is the layout that was chosen: a later conversion by the user overrides it, and the mark is void.
        if layout is None or not layout.shape or mark is layout:
            return False
        return self.ignore_user or mark is _FREE or all(c == B for c in layout.codes)


def keep(tensors: Iterable[Tensor]) -> None:
    """Mark global tensors as laid out for good: planners take them as they are."""
    for t in tensors:
        t.__dict__[_MARK] = t.layout


def release(tensors: Iterable[Tensor]) -> None:
    """Let the next plan choose the layouts of tensors, regardless of the present ones."""
    for t in tensors:
        t.__dict__[_MARK] = _FREE


class AbstractState:
    """Local tensors of a state as global ones without data, within the block in which a program is made of them."""

    def __init__(self, tensors: Sequence[Tensor], placement: Placement | None) -> None:
        self._layouts: dict[int, Layout] = {}
        self._saved: list[tuple] = []
        if placement is None:
            return
        everywhere = (B,) * len(placement.hierarchy)
        for t in tensors:
            if refresh_tensor(t).layout is None:
                array = payload(t)
                self._layouts[id(t)] = layout_of(placement, everywhere, tuple(array.shape), array.dtype)
                self._saved.append((t, Snapshot(t)))

    def __enter__(self) -> AbstractState:
        for t, _ in self._saved:
            layout = self._layouts[id(t)]
            substitute_payload(t, of_layout(layout), layout)
        return self

    def __exit__(self, *exc) -> None:
        for t, saved in self._saved:
            saved.put_back(t)

    def lay_out(self, tensors: Sequence[Tensor], chosen: dict[int, Layout]) -> None:
        """Convert tensors of the state to the layouts of a program, and mark them.

        Args:
            tensors: the state.
            chosen: position in the state → its layout; local tensors without one become broadcast.
        """
        stood = {i: self._layouts[id(t)] for i, t in enumerate(tensors) if id(t) in self._layouts}
        for i, layout in {**stood, **chosen}.items():
            t = tensors[i]
            if t.layout is None:
                put(t, *conversions.from_logical(payload(t), layout.placement, layout.sbp))
            elif t.layout is not layout:
                put(t, *conversions.convert(payload(t), t.layout, layout.placement, layout.sbp))
        keep(tensors[i] for i in {*stood, *chosen})


def layouts_of_slots(slots: Sequence[StateSlot], chosen: dict[int, Layout]) -> dict[int, Layout]:
    """Return position in the state → layout, for slots of which a plan has chosen the layout.

    Args:
        slots: the slots of a program.
        chosen: number of a slot → its layout; of a stack, the layout of its tensors is one dim less.
    """
    found = {}
    for number, layout in chosen.items():
        places = slots[number].places
        if len(places) > 1:
            layout = layout_of(layout.placement, shift_splits(layout.codes, -1), layout.shape[1:], layout.dtype)
        found.update(dict.fromkeys(places, layout))
    return found


def check_arguments(operation: str, placement: Placement | None, tensors: Sequence[Tensor]) -> None:
    """Refuse local arguments of a program on devices of several processes.

    Raises:
        GraphConfigError: there is one.
    """
    local = [t for t in tensors if t.layout is None and t.ndim]
    if placement is not None and placement.spans_processes and local:
        raise GraphConfigError(
            operation,
            f"a local argument {local[0].dtype.name}{list(local[0].shape)} on {placement!r}",
            "a local argument is the whole value, and every process has its own",
            "x.to_global(placement, sbp.split(0))",
        )


def equal_layers(graph: Any) -> list[Any]:
    """Return the options of the equal layers of a graph that have most parameters and no checkpoint policy yet.

    Layers are the modules of one class in a `ModuleList` or `Sequential` with two or more of them.
    """
    found: list[tuple[int, list]] = []
    set_already = checkpoints_of(graph)
    for name, block in graph._g.blocks.items():
        for path, module in block.named_modules(prefix=name):
            if not isinstance(module, (ModuleList, Sequential)):
                continue
            kinds: dict[type, list] = {}
            for key, child in module.named_children():
                if child not in set_already and any(True for _ in child.children()):
                    kinds.setdefault(type(child), []).append((f"{path}.{key}", child))
            found += [
                (sum(p.numel() for _, layer in layers for p in layer.parameters()), layers)
                for layers in kinds.values()
                if len(layers) > 1
            ]
    if not found:
        return []
    layers = max(found, key=lambda entry: entry[0])[1]
    return [_options(graph, path, layer) for path, layer in layers]


def checkpoint_first_layers(layers: Sequence[Any], count: int) -> None:
    """Checkpoint the first layers, whose activations wait longest for the backward, and no others.

    Args:
        layers: the result of `equal_layers`.
        count: how many.
    """
    for i, each in enumerate(layers):
        each._activation_checkpointing = True if i < count else None
    note_options()


def checkpoint_to_fit(name: str, layers: Sequence[Any], made: Callable[[], tuple]) -> tuple:
    """Call ``made``; if its program does not fit into memory, or only slowly, checkpoint as many layers as is fastest.

    Args:
        name: of the graph.
        layers: the result of `equal_layers`; those that stay checkpointed are marked so.
        made: → a planned program, and its companions.

    Raises:
        OutOfMemoryError: it does not fit with all of them checkpointed either.
    """
    if not layers:
        return made()
    tried: dict[int, tuple | OutOfMemoryError] = {}

    def us_of(count: int) -> float | None:
        if count not in tried:
            checkpoint_first_layers(layers, count)
            try:
                tried[count] = made()
            except OutOfMemoryError as error:
                tried[count] = error
        found = tried[count]
        if isinstance(found, OutOfMemoryError):
            return None
        plan = found[0].plan
        # Where the limit holds nothing back, checkpoints could only cost time: nothing else is tried then.
        return 0.0 if plan is None or not count and not plan.is_held_back else plan.modelled_us

    best: int | None = None
    try:
        best = 0 if us_of(0) == 0.0 else search_checkpoint_count(us_of, len(layers))
    finally:
        checkpoint_first_layers(layers, best or 0)
    if best:
        log.warning("%s: %d of %d equal layers are checkpointed to fit into memory", name, best, len(layers))
    found = tried[len(layers) if best is None else best]
    if isinstance(found, OutOfMemoryError):
        raise found
    return found


def search_checkpoint_count(us_of: Callable[[int], float | None], count: int) -> int | None:
    """Return the number of equal layers to checkpoint, by modelled time; None if no plan fits.

    A checkpointed layer computes its forward twice; one that is not makes the rest keep to less memory. The fewest
    that fit are looked for by halves, and of all numbers tried the fastest is taken.

    Args:
        us_of: number of checkpointed layers → modelled time, None where no plan fits into the limit.
        count: how many layers there are.
    """
    known = {k: us_of(k) for k in (0, count)}
    fits, too_few = count, 0
    # If it does not fit with all of them checkpointed, no number does.
    if known[count] is not None:
        while fits - too_few > 1:
            k = (fits + too_few) // 2
            known[k] = us_of(k)
            fits, too_few = (fits, k) if known[k] is None else (k, too_few)
    found = {k: us for k, us in known.items() if us is not None}
    return min(found, key=lambda k: (found[k], k)) if found else None


def several_placements_error(operation: str, places: Iterable[Any]) -> GraphConfigError:
    """Return the error for a graph whose state is on several placements."""
    names = ", ".join(sorted(map(repr, places)))
    return GraphConfigError(
        operation,
        f"enable_auto_parallel(True) with tensors on {names}",
        "the layouts of one placement are planned as a whole; stages of a pipeline are cut by pipeline.auto_stages",
        "config.enable_auto_parallel(False), or put the state on one placement",
    )
