"""Op registration: a table of the public ops with call form, implementation and namespaces of each.

    op("gcd(input, other)", pairs.gcd, FN | METHOD | INPLACE | INPLACE_FN)

is `sbpjax.gcd`, ``x.gcd(y)``, ``x.gcd_(y)`` and `sbpjax.gcd_`, with ``out=``, NumPy's and OneFlow's names of arguments,
a signature, a docstring, and argument errors. The rows are in `_core.functions.rows`, a file per family:

* the call form is the signature for users. Names that the pure op in `_core.ops` has as attributes are attributes, the
  others are its tensors, in order. The types of attributes are the op's.
* `op` rows are derived from the form; `custom` rows name a function with logic of its own, which is made public;
  `alias` rows are other forms of existing calls: ``alias("_C.rint(x: Tensor)", "x.round()")``.
* a dotted name, ``special.entr(input)``, is in that package; `also` gives further names.
* importing sbpjax reads the rows and imports no op (`op_modules`): a name is made on first access (`find_function`), a
  method by a `LazyMethod` that is in the class until then.
* facts about the op itself (`saves`, `amp`) are handed to the packages below, which declare the tables for them.

Worked case: ``sbpjax.gcd`` is no attribute of the package yet, so its ``__getattr__`` calls
`find_function("", "gcd")`; the row imports `_core.ops.special.pairs`, `derive` writes the function, and the package
keeps it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax._core.tensor.dispatch.op import CASTS, SAVES
from sbpjax._core.tensor.handle.tensor import Tensor

from .derive import derive_function
from .row import FN as FN
from .row import INPLACE as INPLACE
from .row import INPLACE_FN as INPLACE_FN
from .row import METHOD as METHOD
from .row import NN as NN
from .row import NN_INPLACE as NN_INPLACE
from .row import NOTHING_SAVED as NOTHING_SAVED
from .row import OUTPUT as OUTPUT
from .row import Row as Row

absent_names = LazyModule("sbpjax._core.functions.table.absent_names")  # for errors


ROWS: list[Row] = []
_PUBLIC_ROWS: dict[str, dict[str, tuple[Row, str]]] = {}  # package: name: the row, and the kind of function


def op(form: str, function: Any, shows: int = FN, *, saves: str = "", amp: str = "", **facts: Any) -> Row:
    """Add a row whose functions are derived from the call form.

    ``saves``: the value that PyTorch keeps for backward where this package keeps an input: `OUTPUT` or
    `NOTHING_SAVED`; it decides which write in place is an error.
    """
    note(function.path.rpartition(".")[2], saves, amp)
    return _add(Row(form, function.path, shows, **facts))


def custom(
    name: str, module: str, shows: int = FN, *, own: str = "", saves: str = "", amp: str = "", **facts: Any
) -> None:
    """Add rows for functions with logic of their own.

    ``**facts``: further columns, see `Row`; ``out=True`` gives ``out=`` to a function that does not take it.
    """
    for one in name.split():
        note(one.rpartition(".")[2], saves, amp)
        _add(Row(one, f"{module}.{own or one.rpartition('.')[2]}", shows, written=True, **{"out": False, **facts}))


def alias(form: str, call: str, shows: int = FN, **facts: Any) -> Row:
    """Add a row for another form of existing calls.

    Args:
        form: how users write the call, with types as Python has them; it returns a tensor unless it declares another
            type.
        call: the expression that it evaluates. Functions have their names in the package:
            ``nn.functional.gelu(x, approximate='tanh')``.
        shows: the namespaces that expose it.
        **facts: further columns, see `Row`; ``out=True`` gives it ``out=``.
    """
    return _add(Row(form, "", shows, call=call, **{"out": False, **facts}))


def note(names: str, saves: str = "", amp: str = "") -> None:
    """Hand facts about ops to the packages below, also about ops without a row."""
    for name in names.split():
        if saves:
            SAVES[name] = saves
        if amp:
            CASTS[name] = amp


def _add(row: Row) -> Row:
    ROWS.append(row)
    namespace, shows = row.namespace, row.shows
    own = "nn" if namespace == "nn.functional" else "function"
    for name in [row.name, *row.also.split()]:
        if "." in name:
            _add_public_name(*name.rsplit(".", 1), row, own)
            continue
        if shows & FN:
            _add_public_name(namespace, name, row, own)
        if shows & METHOD:
            _add_public_name("Tensor", name, row, "method" if row.several else own)
        if shows & INPLACE:
            _add_public_name("Tensor", f"{name}_", row, "inplace")
        if shows & INPLACE_FN:
            _add_public_name("", f"{name}_", row, "inplace function")
        if shows & NN:
            _add_public_name("nn.functional", name, row, "nn")
        if shows & NN_INPLACE:
            _add_public_name("nn.functional", f"{name}_", row, "inplace function")
    return row


def _add_public_name(namespace: str, name: str, row: Row, kind: str) -> None:
    _PUBLIC_ROWS.setdefault(namespace, {})[name] = row, kind
    if namespace == "Tensor":
        setattr(Tensor, name, LazyMethod(name))


class LazyMethod:
    """A lazy method: made on first access, which replaces it in the class."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        method: Any = find_function("Tensor", self.name)
        setattr(Tensor, self.name, method)
        return method if instance is None else method.__get__(instance, owner)


def find_function(namespace: str, name: str) -> Callable:
    """Return the function that the table has in a package under a name."""
    row, kind = _PUBLIC_ROWS[namespace][name]
    function = row.made.get(kind)
    if function is None:
        function = row.made[kind] = derive_function(row, kind, _find_or_none)
    return function


def _find_or_none(namespace: str, name: str) -> Callable | None:
    return find_function(namespace, name) if has(namespace, name) else None


def has(namespace: str, name: str) -> bool:
    """Return whether the table has a name in a package."""
    return name in _PUBLIC_ROWS.get(namespace, ())


def names(namespace: str) -> list[str]:
    """Return the names that the table has in a package."""
    return list(_PUBLIC_ROWS.get(namespace, ()))


def reexport_hooks(
    namespace: str,
    space: dict[str, Any],
    *beside: str,
    modules: str = "",
    add_argument_errors: Callable[[dict], None] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a module that re-exports a package of the table.

    ``__dir__`` leaves out private names; they remain attributes.

    Args:
        namespace: the package.
        space: the module's ``globals()``.
        beside: further packages whose names it has, the first of them first; ``"Tensor"`` has all methods.
        modules: modules that are imported on first access: ``name`` for a public one in this one, or
            ``name=module``, or ``name=module:class`` for a class. ``__getattr__.modules`` lists the public ones.
        add_argument_errors: called with the name and the class when one of these classes is imported.
    """
    within = f"{namespace}." if namespace else ""
    places = {name: place or within + name for name, _, place in (each.partition("=") for each in modules.split())}

    def attribute(name: str) -> Any:
        if name == "__all__":  # the names of a star import
            return [name for name in list_names() if not name.startswith("__")]
        if name in places:
            place, _, inside = places[name].partition(":")
            module = importlib.import_module(f"sbpjax.{place}")
            if not inside:
                return module
            value = space[name] = getattr(module, inside)
            if add_argument_errors is not None:
                add_argument_errors({name: value})
            return value
        home = next((place for place in (namespace, *beside) if has(place, name)), None)
        if home is None:
            if "Tensor" in beside and callable(getattr(Tensor, name, None)):
                return getattr(Tensor, name)
            raise absent_names.absent_name_error(namespace, name)
        value = space[name] = find_function(home, name)
        return value

    def list_names() -> list[str]:
        every = {*space, *names(namespace), *places}
        return sorted(name for name in every if not name.startswith("_") or name.endswith("__"))

    attribute.modules = [name for name in modules.split() if "=" not in name]  # type: ignore[attr-defined]
    return attribute, list_names


def layers() -> Iterator[Row]:
    """Return the rows that give an activation layer."""
    return (row for row in ROWS if row.layer)
