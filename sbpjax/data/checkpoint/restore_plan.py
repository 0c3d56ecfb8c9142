"""Restore plan: matches a checkpoint with the target state: arrays to read, mismatches, writes.

    into = {"model": model, "optimizer": optimizer, "epoch": 0}

`RestorePlan` walks both trees side by side before anything is read or changed. Tensors are read in the layout of the
target, new optimizer state in the layout of its parameters; entries that only one side has are collected by name.
Afterwards `finish` writes tensors in place, hands objects their state, and sets plain values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from sbpjax._core.tensor.creation.from_data import tensor
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.payload import refresh_tensor
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.errors import CheckpointError
from sbpjax.nn.module import Module
from sbpjax.optim import Optimizer
from sbpjax.sbp import Layout

from .reader import Contents
from .tree import LEAVES, MISSING, is_object, join_name, names_of, unpack

Finish = Callable[[], Any]


class RestorePlan:
    """The plan of a load into a state: the arrays to read, the entries that do not fit, and the writes.

    Args:
        contents: the checkpoint.
        names: the requested tensors.
        cast: whether lossy dtype conversions are allowed.
        parts: whether only some tensors are loaded, and everything else stays unchanged.
        above: the key of the checkpoint under which the state is; names in errors begin below it.

    Attributes:
        targets: the layout in which each tensor is read, by name; None for a local one.
        missing: entries of the state that the checkpoint lacks.
        unexpected: entries of the checkpoint that the state lacks.
        wrong: entries of another shape, dtype or kind here.
        arrays: the arrays read, once they are.
    """

    def __init__(self, contents: Contents, names: list[str], cast: bool, parts: bool, above: str | None = None) -> None:
        self.contents, self.names, self.cast, self.parts = contents, set(names), cast, parts
        self._above = "" if above is None else f"{above}/"
        self.targets: dict[str, Layout | None] = {}
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.wrong: list[str] = []
        self.arrays: dict[str, Any] = {}
        self._make: Callable[[str], Any] = lambda name: MISSING

    def finish(self, done: Finish, arrays: dict[str, Any], make: Callable[[str], Any]) -> Any:
        """Apply the arrays read to the state, and return it."""
        self.arrays, self._make = arrays, make
        return done()

    def walk(self, target: Any, document: Any, name: str = "", strict: bool = True) -> Finish:
        """Compare a part of the state with its part of the checkpoint; return its setter."""
        if isinstance(target, (Tensor, np.ndarray)):
            return self._plan_leaf(target, document, name)
        if is_object(target):
            return self._plan_object(target, document, name, strict)
        if isinstance(target, dict) and (entries := entries_of(document)) is not None:
            return self._plan_dict(target, entries, name, strict)
        if type(target) in (list, tuple) and (items := _items(document)) is not None:
            return self._plan_sequence(target, items, name, strict)
        if isinstance(target, (dict, list, tuple)) and names_of(document) + _tensors(target):
            self.wrong.append(
                f"{name or 'the state'}: a {type(target).__name__} here, {_describe_entry(document)} in the checkpoint"
            )
            return lambda: target
        return lambda: self._value(document, target)

    def _value(self, document: Any, kept: Any = MISSING) -> Any:
        if self.parts and kept is not MISSING and not self.names & set(names_of(document)):
            return kept
        return unpack(document, self._make_target)

    def _make_target(self, name: str) -> Any:
        return self._make(name) if name in self.targets else MISSING

    def _plan_leaf(self, target: Any, document: Any, name: str) -> Finish:
        if not isinstance(document, dict) or document.get("") not in LEAVES:
            self.wrong.append(f"{name}: a tensor here, {_describe_entry(document)} in the checkpoint")
            return lambda: target
        stored = document["name"]
        if stored not in self.names:
            return lambda: target
        self._plan_read(stored, target, name)
        return lambda: self._write(target, stored)

    def _plan_read(self, stored: str, target: Any, name: str) -> None:
        """Register a tensor of the checkpoint to be read into one of the state."""
        shape, dtype = self.contents.shape(stored), self.contents.dtype(stored)
        here = dtypes.as_dtype(target.dtype).np if isinstance(target, Tensor) else target.dtype
        if tuple(target.shape) != shape:
            self.wrong.append(f"{name}: {list(target.shape)} here, {list(shape)} in the checkpoint")
        elif not self.cast and not is_lossless_cast(here, dtype):
            self.wrong.append(f"{name}: {here.name} here, {dtype.name} in the checkpoint; cast=True allows the loss")
        layout = refresh_tensor(target).layout if isinstance(target, Tensor) else None
        self.targets[stored] = layout and Layout(layout.placement, layout.sbp, shape, dtype)

    def _write(self, target: Any, stored: str) -> Any:
        made = self._make(stored)
        if isinstance(target, np.ndarray):
            target[...] = made.numpy() if isinstance(made, Tensor) else made
            return target
        if not isinstance(made, Tensor):
            made = tensor(np.asarray(made))
        with no_grad():
            target.copy_(made.to(target.dtype) if made.dtype != target.dtype else made)
        return target

    def _plan_dict(self, target: dict, entries: dict, name: str, strict: bool) -> Finish:
        if not self.parts:
            self.missing += [join_name(name, k) for k in target if k not in entries]
        else:
            self.missing += [n for k in target if k not in entries for n in _tensors(target[k], join_name(name, k))]
        self._add_unexpected([(join_name(name, k), v) for k, v in entries.items() if k not in target])
        done = {k: self.walk(v, entries[k], join_name(name, k), strict) for k, v in target.items() if k in entries}

        def finish() -> dict:
            for key, set_it in done.items():
                value = set_it()
                if value is not target[key] and value is not MISSING:
                    target[key] = value
            return target

        return finish

    def _plan_sequence(self, target: Any, items: list, name: str, strict: bool) -> Finish:
        count = min(len(target), len(items))
        self.missing += [join_name(name, i) for i in range(count, len(target))]
        self._add_unexpected([(join_name(name, i), items[i]) for i in range(count, len(items))])
        done = [self.walk(target[i], items[i], join_name(name, i), strict) for i in range(count)]

        def finish() -> Any:
            values = [target[i] if (v := set_it()) is MISSING else v for i, set_it in enumerate(done)]
            if isinstance(target, tuple):
                return (*values, *target[count:])
            target[:count] = values
            return target

        return finish

    def _add_unexpected(self, entries: list[tuple[str, Any]]) -> None:
        for name, document in entries:
            found = [stored.removeprefix(self._above) for stored in names_of(document)]
            if not self.parts:
                self.unexpected += found or [name]

    def _plan_object(self, target: Any, document: Any, name: str, strict: bool) -> Finish:
        """Give an object its state, its tensors read into the layouts that they will have."""
        if self.parts and not self.names & set(names_of(document)):
            return lambda: target
        own = target.state_dict()
        if isinstance(target, Module) and (entries := entries_of(document)) is not None:
            self.missing += [join_name(name, k) for k in own if k not in entries]
            self._add_unexpected([(join_name(name, k), v) for k, v in entries.items() if k not in own])
        self._plan_state_read(document, own, name, _parameters(target))
        options = (
            {"strict": False} if not strict and "strict" in inspect.signature(target.load_state_dict).parameters else {}
        )

        def finish() -> Any:
            state = self._value(document)
            target.load_state_dict(state, **options)
            return target

        return finish

    def _plan_state_read(self, document: Any, own: Any, name: str, owner: dict[Any, Tensor] | Tensor | None) -> None:
        """Register the tensors of an object's state in their current layout, new ones in that of their parameter."""
        if isinstance(document, dict) and document.get("") in LEAVES:
            stored = document["name"]
            if stored not in self.names:
                return
            if isinstance(own, Tensor):
                self._plan_read(stored, own, name)
                return
            layout = refresh_tensor(owner).layout if isinstance(owner, Tensor) else None
            shape, dtype = self.contents.shape(stored), self.contents.dtype(stored)
            fits = layout is not None and layout.shape == shape
            self.targets[stored] = Layout(layout.placement, layout.sbp, shape, dtype) if fits else None  # type: ignore
            return
        entries, items = entries_of(document), _items(document)
        for key, part in (entries or dict(enumerate(items or []))).items():
            inner = own.get(key) if isinstance(own, dict) else own[key] if _has(own, key) else None
            who = owner.get(key) if isinstance(owner, dict) and not isinstance(owner, Tensor) else owner
            self._plan_state_read(part, inner, join_name(name, key), who)


def mismatch_error(fit: RestorePlan, strict: bool) -> CheckpointError | None:
    """Return the error for all mismatches, None if there are none."""
    seen = list(fit.wrong)
    if strict or fit.parts:
        seen += (
            [f"{len(fit.missing)} are not in the checkpoint: {_abbreviate_names(fit.missing)}"] if fit.missing else []
        )
    if strict:
        seen += (
            [f"{len(fit.unexpected)} of the checkpoint are not here: {_abbreviate_names(fit.unexpected)}"]
            if fit.unexpected
            else []
        )
    if not seen:
        return None
    rule = "the checkpoint and `into` have the same names, and tensors of the same shapes, whose dtypes lose nothing"
    fix = (
        "give modules and optimizers themselves, built as they were saved; strict=False skips names that one side lacks"
    )
    if fit.wrong:
        fix = "build the model as it was saved; pattern= loads a part; cast=True rounds"
    more = f"; and {len(fit.wrong) - 4} more" if len(fit.wrong) > 4 else ""
    text = "; ".join([*fit.wrong[:4]]) + more + "; ".join(["", *seen[len(fit.wrong) :]] if fit.wrong else seen)
    return CheckpointError(f"loading {str(fit.contents.directory)!r}", text, rule, fix)


def _abbreviate_names(names: list[str]) -> str:
    return f"{names[:6]}" + (" …" if len(names) > 6 else "")


def _parameters(target: Any) -> Any:
    """Return the parameters of an optimizer as its state refers to them: ``{"state": {0: parameter}}``."""
    if not isinstance(target, Optimizer):
        return None
    numbered: dict[int, Tensor] = {}
    for group in target.param_groups:
        for parameter in group["params"]:
            if not any(parameter is p for p in numbered.values()):
                numbered[len(numbered)] = parameter
    return {"state": numbered}


def entries_of(document: Any) -> dict | None:
    """Return the entries of a dict in a structure, None if it is none."""
    if not isinstance(document, dict):
        return None
    if "" not in document:
        return document
    if document[""] in ("dict", "OrderedDict", "defaultdict"):
        return {unpack(k, lambda name: MISSING): v for k, v in document["items"]}
    return None


def _items(document: Any) -> list | None:
    if isinstance(document, list):
        return document
    return document["items"] if isinstance(document, dict) and document.get("") == "tuple" else None


def _has(value: Any, key: Any) -> bool:
    return isinstance(value, (list, tuple)) and isinstance(key, int) and key < len(value)


def _tensors(target: Any, name: str = "") -> list[str]:
    """Return the names of the tensors in a state."""
    if isinstance(target, (Tensor, np.ndarray)):
        return [name]
    if is_object(target):
        target = target.state_dict()
    pairs = (
        target.items() if isinstance(target, dict) else enumerate(target) if isinstance(target, (list, tuple)) else ()
    )
    return [n for k, v in pairs for n in _tensors(v, join_name(name, k))]


def _describe_entry(document: Any) -> str:
    if isinstance(document, dict):
        kind = document.get("", "dict")
        return f"a {kind}" if isinstance(kind, str) else "something else"
    return "nothing" if document is None else f"a {type(document).__name__}"


def is_lossless_cast(target: np.dtype, source: np.dtype) -> bool:
    """Return whether every value of ``source`` is one of ``target``: such casts need no ``cast=True``.

    bfloat16 goes into float32, int8 into float16; float32 into int64 or bfloat16 loses something.
    """
    if target == source:
        return True
    kinds = [_kind(source), _kind(target)]
    if None in kinds or kinds[0] > kinds[1]:  # type: ignore[operator]
        return False
    if kinds[0] == 0:
        return True
    if kinds[1] == 1:
        a, b = ml_dtypes.iinfo(source), ml_dtypes.iinfo(target)
        return b.min <= a.min and a.max <= b.max
    real = ml_dtypes.finfo(_real(target))
    if kinds[0] == 1:
        info = ml_dtypes.iinfo(source)
        return info.bits - (info.min < 0) <= real.nmant + 1 and float(info.max) <= float(real.max)
    other = ml_dtypes.finfo(_real(source))
    return other.nmant <= real.nmant and other.maxexp <= real.maxexp and other.minexp >= real.minexp


def _kind(dtype: np.dtype) -> int | None:
    """Return 0 for booleans, 1 integers, 2 real and 3 complex numbers; None for other dtypes."""
    known = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}.get(dtype.kind)
    return 2 if known is None and dtype.kind == "V" and "float" in dtype.name else known


def _real(dtype: np.dtype) -> np.dtype:
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype
