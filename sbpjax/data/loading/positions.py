"""Resumable state of a loader's order: positions and generators of samplers and iterable datasets.

    DataLoader(data, sampler=RandomSampler(data, generator=g))

The order of the current epoch came from one draw of ``g``, and that of the next will come from another. A loader that
resumes restores the state of ``g`` at the beginning of the epoch, starts the sampler, which draws the same order, and
skips the batches already given; so every later epoch is the same as well. The same holds for all parts of the order,
however nested:

    a part with state_dict and load_state_dict      its state
    a generator: sbpjax's, NumPy's, Python's        its state
    a sampler with set_epoch                        its epoch
    a sampler of sbpjax on the default generator    the seed that it drew
    a sampler of a class that is not known          besides, its numbers that have changed, and the states of the
                                                    default generators, from which it may draw
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from sbpjax.errors import DataError

from .dataset import Dataset, IterableDataset
from .sampler import Sampler, Seeded

_OF_LIBRARIES = (np.random.Generator, np.random.RandomState, random.Random)
_PLAIN = (str, bytes, int, float, complex, bool, type(None), np.ndarray)
_MOST_ITEMS = 64  # of a list that are searched: one of parts is short, one of indices is not
_HOME = __name__.split(".")[0] + "."


class Parts:
    """The parts of a loader that hold a position or a generator, by their path from the loader.

    Args:
        roots: name → a sampler, batch sampler or iterable dataset, or None.
        known: generators that are kept elsewhere.
    """

    def __init__(self, roots: dict[str, Any], known: tuple = ()) -> None:
        self._found: dict[str, Any] = {}
        self._foreign: dict[str, Any] = {}  # samplers of classes that are not known
        self._seen = {id(g) for g in (*known, _generator_module().default_generator)}
        for name, root in roots.items():
            self._visit(name, root)

    def _visit(self, path: str, part: Any) -> None:
        if id(part) in self._seen or isinstance(part, _PLAIN):
            return
        self._seen.add(id(part))
        if _is_generator(part):
            self._found[path] = part
            return
        if isinstance(part, (list, tuple, dict)):
            items = part.items() if isinstance(part, dict) else enumerate(part)
            for key, item in itertools.islice(items, _MOST_ITEMS):
                if isinstance(item, (Sampler, IterableDataset)) or _is_generator(item):
                    self._visit(f"{path}[{key!r}]", item)
            return
        if _has_state(part):
            self._found[path] = part
            return
        if not isinstance(part, IterableDataset) and not type(part).__module__.startswith((_HOME, "builtins")):
            self._foreign[path] = part
        if isinstance(part, Seeded) or callable(getattr(part, "set_epoch", None)):
            self._found[path] = part
        for name, value in getattr(part, "__dict__", {}).items():
            if self._is_part(name, value, part):
                self._visit(f"{path}.{name}", value)

    @staticmethod
    def _is_part(name: str, value: Any, owner: Any) -> bool:
        if isinstance(value, (Sampler, IterableDataset)) or _is_generator(value):
            return True
        if isinstance(value, (list, tuple, dict)):
            return True  # of such parts
        if isinstance(value, (Dataset, *_PLAIN)) or name == "data_source":
            return False
        inner = "sampler" in name or (isinstance(owner, IterableDataset) and "dataset" in name)
        return inner and hasattr(value, "__iter__")

    def __bool__(self) -> bool:
        return bool(self._found)

    def names(self) -> list[str]:
        """Return the paths of the parts."""
        return list(self._found)

    def numbers(self) -> dict[str, dict[str, Any]]:
        """Return the numbers in samplers of unknown classes: those that change are positions."""
        return {
            path: {name: v for name, v in vars(part).items() if type(v) in (int, float)}
            for path, part in self._foreign.items()
            if hasattr(part, "__dict__")
        }

    def begin(self, fresh: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Return the states of all parts before an epoch is started, as plain values.

        Args:
            fresh: the `numbers` of the samplers when the loader was made.
        """
        states: dict[str, Any] = {}
        for path, part in self._found.items():
            if _is_generator(part):
                states[path] = {"generator": _generator_state(part)}
            elif _has_state(part):
                states[path] = {"state": copy.deepcopy(part.state_dict())}
            elif isinstance(part, Seeded):
                part.last_seed = None  # until it is started
            else:
                states[path] = {"epoch": getattr(part, "epoch", 0)}
        for path, own in self.numbers().items():
            moved = {name: v for name, v in own.items() if fresh.get(path, {}).get(name, v) != v and name != "epoch"}
            if moved:
                states.setdefault(path, {})["numbers"] = moved
        if self._foreign:
            states["default"] = {"generators": [_generator_state(g) for g in _defaults()]}
        return states

    def seeds(self) -> dict[str, Any]:
        """Return the seeds that samplers drew since `begin` from generators that are kept elsewhere."""
        found = {}
        kept = {id(part) for part in self._found.values() if _is_generator(part)}
        for path, part in self._found.items():
            if isinstance(part, Seeded) and part.last_seed is not None and id(part.generator) not in kept:
                found[path] = {"seed": part.last_seed}
        return found

    def check(self, states: dict[str, Any]) -> None:
        """Raise for the states of other parts.

        Raises:
            DataError: the states belong to other parts.
        """
        unknown = sorted(set(states) - set(self._found) - set(self._foreign) - {"default"})
        if unknown:
            rule = "a loader goes on with samplers and datasets made like those of the loader that was saved"
            seen = f"states of {', '.join(unknown)}; this loader has {', '.join(self._found) or 'none'}"
            raise DataError("DataLoader.load_state_dict(state)", seen, rule, "make the loader alike")

    def resume(self, states: dict[str, Any]) -> None:
        """Restore the state of all parts at the beginning of an epoch."""
        for path, state in states.items():
            part: Any = self._found.get(path, self._foreign.get(path))
            for name, value in state.get("numbers", {}).items():
                setattr(part, name, value)
            if "generator" in state:
                _set_generator(part, state["generator"])
            elif "state" in state:
                part.load_state_dict(copy.deepcopy(state["state"]))
            elif "seed" in state:
                part.resume(state["seed"])
            elif "epoch" in state:
                part.set_epoch(state["epoch"])

    @contextlib.contextmanager
    def replay_draws(self, states: dict[str, Any]) -> Iterator[None]:
        """Within the block, let default generators repeat their draws since the beginning of the epoch."""
        if "default" not in states:
            yield
            return
        before = [_generator_state(g) for g in _defaults()]
        try:
            for generator, state in zip(_defaults(), states["default"]["generators"], strict=True):
                _set_generator(generator, state)
            yield
        finally:
            for generator, state in zip(_defaults(), before, strict=True):
                _set_generator(generator, state)


def _generator_module() -> Any:
    """Return the module of sbpjax's generators."""
    from sbpjax._core.tensor.creation import generator  # workers load this module without JAX

    return generator


def _is_generator(part: Any) -> bool:
    return isinstance(part, _OF_LIBRARIES) or isinstance(part, _generator_module().Generator)


def _defaults() -> list:
    # NumPy's and Python's module functions are methods of hidden instances.
    return [_generator_module().default_generator, np.random.mtrand._rand, random._inst]  # type: ignore[attr-defined]


def _has_state(part: Any) -> bool:
    return callable(getattr(part, "state_dict", None)) and callable(getattr(part, "load_state_dict", None))


def _generator_state(generator: Any) -> Any:
    """Return the state of a generator as numbers and text: NumPy's has integers of 128 bits."""
    if isinstance(generator, _generator_module().Generator):
        return [generator._seed, generator._counter]
    if isinstance(generator, np.random.Generator):
        return json.dumps(generator.bit_generator.state, default=np.ndarray.tolist)
    if isinstance(generator, np.random.RandomState):
        return json.dumps(generator.get_state(legacy=False), default=np.ndarray.tolist)
    return json.dumps(generator.getstate())


def _set_generator(generator: Any, state: Any) -> None:
    if isinstance(generator, _generator_module().Generator):
        generator.set_state(state)
    elif isinstance(generator, np.random.Generator):
        generator.bit_generator.state = json.loads(state)
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(json.loads(state))
    else:
        version, words, gauss = json.loads(state)
        generator.setstate((version, tuple(words), gauss))
