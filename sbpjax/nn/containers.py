"""Container modules: `Sequential`, `ModuleList`, `ModuleDict`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from sbpjax._core.ops.dims import fail
from sbpjax.nn.module import Module
from sbpjax.nn.names import missing_key_error, not_module_error


def _index(index: int, length: int) -> int:
    """Return `index` counted from the start."""
    if not isinstance(index, (int, np.integer)):
        fail("type", f"container[{index!r}]", f"a {type(index).__name__}", "positions are integers", "container[0]")
    if not -length <= index < length:
        fail(
            "index",
            f"container[{index}]",
            f"a container of {length}",
            f"index {index} is out of range",
            f"an index in [{-length}, {length})" if length else "append a module first",
        )
    return int(index) % length


class _Indexed(Module):
    """Base of `Sequential` and `ModuleList`: children by position, named by their numbers."""

    def _renumber(self, modules: list[Module]) -> None:
        self._modules.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def _name(self, index: int) -> str:
        return list(self._modules)[_index(index, len(self))]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name(index), module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        if isinstance(index, slice):
            del modules[index]
        else:
            del modules[_index(index, len(modules))]
        self._renumber(modules)

    def append(self, module: Module):
        """Put `module` at the end; return self."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module):
        """Put `module` before position `index`; return self."""
        if not isinstance(module, Module):
            raise not_module_error(f"{type(self).__name__}.insert({index!r}, ...)", module)
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, modules: Iterable[Module]):
        """Put all of `modules` at the end; return self."""
        if not isinstance(modules, Iterable):
            operation, kind = f"{type(self).__name__}.extend(modules)", type(modules).__name__
            fail(
                "type",
                operation,
                f"a {kind}",
                "the modules come as a list or another iterable",
                "nn.ModuleList([module])",
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, index: int = -1) -> Module:
        """Take a module out and return it."""
        module = self._modules[self._name(index)]
        del self[index]
        return module


class Sequential(_Indexed):
    """Modules applied one after the other.

    Args:
        args: the modules, or one OrderedDict of names to modules.

    Example:
        >>> layers = flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.ReLU(), flow.nn.Linear(8, 2))
        >>> layers(flow.ones(3, 4)).shape
        sbpjax.Size([3, 2])
        >>> len(layers), layers[1]
        (3, ReLU())
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self._renumber(list(args))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name(index)]

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            fail(
                "value",
                "Sequential + other",
                f"a {type(other).__name__}",
                "add operator supports only objects of Sequential class",
                "first + nn.Sequential(other)",
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(other)

    def __mul__(self, times: int) -> Sequential:
        if not isinstance(times, int):
            rule = f"unsupported operand type(s) for *: {type(self)} and {type(times)}"
            fail("type", "Sequential * times", f"a {type(times).__name__}", rule, "sequential * 2")
        if times <= 0:
            rule = f"Non-positive multiplication factor {times} for {type(self)}"
            fail("value", "Sequential * times", f"times={times}", rule, "sequential * 2")
        return Sequential(*(module for _ in range(times) for module in self))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        return self.extend(list(self) * (times - 1))

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_Indexed):
    """A list of modules.

    Args:
        modules: the modules.

    Example:
        >>> layers = flow.nn.ModuleList([flow.nn.Linear(4, 4) for _ in range(3)])
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._name(index)]

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __repr__(self) -> str:
        """Show equal neighbours once, with their count."""
        texts = [repr(module) for module in self]
        if not texts:
            return f"{self._get_name()}()"
        lines, start = [], 0
        for end in range(1, len(texts) + 1):
            if end < len(texts) and texts[end] == texts[start]:
                continue
            count, text = end - start, texts[start]
            names = f"({start}): " if count == 1 else f"({start}-{end - 1}): {count} x "
            lines.append(names + text.replace("\n", "\n  "))
            start = end
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return type(self)([*self, *other])


class ModuleDict(Module):
    """A dict of modules.

    Args:
        modules: names to modules, or (name, module) pairs.

    Example:
        >>> layers = flow.nn.ModuleDict({"up": flow.nn.Linear(4, 8), "down": flow.nn.Linear(8, 4)})
        >>> layers["down"](layers["up"](flow.ones(4))).shape
        sbpjax.Size([4])
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[self._require_key(key)]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[self._require_key(key)]

    def _require_key(self, key: str) -> str:
        if key not in self._modules:
            raise missing_key_error(self, key)
        return key

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def keys(self):
        return self._modules.keys()

    def values(self):
        return self._modules.values()

    def items(self):
        return self._modules.items()

    def clear(self) -> None:
        self._modules.clear()

    def pop(self, key: str) -> Module:
        return self._modules.pop(self._require_key(key))

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add all of `modules`; an existing name is replaced."""
        pairs: Any = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for name, module in pairs:
            self[name] = module
