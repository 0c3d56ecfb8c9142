"""Capture: run a function of tensors on tracers, with the state it changes as inputs and outputs.

A training step reads parameters, writes them in place, and moves optimizer state and the random stream along. `State`
lists those tensors, puts tracers into their handles while the function is traced, reads the values that the function
left there, and puts the arrays back: a trace, even one that fails, changes nothing.

Every call checks whether a program still fits, so the check is cheap: `State.is_unchanged` compares identities (the
same tensors in the same places, the same modes), `State.infos` the avals and layouts of the payloads.
"""

from __future__ import annotations

import contextlib
import weakref
from operator import is_
from typing import Any

import jax

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.traced import as_traced, is_per_process, note_per_process
from sbpjax._core.tensor.handle.device import default_jax_device
from sbpjax._core.tensor.storage.payload import Snapshot, kept_as, payload_metadata, payloads, substitute_payload
from sbpjax._core.tensor.storage.version_counter import Fields, Group, Items, States, Table
from sbpjax.errors import GraphTypeError
from sbpjax.nn.module import Module
from sbpjax.optim.optimizer import Optimizer

_TABLES = ("_parameters", "_buffers", "_modules")
_CONTAINERS = (dict, list, tuple)
_DEPTH = 4
# The attributes of modules that programs store into in every run, see `_core.tracing.escaped_tensors`.
STORED: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()
_PLAIN = {bool, int, float, str, type(None)}


class State:
    """The tensors and numbers that a captured function may change or read anew on every call.

    Args:
        owners: modules, optimizers, loss scalers, tensors, or nested lists of them; or a dict of names to such.
        attempt: how often the state was listed for this program before, see `_core.tracing.escaped_tensors`.

    Attributes:
        tensors: every tensor once: parameters, buffers, plain attributes of modules, optimizer state.
        names: the name of each in messages.
        options: (dict, key) of the numbers.
        modules: every module once.
        optimizers: the optimizers.
        fixed: other attributes of optimizers that a program depends on.
        kept: in a trace, collects the tensors that its function keeps.
    """

    def __init__(self, owners, attempt: int = 0) -> None:
        self.attempt = attempt
        self.kept: Any = None
        self.tensors: list[Tensor] = []
        self.names: list[str] = []
        self.options: list[tuple[dict, str]] = []
        self.modules: list = []
        self.module_names: list[str] = []
        self.fixed: list = []
        self.optimizers: list = []
        self._scalers: list = []
        self._seen: set[int] = set()
        self._containers: list[Any] = []
        for name, owner in _flat("", owners):
            self._add(name, owner)
        self.fixed = [o.static_options() for o in self.optimizers]
        self._watch()

    def _add(self, name: str, owner) -> None:
        if isinstance(owner, Tensor):
            self._add_tensor(name or "a tensor", owner)
        elif hasattr(owner, "param_groups"):
            owner.prepare()
            self.optimizers.append(owner)
            # Learning rates and their like are inputs of the program: as constants, a schedule would compile it in
            # every step.
            self.options += owner.dynamic_options()
            start = name or type(owner).__name__
            for i, tensor in enumerate(p for group in owner.param_groups for p in group["params"]):
                self._add_tensor(f"{start}.param[{i}]", tensor)
            for i, tensor in enumerate(owner.state_tensors()):
                self._add_tensor(f"{start}.state[{i}]", tensor)
        elif hasattr(owner, "named_modules"):
            for path, module in owner.named_modules(prefix=name):
                self._add_module(path, module)
        elif hasattr(owner, "state_tensors"):
            self._scalers.append(owner)
            for i, tensor in enumerate(owner.state_tensors()):
                self._add_tensor(f"{name or type(owner).__name__}.state[{i}]", tensor)
        else:
            raise GraphTypeError(
                "state=",
                f"a {type(owner).__name__}",
                "state is modules, optimizers, loss scalers, tensors, or lists of them",
                "sbpjax.compile(step, state=(model, optimizer))",
            )

    def _add_module(self, path: str, module) -> None:
        self.modules.append(module)
        self.module_names.append(path)
        start = f"{path}." if path else ""
        for table in ("_parameters", "_buffers"):
            for key, tensor in module.__dict__[table].items():
                if tensor is not None:
                    self._add_tensor(start + key, tensor)
        for key, value in module.__dict__.items():
            # Unregistered tensors, such as masks and caches.
            if value.__class__ in _CONTAINERS:
                self._add_container(start + key, value)
            elif isinstance(value, Tensor) and value.is_leaf:
                self._add_tensor(start + key, value)

    def _add_container(self, name: str, container, depth: int = _DEPTH) -> None:
        found = False
        pairs = container.items() if isinstance(container, dict) else enumerate(container)
        for key, value in pairs:
            if isinstance(value, Tensor):
                found = True
                if value.is_leaf:
                    self._add_tensor(f"{name}[{key!r}]", value)
            elif depth and value.__class__ in _CONTAINERS:
                self._add_container(f"{name}[{key!r}]", value, depth - 1)
        if found:
            self._containers.append(container)

    def _add_tensor(self, name: str, tensor: Tensor) -> None:
        if id(tensor) not in self._seen and kept_as(tensor) != "output":
            self._seen.add(id(tensor))
            self.tensors.append(tensor)
            self.names.append(name)

    def _watch(self) -> None:
        """Record the contents of every table by identity, for `is_unchanged`."""
        tables = [m.__dict__ for m in self.modules]
        tables += [fields[name] for fields in tables for name in _TABLES]
        tables += [tensors for o in self.optimizers for tensors in o.state.values()]
        self._tables = [(table, list(table.values())) for table in tables if table]
        self._tables += [(c, list(c.values())) for c in self._containers if isinstance(c, dict)]
        self._lists = [(c, list(c)) for c in self._containers if not isinstance(c, dict)]
        self._empty = [table for table in tables if not table]
        self._roots = [(o, o.state, o.param_groups, len(o.state), list(o.param_groups)) for o in self.optimizers]
        self._groups = [(group, list(group.values())) for o in self.optimizers for group in o.param_groups]
        self._params = [(group["params"], list(group["params"])) for o in self.optimizers for group in o.param_groups]
        self._scales = [(s, s.state_tensors()) for s in self._scalers]

    def is_unchanged(self) -> bool:
        """Return whether the same tensors still sit in the same places, in the same modes."""
        if any(self._empty):
            return False
        for table, held in self._tables:
            if len(table) != len(held) or not all(map(is_, table.values(), held)):
                return False
        for o, state, groups, count, held in self._roots:
            if o.state is not state or len(state) != count or o.param_groups is not groups or not _same(groups, held):
                return False
        if not all(_same(params, held) for params, held in self._params):
            return False
        if self._lists and not all(_same(items, held) for items, held in self._lists):
            return False
        if not self.holds_scalers():
            return False
        if all(len(group) == len(held) and all(map(is_, group.values(), held)) for group, held in self._groups):
            return True
        if [o.static_options() for o in self.optimizers] != self.fixed:
            return False
        # numbers changed, as a schedule changes them
        self._groups = [(group, list(group.values())) for group, _ in self._groups]
        return True

    def watch(self) -> None:
        """Record the tables again for `is_unchanged`, after a run stored tensors in them."""
        self._watch()

    def holds_scalers(self) -> bool:
        """Return whether the loss scalers have the same tensors."""
        return not self._scales or all(_same(s.state_tensors(), held) for s, held in self._scales)

    def reports_changes(self) -> bool:
        """Return whether all changes seen by `is_unchanged`, but for loss scalers, move the mark."""
        return (
            not self._containers
            and all(map(_module_reports, self.modules))
            and all(map(_optimizer_reports, self.optimizers))
        )

    def kinds(self) -> list[str]:
        """Return the kind of each tensor: one of ``"parameters"``, the ``"optimizer"``'s state or ``"buffers"``."""
        moments = {id(t) for o in self.optimizers for t in o.state_tensors()}
        trained = {id(p) for o in self.optimizers for g in o.param_groups for p in g["params"]}
        trained |= {id(p) for m in self.modules for p in m._parameters.values() if p is not None}
        return [
            "optimizer" if id(t) in moments else "parameters" if id(t) in trained else "buffers" for t in self.tensors
        ]

    def infos(self) -> list:
        """Return the facts of the payloads that a program depends on."""
        return infos(self.tensors)

    def arrays(self) -> list:
        """Return the payloads of the tensors, then the numbers."""
        return payloads(self.tensors) + self.numbers()

    def numbers(self) -> list[float]:
        """Return the numbers."""
        return [float(group[name]) for group, name in self.options]

    def layouts(self) -> list:
        """Return the layouts of the tensors, then None for each number."""
        return [t.layout for t in self.tensors] + [None] * len(self.options)

    def signature(self) -> tuple:
        """Return the facts that a program traced on this state depends on, without values: tensors, modes, options."""
        return (
            tuple([(name, info(t)) for name, t in zip(self.names, self.tensors, strict=True)]),
            tuple([(name, plain_attributes(m)) for name, m in zip(self.module_names, self.modules, strict=True)]),
            tuple(self.fixed),
        )

    @contextlib.contextmanager
    def traced(self, tracers):
        """Put tracers into the handles within the block, and the arrays back after it."""
        saved = [Snapshot(t) for t in self.tensors]
        numbers = [group[name] for group, name in self.options]
        try:
            for tensor, tracer in zip(self.tensors, tracers, strict=False):
                given = is_per_process(tensor)
                substitute_payload(tensor, tracer, as_traced(tensor.layout))
                if given:
                    note_per_process(tensor)
                tensor.grad = None
            for (group, name), tracer in zip(self.options, tracers[len(self.tensors) :], strict=True):
                group[name] = tracer
            yield
        finally:
            for tensor, before in zip(self.tensors, saved, strict=True):
                before.put_back(tensor)
            for (group, name), number in zip(self.options, numbers, strict=True):
                group[name] = number


def _same(items: list, held: list) -> bool:
    return len(items) == len(held) and all(map(is_, items, held))


def _module_reports(module: Any) -> bool:
    """Return whether a module's attributes and tables move the mark, which no tensor in a plain attribute does."""
    fields = module.__dict__
    return (
        type(module).__setattr__ is Module.__setattr__
        and type(module).__delattr__ is Module.__delattr__
        and all(fields[name].__class__ is Table for name in _TABLES)
        and not any(isinstance(value, Tensor) for value in fields.values())
    )


def _optimizer_reports(optimizer: Any) -> bool:
    groups = optimizer.param_groups
    return (
        isinstance(optimizer, Optimizer)
        and type(optimizer).__setattr__ is Optimizer.__setattr__
        and optimizer.state.__class__ is States
        and all(fields.__class__ is Fields for fields in optimizer.state.values())
        and groups.__class__ is Items
        and all(group.__class__ is Group and group["params"].__class__ is Items for group in groups)
        and all(group["lr"].__class__ in (int, float) for group in groups)
        and {id(group) for group, name in optimizer.dynamic_options() if name == "lr"} == set(map(id, groups))
    )


def plain_attributes(owner) -> tuple:
    """Return the attributes of a module that are plain values, such as `training` or the `p` of a dropout."""
    found = [
        (name, value.__class__, value)
        for name, value in owner.__dict__.items()
        if value.__class__ in _PLAIN or (value.__class__ is tuple and all(v.__class__ in _PLAIN for v in value))
    ]
    stored = STORED.get(owner) if STORED else None
    return tuple([entry for entry in found if entry[0] not in stored] if stored else found)


def info(t: Tensor) -> tuple:
    """Return the facts of one tensor that a program depends on: shape, dtype, layout, `requires_grad`."""
    array = payload_metadata(t)
    where = t.layout
    if where is None:
        where = array.sharding or jax.sharding.SingleDeviceSharding(default_jax_device())
    return tuple(t.shape), t.dtype, where, t.requires_grad


def infos(tensors: list) -> list:
    """Return the same facts of many tensors as one flat list that compares fast."""
    arrays = [payload_metadata(t) for t in tensors]
    return [
        [a.aval for a in arrays],
        [a.sharding if t.layout is None else t.layout for t, a in zip(tensors, arrays)],
        [not t.requires_grad for t in tensors],
    ]


def _flat(name: str, owners):
    if isinstance(owners, dict):
        for key, owner in owners.items():
            yield from _flat(key, owner)
    elif isinstance(owners, (list, tuple)):
        for owner in owners:
            yield from _flat(name, owner)
    elif owners is not None:
        yield name, owners
