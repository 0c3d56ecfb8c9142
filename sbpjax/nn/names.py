"""Errors about the names and values of a module: invalid registrations, missing attributes.

    net.register_parameter("a.b", p)      KeyError: a name has no dot
    net.register_buffer("train", x)       KeyError: Module has a method of that name
    net.weight = 3.0                      TypeError: weight is a Parameter or None
    net.wieght                            AttributeError, with the existing names

The builtin types are PyTorch's.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sbpjax.errors import (
    ModuleAttributeError,
    ModuleKeyError,
    ModuleMethodError,
    OpError,
    OpTypeError,
    OpValueError,
)

if TYPE_CHECKING:
    from sbpjax.nn.module import Module

_TABLES = ("_parameters", "_buffers", "_modules")
_NEEDED = {
    "parameter": ("an nn.Parameter or None", "nn.Parameter(x), or register_buffer for a tensor that is not trained"),
    "buffer": ("an sbpjax.Tensor or None", "sbpjax.tensor(x)"),
    "child module": ("an nn.Module or None", "wrap the function in an nn.Module with a forward"),
}


def check_name(module: Module, name: Any, table: Mapping[str, Any], noun: str) -> None:
    """Raise unless `name` may be registered in a table of a module.

    Raises:
        OpTypeError: the name is no string.
        ModuleKeyError: the name is empty, has a dot, or is in use.
    """
    operation = f"registering a {noun} of {type(module).__name__} under {name!r}"
    fix = f"name it like a Python attribute, e.g. {noun.split()[-1] + '_0'!r}"
    if not isinstance(name, str):
        raise OpTypeError(operation, f"a {type(name).__name__}", f"{noun} name should be a string", fix)
    if "." in name:
        rule = f'{noun} name can\'t contain ".": dots join the names of nested modules'
        raise ModuleKeyError(operation, repr(name), rule, f"use {name.replace('.', '_')!r}")
    if name == "":
        raise ModuleKeyError(operation, "an empty name", f'{noun} name can\'t be empty string ""', fix)
    if name not in table and _has(module, name):
        seen = f"{name!r} is a {type(getattr(module, name)).__name__} of the module"
        raise ModuleKeyError(operation, seen, f"attribute '{name}' already exists", "use another name, or del it")


def _has(module: Module, name: str) -> bool:
    """Return ``hasattr``, without the error text that a missing attribute costs."""
    fields = module.__dict__
    if name in fields or any(name in fields[table] for table in _TABLES):
        return True
    return hasattr(type(module), name) and hasattr(module, name)  # a property may have no value yet


def wrong_kind_error(module: Module, name: str, value: Any, noun: str) -> OpTypeError:
    """Return the error for a value that is no parameter, buffer or child module where one is needed."""
    needed, fix = _NEEDED[noun]
    return OpTypeError(
        f"{type(module).__name__}.{name} = value",
        f"a {type(value).__name__}",
        f"cannot assign '{type(value).__name__}' as {noun} '{name}': it is {needed}",
        fix,
    )


def non_leaf_error(module: Module, name: str) -> OpValueError:
    """Return the error for a parameter that was computed."""
    return OpValueError(
        f"{type(module).__name__}.{name} = parameter",
        "a tensor with a grad_fn",
        f"Cannot assign non-leaf Tensor to parameter '{name}': a parameter is a leaf of the graph",
        "nn.Parameter(x.detach()), or compute the value in forward()",
    )


def not_module_error(operation: str, value: Any) -> OpTypeError:
    """Return the error for a value that is no module where one is needed."""
    kind = value.__name__ if isinstance(value, type) else type(value).__name__
    fix = f"make an instance: {kind}(...)" if isinstance(value, type) else "pass an nn.Module"
    return OpTypeError(operation, repr(value)[:60], f"{kind} is not a Module subclass", fix)


def not_initialised_error(module: Module, noun: str) -> ModuleAttributeError:
    """Return the error for an assignment before the base class is ready."""
    name = type(module).__name__
    return ModuleAttributeError(
        f"assigning to {name}",
        f"a {name} whose Module.__init__ has not run",
        f"cannot assign {noun} before Module.__init__() call",
        "super().__init__() as the first line of __init__",
    )


def unexpected_arguments_error(module: Module, args: tuple, kwargs: dict) -> OpTypeError:
    """Return the error for arguments that reach the base class."""
    name = type(module).__name__
    given = f"unexpected keyword argument '{next(iter(kwargs))}'" if kwargs else f"{len(args) + 1} were given"
    rule = (
        f"{name}.__init__() takes 1 positional argument but {given}"
        if not kwargs
        else f"{name}.__init__() got an {given}"
    )
    return OpTypeError(f"{name}(...)", f"{len(args)} arguments, {list(kwargs)}", rule, "super().__init__()")


def missing_forward_error(module: Module) -> ModuleMethodError:
    """Return the error for a module without a `forward`."""
    name = type(module).__name__
    return ModuleMethodError(
        f"{name}(...)",
        f"class {name} without a forward",
        f'Module [{name}] is missing the required "forward" function',
        "def forward(self, x): ... in the class",
    )


def missing_extra_state_error(module: Module, method: str) -> OpError:
    """Return the error for `get_extra_state` and `set_extra_state` where a class has not defined them."""
    return OpError(
        f"{type(module).__name__}.{method}()",
        f"a class without a {method} of its own",
        "a module has extra state if its class overrides get_extra_state and set_extra_state",
        f"def {method}(self{', state' if method[0] == 's' else ''}): ... in the class",
    )


def missing_attribute_error(module: Module, name: str) -> ModuleAttributeError:
    """Return the error for a missing attribute; its fix lists existing names."""
    kind = type(module).__name__
    fields = module.__dict__
    tables = [fields.get(table, ()) for table in _TABLES]
    if "_parameters" not in fields:
        fix = "super().__init__() as the first line of __init__"
    else:
        fix = _nearest(name, [n for table in tables for n in table] + [n for n in fields if n[:1] != "_"])
    seen = f"{', '.join(n for table in tables for n in table) or 'no'} parameters, buffers and modules"
    error = ModuleAttributeError(f"{kind}.{name}", seen, f"'{kind}' object has no attribute '{name}'", fix)
    error.name, error.obj = name, module
    return error


def missing_target_error(module: Module, target: str, rule: str, known: Iterable[str]) -> ModuleAttributeError:
    """Return the error for a dotted name that does not exist."""
    operation = f"{type(module).__name__}: looking up {target!r}"
    names = [n for n in known if n]
    seen = f"{len(names)} names, e.g. {', '.join(names[:4])}" if names else "no names"
    return ModuleAttributeError(operation, seen, rule, _nearest(target, names))


def missing_key_error(module: Module, key: Any) -> ModuleKeyError:
    """Return the error for a key that a dict of modules or parameters lacks."""
    known: list[str] = [*module._modules, *module._parameters]
    seen = f"keys {', '.join(map(repr, known))}" if known else "no keys"
    rule = f"{key!r} is no key of this {type(module).__name__}"
    return ModuleKeyError(f"{type(module).__name__}[{key!r}]", seen, rule, _nearest(str(key), known))


def not_tensor_error(operation: str, value: Any) -> OpTypeError:
    """Return the error for a value that is no tensor where one is needed."""
    return OpTypeError(operation, f"a {type(value).__name__}", "it must be a Tensor", "wrap it: sbpjax.tensor(...)")


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"perhaps {near[0]!r}" if near else "assign it first, or see dir(module)"
