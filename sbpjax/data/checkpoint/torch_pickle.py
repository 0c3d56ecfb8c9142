"""Restricted unpickler that builds data only: an allowlist of names, no imports, no code execution.

A pickle is a program: ``GLOBAL`` imports what it names, ``REDUCE`` calls it, ``BUILD`` sets attributes. Here a name is
looked up in a table and no module is imported; only functions of the table are called; ``BUILD`` reaches an
OrderedDict's own attributes and objects of classes that the caller allowed; keys are small and plain. So a crafted file
can at most make wrong data, of a size proportional to its own bytes.

The opcodes are those that PyTorch's ``weights_only`` reader knows, and those of plain data in protocols 3 to 5.
"""

from __future__ import annotations

import pickle
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sbpjax._core.tensor.handle.dtype import dtype as Dtype

_DICTS = (dict, OrderedDict, Counter)
_PLAIN = (str, int, float, bool, complex, bytes, type(None), Dtype)
_KEY_PARTS = 64  # a key that is a tuple has no more; hashing deeper ones recurses without a check in CPython
_PROTOCOLS = range(2, 6)


@dataclass(frozen=True)
class Names:
    """The names that a pickle may use, by full name.

    Attributes:
        functions: callable names.
        values: names that it may hold but not call.
        classes: classes and functions that the user allowed: called, made, and filled with the state of the file.
    """

    functions: Mapping[str, Callable] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    classes: Mapping[str, Any] = field(default_factory=dict)

    def find(self, name: str) -> Any:
        """Return the object of a name.

        Raises:
            KeyError: it is not in the tables.
        """
        return next(table for table in (self.classes, self.functions, self.values) if name in table)[name]

    def has(self, name: str) -> bool:
        """Return whether a name is in the tables."""
        return name in self.classes or name in self.functions or name in self.values

    def calls(self, function: Any) -> bool:
        """Return whether a pickle may call an object; compared by identity, nothing of the object is run."""
        return self.is_allowed(function) or any(function is f for f in self.functions.values())

    def is_allowed(self, kind: Any) -> bool:
        """Return whether the user allowed a class or function."""
        return any(kind is c for c in self.classes.values())


def checked_key(key: Any) -> Any:
    """Return a key of a dict or an element of a set.

    Raises:
        UnpicklingError: it is not a plain value, or a tuple of a few of them.
    """
    parts, count = [key], 0
    while parts:
        part = parts.pop()
        count += 1
        if count > _KEY_PARTS or (type(part) not in _PLAIN and not isinstance(part, tuple)):
            raise pickle.UnpicklingError(f"a {type(part).__name__} as a key of a dict or an element of a set")
        if isinstance(part, tuple):
            parts += part[: _KEY_PARTS + 1]
    return key


class Machine:
    """Runs one pickle.

    Args:
        text: the pickle.
        names: the allowed names.
        refused: returns the error for another name, ``refused("os.system")``, or a value to continue with.
        persistent: gives the object for a persistent id.
    """

    def __init__(
        self, text: bytes, names: Names, refused: Callable[[str], Any], persistent: Callable[[Any], Any]
    ) -> None:
        self._text, self._at = text, 0
        self._names, self._refused, self._persistent = names, refused, persistent
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def load(self) -> Any:
        """Return the object that the pickle makes.

        Raises:
            UnpicklingError: the pickle is damaged, or has opcodes that data does not need.
        """
        while (opcode := self._take(1)) != pickle.STOP:
            run = _OPCODES.get(opcode)
            if run is None:
                raise pickle.UnpicklingError(f"the opcode {opcode!r} at byte {self._at - 1}")
            run(self)
        if len(self._stack) != 1 or self._marks:
            raise pickle.UnpicklingError(f"{len(self._stack)} objects at the end")
        return self._stack[0]

    # -- bytes ---------------------------------------------------------------------------------------------------------

    def _take(self, count: int) -> bytes:
        found = self._text[self._at : self._at + count]
        if len(found) != count:
            raise pickle.UnpicklingError(f"it ends {count - len(found)} bytes too early")
        self._at += count
        return found

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _line(self) -> str:
        end = self._text.find(b"\n", self._at)
        if end < 0:
            raise pickle.UnpicklingError("a line without an end")
        line, self._at = self._text[self._at : end], end + 1
        return line.decode()

    # -- stack ---------------------------------------------------------------------------------------------------------

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self, count: int = 1) -> list[Any]:
        if len(self._stack) < count:
            raise pickle.UnpicklingError("an opcode that takes more than the stack has")
        found = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        return found

    def _top(self) -> Any:
        if not self._stack:
            raise pickle.UnpicklingError("an opcode that takes more than the stack has")
        return self._stack[-1]

    def mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _to_mark(self) -> list[Any]:
        if not self._marks:
            raise pickle.UnpicklingError("no mark on the stack")
        found, self._stack = self._stack, self._marks.pop()
        return found

    # -- plain values --------------------------------------------------------------------------------------------------

    def protocol(self) -> None:
        found = self._number("<B")
        if found not in _PROTOCOLS:
            raise pickle.UnpicklingError(f"protocol {found}")

    def integer(self, form: str) -> None:
        self.push(self._number(form))

    def long(self) -> None:
        self.push(int.from_bytes(self._take(self._number("<B")), "little", signed=True))

    def text(self, form: str) -> None:
        self.push(self._take(self._number(form)).decode("utf-8", "surrogatepass"))

    def data(self, form: str) -> None:
        self.push(self._take(self._number(form)))

    def tuple_of(self, count: int) -> None:
        self.push(tuple(self._pop(count)))

    def tuple_to_mark(self) -> None:
        self.push(tuple(self._to_mark()))

    def skip(self, count: int) -> None:
        self._take(count)

    # -- memo ----------------------------------------------------------------------------------------------------------

    def put(self, form: str) -> None:
        self._memo[self._number(form)] = self._top()

    def memoize(self) -> None:
        self._memo[len(self._memo)] = self._top()

    def get(self, form: str) -> None:
        number = self._number(form)
        if number not in self._memo:
            raise pickle.UnpicklingError(f"entry {number} of the memo, which is not set")
        self.push(self._memo[number])

    # -- containers ----------------------------------------------------------------------------------------------------

    def _fill_list(self, items: list[Any]) -> None:
        target = self._of((list,))
        for item in items:
            target.append(item)

    def _fill_dict(self, items: list[Any]) -> None:
        target = self._of(_DICTS)
        if len(items) % 2:
            raise pickle.UnpicklingError("a key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[checked_key(key)] = value

    def _of(self, kinds: tuple[type, ...]) -> Any:
        """Return the top of the stack, of one of the kinds or of an allowed class derived from one."""
        target = self._top()
        if type(target) in kinds or (isinstance(target, kinds) and self._names.is_allowed(type(target))):
            return target
        raise pickle.UnpicklingError(f"items for a {type(target).__name__}")

    def append(self) -> None:
        items = self._pop()
        self._fill_list(items)

    def appends(self) -> None:
        items = self._to_mark()
        self._fill_list(items)

    def set_item(self) -> None:
        items = self._pop(2)
        self._fill_dict(items)

    def set_items(self) -> None:
        items = self._to_mark()
        self._fill_dict(items)

    def add_items(self) -> None:
        items = self._to_mark()
        self._of((set,)).update(map(checked_key, items))

    def frozen_set(self) -> None:
        self.push(frozenset(map(checked_key, self._to_mark())))

    # -- names and calls -----------------------------------------------------------------------------------------------

    def name(self) -> None:
        module = self._line()
        self._load_name(module, self._line())

    def stack_name(self) -> None:
        module, name = self._pop(2)
        self._load_name(module, name)

    def _load_name(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise pickle.UnpicklingError(f"a {type(module).__name__} and a {type(name).__name__} as a name")
        full = f"{module}.{name}"
        if self._names.has(full):
            self.push(self._names.find(full))
            return
        found = self._refused(full)
        if isinstance(found, BaseException):
            raise found
        self.push(found)

    def reduce(self) -> None:
        function, arguments = self._pop(2)
        if not self._names.calls(function) or type(arguments) is not tuple:
            raise pickle.UnpicklingError(f"a call of {type(function).__name__}")
        self.push(function(*arguments))

    def new(self) -> None:
        kind, arguments = self._pop(2)
        if not self._names.is_allowed(kind) or not isinstance(kind, type) or type(arguments) is not tuple:
            raise pickle.UnpicklingError(f"a new object of {type(kind).__name__}")
        self.push(kind.__new__(kind, *arguments))

    def build(self) -> None:
        (state,) = self._pop()
        target = self._top()
        if type(target) is OrderedDict:
            _build_ordered(target, state)
        elif self._names.is_allowed(type(target)):
            _build_allowed(target, state)
        else:
            raise pickle.UnpicklingError(f"attributes for a {type(target).__name__}")

    def persistent(self) -> None:
        (pid,) = self._pop()
        self.push(self._persistent(pid))


def _build_ordered(target: OrderedDict, state: Any) -> None:
    """Give a state dict its ``_metadata``, and nothing that hides a method."""
    if type(state) is not dict or not all(type(k) is str and not hasattr(OrderedDict, k) for k in state):
        raise pickle.UnpicklingError("attributes for an OrderedDict that are its own")
    target.__dict__.update(state)


def _build_allowed(target: Any, state: Any) -> None:
    """Give an object of a class that the user allowed its state, as pickle does."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    state, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for found in (state, slots):
        for key, value in (found or {}).items():
            if type(key) is not str or (key.startswith("__") and key.endswith("__")):
                raise pickle.UnpicklingError(f"the attribute {key!r}")
            setattr(target, key, value)


def _bind_options(method: Callable, *options: Any) -> Callable[[Machine], None]:
    return lambda machine: method(machine, *options)


def _make_push(make: Callable[[], Any]) -> Callable[[Machine], None]:
    return lambda machine: machine.push(make())


_OPCODES: dict[bytes, Callable[[Machine], None]] = {
    pickle.PROTO: Machine.protocol, pickle.FRAME: _bind_options(Machine.skip, 8), pickle.MARK: Machine.mark,
    pickle.NONE: _make_push(lambda: None), pickle.NEWTRUE: _make_push(lambda: True),
    pickle.NEWFALSE: _make_push(lambda: False), pickle.EMPTY_TUPLE: _make_push(tuple), pickle.EMPTY_LIST:
    _make_push(list), pickle.EMPTY_DICT: _make_push(dict), pickle.EMPTY_SET: _make_push(set), pickle.BININT:
    _bind_options(Machine.integer, "<i"), pickle.BININT1: _bind_options(Machine.integer, "<B"), pickle.BININT2:
    _bind_options(Machine.integer, "<H"), pickle.BINFLOAT: _bind_options(Machine.integer, ">d"), pickle.LONG1:
    Machine.long, pickle.BINUNICODE: _bind_options(Machine.text, "<I"), pickle.SHORT_BINUNICODE:
    _bind_options(Machine.text, "<B"), pickle.BINUNICODE8: _bind_options(Machine.text, "<Q"), pickle.SHORT_BINSTRING:
    _bind_options(Machine.text, "<B"), pickle.SHORT_BINBYTES: _bind_options(Machine.data, "<B"), pickle.BINBYTES:
    _bind_options(Machine.data, "<I"), pickle.TUPLE: Machine.tuple_to_mark, pickle.TUPLE1:
    _bind_options(Machine.tuple_of, 1), pickle.TUPLE2: _bind_options(Machine.tuple_of, 2), pickle.TUPLE3:
    _bind_options(Machine.tuple_of, 3), pickle.BINPUT: _bind_options(Machine.put, "<B"), pickle.LONG_BINPUT:
    _bind_options(Machine.put, "<I"), pickle.MEMOIZE: Machine.memoize, pickle.BINGET: _bind_options(Machine.get, "<B"),
    pickle.LONG_BINGET: _bind_options(Machine.get, "<I"), pickle.APPEND: Machine.append, pickle.APPENDS:
    Machine.appends, pickle.SETITEM: Machine.set_item, pickle.SETITEMS: Machine.set_items, pickle.ADDITEMS:
    Machine.add_items, pickle.FROZENSET: Machine.frozen_set, pickle.GLOBAL: Machine.name, pickle.STACK_GLOBAL:
    Machine.stack_name, pickle.REDUCE: Machine.reduce, pickle.NEWOBJ: Machine.new, pickle.BUILD: Machine.build,
    pickle.BINPERSID: Machine.persistent,
}  # fmt: skip


def make_ordered(items: Iterable = ()) -> OrderedDict:
    """Build an OrderedDict for a file."""
    return OrderedDict((checked_key(key), value) for key, value in items)


def build_counter(items: Any = ()) -> Counter:
    """Build a Counter for a file."""
    if type(items) not in (dict, tuple):
        raise pickle.UnpicklingError("a Counter of something else than a dict")
    found: Counter = Counter()
    dict.update(found, items)  # as they are: Counter's own would add
    return found


def set_of(items: Any = ()) -> set:
    """Build a set for a file."""
    return set(map(checked_key, items))


def build_complex(real: Any, imaginary: Any) -> complex:
    """Build a complex number for a file."""
    if type(real) is not float or type(imaginary) is not float:
        raise pickle.UnpicklingError("a complex number of something else than two floats")
    return complex(real, imaginary)


def encode_text(text: Any, encoding: Any = "latin1") -> bytes:
    """Return the bytes that protocol 2 writes as text."""
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("bytes that are not text in latin1")
    return text.encode("latin1")


def byte_array(text: Any = "", encoding: Any = "latin1") -> bytearray:
    """Build a bytearray for a file; never of a length alone, which would cost the file nothing."""
    return bytearray(text if type(text) is bytes else encode_text(text, encoding))


PLAIN = {
    "collections.OrderedDict": make_ordered, "collections.Counter": build_counter, "builtins.set": set_of,
    "__builtin__.set": set_of, "builtins.complex": build_complex, "__builtin__.complex": build_complex,
    "_codecs.encode": encode_text, "builtins.bytearray": byte_array, "__builtin__.bytearray": byte_array,
}  # fmt: skip
