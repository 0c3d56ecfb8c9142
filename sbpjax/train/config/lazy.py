"""`LazyCall`: a call that is recorded, can be edited, and is executed later by `instantiate`.

    model = LazyCall(GPT2)(config=LazyCall(GPT2Config)(n_layer=2))
    model.config.n_layer = 4                # a tree of plain values
    gpt = instantiate(model)                # GPT2(config=GPT2Config(n_layer=4))

A call is a dict of OmegaConf: the callable under ``_call_``, its arguments beside it. ``partial=True`` makes a function
of the call, for arguments that are added later: an optimizer, of parameters.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sbpjax.errors import ConfigError, SbpjaxError, nearest
from sbpjax.utils.host import pip_install

from .files import file_of, module_of

try:
    from omegaconf import DictConfig, ListConfig, OmegaConf
    from omegaconf.errors import OmegaConfBaseException
except ModuleNotFoundError:
    parts = "no module omegaconf", "configurations are trees of OmegaConf", pip_install("train")
    raise ConfigError("import sbpjax.train.config", *parts) from None

if TYPE_CHECKING:
    from .names import Allowed

CALL, PARTIAL, POSITIONAL, NAMED = "_call_", "_partial_", "_arguments_", "_named_"
OWN = (CALL, PARTIAL, POSITIONAL)
DEEPEST = 100  # dicts and lists within each other; an interpolation that contains itself is deeper than any


class LazyCall:
    """Record a call.

    Args:
        function: the callable: an importable class or function.
        partial: make a `functools.partial` of it.

    Raises:
        ConfigError: `function` has no such argument, or cannot be imported by its name.

    Example:
        >>> call = LazyCall(dict)(size=2)
        >>> call.size = 3
        >>> instantiate(call)
        {'size': 3}
    """

    def __init__(self, function: Callable[..., Any], *, partial: bool = False):
        self.path, self.function, self.partial = path_of(function), function, partial

    def __call__(self, *arguments: Any, **named: Any) -> DictConfig:
        """Return the call with these arguments: numbers, texts, lists, dicts, other calls, functions and classes."""
        taken = arguments_of(self.function)
        for name in named:
            if taken is not None and name not in taken:
                raise unknown_argument(f"LazyCall({self.path})(...)", name, self.path, taken)
        tree: dict[str, Any] = {CALL: self.path}
        if self.partial:
            tree[PARTIAL] = True
        if arguments:
            tree[POSITIONAL] = [plain(one, self.path) for one in arguments]
        tree |= {name: plain(value, f"{self.path}({name}=...)") for name, value in named.items()}
        return OmegaConf.create(tree)


def plain(value: Any, where: str) -> Any:
    """Return a value of a configuration, functions and classes by their names.

    Raises:
        ConfigError: the value is an object, which a file cannot hold.
    """
    if isinstance(value, int):
        check_integers(value, where)
    if isinstance(value, (DictConfig, ListConfig)) or value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(one, f"{where}[{name!r}]") for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one, f"{where}[{i}]") for i, one in enumerate(value)]
    if callable(value) and hasattr(value, "__qualname__"):
        return {NAMED: path_of(value)}
    rule = "a configuration holds numbers, texts, lists, dicts, functions, classes and calls; it is saved with the run"
    raise ConfigError(where, f"a {type(value).__name__}", rule, f"LazyCall({type(value).__name__})(...)")


def check_integers(value: Any, operation: str) -> None:
    """Raise for integers beyond any sensible size; Python does not even print the largest ones.

    Raises:
        ConfigError: the value, or a list or dict in it, holds such an integer.
    """
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, (list, tuple)):
        for one in value:
            check_integers(one, operation)
    elif isinstance(value, int) and value.bit_length() > 64:
        seen, rule = f"an integer of {value.bit_length()} bits", "an integer of a configuration has at most 64 bits"
        raise ConfigError(operation, seen, rule, "a smaller one, or a float: 1.0e+30")


def instantiate(tree: Any, name: str = "", *, allowed: Allowed | None = None) -> Any:
    """Execute all calls of a tree, innermost first, and return the result.

    Args:
        tree: a `LazyCall`'s, or dicts and lists with such.
        name: its path in the configuration, for errors.
        allowed: for a tree from a file: the allowed names; an exception of a call is then an error of the file. By
            default the tree is of the program itself, and all its calls are allowed.

    Raises:
        ConfigError: an interpolation has no target, a call lacks an argument, or it is not allowed.
    """
    if name.count(".") > DEEPEST:
        rule, fix = "${a.b} refers to a value that does not contain it", "write the value there"
        raise ConfigError(f"reading {name[:60]}…", f"values {DEEPEST} deep in each other", rule, fix)
    if allowed is not None:
        allowed.count(name)
    if isinstance(tree, ListConfig):
        return [instantiate(_item(tree, i, name), f"{name}.{i}", allowed=allowed) for i in range(len(tree))]
    if not isinstance(tree, DictConfig):
        return tree
    if NAMED in tree:
        return _find_target(tree, NAMED, name, allowed)
    values = {
        str(key): instantiate(_item(tree, key, name), f"{name}.{key}".strip("."), allowed=allowed)
        for key in tree
        if key not in OWN
    }
    if CALL not in tree:
        return values
    function = _find_target(tree, CALL, name, allowed)
    arguments = instantiate(_item(tree, POSITIONAL, name), name, allowed=allowed) if POSITIONAL in tree else []
    if not isinstance(arguments, list):
        rule = f"{POSITIONAL} is the list of a call's arguments"
        raise ConfigError(f"calling {tree[CALL]} for {name!r}", f"{arguments!r:.80}", rule, f"{POSITIONAL}: []")
    if _item(tree, PARTIAL, name) if PARTIAL in tree else False:
        return functools.partial(function, *arguments, **values)
    try:
        inspect.signature(function).bind(*arguments, **values)
    except ValueError:  # of a class in C without a signature
        pass
    except TypeError as error:
        fix = f"set {name or 'it'} to an argument of {tree[CALL]}"
        raise ConfigError(
            f"calling {tree[CALL]} for {name!r}", f"{error}", "a call has all its arguments", fix
        ) from None
    if allowed is None:
        return function(*arguments, **values)
    try:
        return function(*arguments, **values)
    except SbpjaxError:
        raise
    except Exception as error:
        seen, rule = f"{type(error).__name__}: {error}", "a call has arguments that it takes"
        fix = f"set {name or 'it'} to an argument of {tree[CALL]}; SBPJAX_FULL_TRACEBACK=1 shows where it was raised"
        raise ConfigError(f"calling {tree[CALL]} for {name!r}", seen[:300], rule, fix) from error


def _find_target(tree: DictConfig, key: str, name: str, allowed: Allowed | None) -> Any:
    path = _item(tree, key, name)
    return import_object(path) if allowed is None else allowed.find(path, name)


class convert_interpolation_errors:  # a class: an error names the user's line, and not that of contextlib
    """Convert errors of interpolations to `ConfigError`: a missing target, a cycle, or a syntax error.

    Args:
        operation: the operation, for errors.
    """

    def __init__(self, operation: str) -> None:
        self.operation = operation

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (OmegaConfBaseException, RecursionError)):
            seen = (str(error).splitlines() or [type(error).__name__])[0][:300]
            rule = "${a.b} refers to another value of the configuration, and no circle of them for any"
            raise ConfigError(self.operation, seen, rule, "name an existing value, or write it in its place") from None


def _item(tree: Any, key: Any, name: str) -> Any:
    with convert_interpolation_errors(f"reading {name}.{key}".replace(" .", " ")):
        return tree[key]


def path_of(function: Any) -> str:
    """Return the importable name of a function or class: ``"package.module:Class"``, ``"/folder/file.py:name"``.

    Raises:
        ConfigError: the object has no importable name.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module is None and isinstance(function, type(len)):
        module = "builtins"
    if not name or "<" in name or module is None:
        rule = "a later call finds its function by name: of a class or function at the top of a module"
        raise ConfigError(f"LazyCall({function!r})", "something without a name", rule, "def it at the top of a file")
    if module.startswith("sbpjax._core."):  # a file names the public place
        homes = (importlib.import_module(home) for home in ("sbpjax.nn.functional", "sbpjax"))
        module = next((home.__name__ for home in homes if getattr(home, name, None) is function), module)
    return f"{file_of(module) or module}:{name}"


def import_object(path: str) -> Any:
    """Return the function or class of a path.

    Raises:
        ConfigError: the path leads to no object.
    """
    module, _, name = path.rpartition(":")
    try:
        home = module_of(module) if module.endswith(".py") else importlib.import_module(module)
        return functools.reduce(getattr, name.split("."), home)
    except (ImportError, AttributeError, OSError, ValueError) as error:
        rule = "a call names an importable object, as package.module:name"
        raise ConfigError(f"calling {path!r}", str(error), rule, "the name as it is in this version") from None


def arguments_of(function: Any) -> list[str] | None:
    """Return the names of the arguments of a function, None if it takes any."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return None if any(p.kind is p.VAR_KEYWORD for p in found) else [p.name for p in found]


def unknown_argument(operation: str, name: str, path: str, taken: list[str]) -> ConfigError:
    """Return the error of an argument that a call does not take."""
    near = nearest(name, taken)
    fix = f"write {near!r}" if near else f"leave {name!r} out"
    return ConfigError(operation, f"an argument {name!r}", f"{path} takes {', '.join(taken)}", fix)
