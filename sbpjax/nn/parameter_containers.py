"""`ParameterList` and `ParameterDict`: modules that hold parameters and other values.

A plain tensor becomes a parameter; other values are kept unchanged, outside of `parameters()` and the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn.module import Module
from sbpjax.nn.names import missing_key_error
from sbpjax.nn.parameter import Parameter


def _to_parameter(value: Any) -> Any:
    """Return a plain tensor as a parameter, anything else as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _line(name: Any, value: Any, kind: str) -> str:
    if not isinstance(value, Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    noun = "Parameter" if isinstance(value, Parameter) else "Tensor"
    sizes = "x".join(map(str, value.shape))
    where = "" if value.is_global or value.device.type == "cpu" else f" ({value.device})"
    return f"  ({name}): {noun} containing: [{kind} of size {sizes}{where}]"


class ParameterList(Module):
    """A list of parameters.

    Args:
        values: parameters, tensors, or anything else.
        parameters: OneFlow's name of them.
    """

    def __init__(self, values: Iterable[Any] | None = None, *, parameters: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        for value in (parameters if values is None else values) or ():
            self.append(value)

    def _name(self, index: int) -> str:
        if not -self._size <= index < self._size:
            seen, rule = f"a list of {self._size}", f"index {index} is out of range"
            fix = f"an index in [{-self._size}, {self._size})" if self._size else "append a parameter first"
            fail("index", f"ParameterList[{index}]", seen, rule, fix)
        return str(index % self._size)

    def append(self, value: Any) -> ParameterList:
        """Put `value` at the end; return self."""
        name, self._size = str(self._size), self._size + 1
        setattr(self, name, _to_parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Put all of `values` at the end; return self."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            rule = f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}"
            fail("type", "ParameterList.extend(values)", f"a {type(values).__name__}", rule, "extend([value])")
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._name(int(index)))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name(int(index)), _to_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(i)) for i in range(self._size)])

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fail("shape", "ParameterList(...)(x)", "a call", "ParameterList should not be called.", "use its elements")

    def __repr__(self) -> str:
        lines = [_line(i, v, str(getattr(v, "dtype", ""))) for i, v in enumerate(self)]
        return f"{self._get_name()}(\n" + "\n".join("  " + line for line in lines) + "\n)"

    def extra_repr(self) -> str:
        return "\n".join(_line(i, v, str(getattr(v, "dtype", ""))) for i, v in enumerate(self))


class ParameterDict(Module):
    """A dict of parameters, in the order of insertion.

    Args:
        parameters: names to parameters, tensors or anything else, or (name, value) pairs.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _require_key(self, key: str) -> str:
        if key not in self._keys:
            raise missing_key_error(self, key)
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, str(key))  # a missing one is an AttributeError, as in PyTorch

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            kind = type(key).__name__
            rule = f"Index given to ParameterDict cannot be used as a key: it is not a string (type is '{kind}')"
            fail("type", f"ParameterDict[{key!r}] = ...", f"a {kind}", rule, f"{str(key)!r}")
        self._keys[key] = None
        setattr(self, key, _to_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[self._require_key(key)]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: Any) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> ParameterDict:
        made = ParameterDict(other)
        made.update(self)
        return made

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def keys(self) -> Any:
        """Return the names."""
        return self._keys.keys()

    def values(self) -> Any:
        """Return the values."""
        return [self[key] for key in self._keys]

    def items(self) -> Any:
        """Return the (name, value) pairs."""
        return [(key, self[key]) for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value under `key`, or `default`."""
        return self[key] if key in self else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value under `key`, put there first if it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Take the value under `key` out and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last (name, value) pair out and return it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Take everything out."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Return another dict of the same values."""
        return ParameterDict(self.items())

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a dict with `default` under every key."""
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters: Any) -> None:
        """Add all of a mapping or of (name, value) pairs; an existing name is replaced."""
        if not isinstance(parameters, Iterable):
            kind = type(parameters).__name__
            rule = f"ParametersDict.update should be called with an iterable of key/value pairs, but got {kind}"
            fail("type", "ParameterDict.update(...)", f"a {kind}", rule, "update({'name': value})")
        pairs: Any = parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters
        for key, value in pairs:
            self[key] = value

    def __call__(self, input: Any) -> Any:
        fail("shape", "ParameterDict(...)(x)", "a call", "ParameterDict should not be called.", "use its values")

    def extra_repr(self) -> str:
        return "\n".join(_line(k, v, _legacy_name(v)) for k, v in self.items())

    def __repr__(self) -> str:
        lines = [_line(k, v, _legacy_name(v)) for k, v in self.items()]
        return f"{self._get_name()}(\n" + "\n".join("  " + line for line in lines) + "\n)"


_LEGACY = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long"}
_LEGACY |= {"int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool"}


def _legacy_name(value: Any) -> str:
    """Return the old name of a tensor's type, as PyTorch shows it here."""
    dtype = str(getattr(value, "dtype", "")).rpartition(".")[2]
    return f"torch.{_LEGACY.get(dtype, dtype)}Tensor"
