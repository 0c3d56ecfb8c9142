"""`functional_call` and `stack_module_state`: run a module with other parameters than its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from sbpjax._core import functions
from sbpjax._core.tensor import Tensor
from sbpjax.errors import OpError


def functional_call(
    module,
    parameter_and_buffer_dicts,
    args: Any = None,
    kwargs: dict | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
):
    """Call a module with other tensors in the place of its parameters and buffers.

    Args:
        module: the module; it is unchanged afterwards.
        parameter_and_buffer_dicts: names to tensors, or a tuple of such dicts.
        args: its argument, or a tuple of its arguments.
        kwargs: its keyword arguments.
        tie_weights: give a tensor to all names under which the module has the same parameter.
        strict: refuse names that the module does not have, and to leave out any that it has.

    Returns:
        The module's result. Buffers that it writes are written in the given tensors.
    """
    dicts = parameter_and_buffer_dicts
    given: dict[str, Tensor] = {}
    for d in dicts if isinstance(dicts, (tuple, list)) else (dicts,):
        twice = given.keys() & d.keys()
        if twice:
            raise OpError(
                "functional_call(module, dicts)",
                f"{sorted(twice)} in more than one dict",
                "every tensor is given once",
                "merge the dicts",
            )
        given.update(d)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with swap_tensors(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


@contextlib.contextmanager
def swap_tensors(module, given: dict[str, Tensor], tie_weights: bool = True, strict: bool = False):
    """Put tensors in the place of a module's parameters and buffers within the block."""
    tables: dict[str, tuple[dict, str]] = {}
    names_of: dict[int, list[str]] = {}
    for path, owner in module.named_modules(remove_duplicate=False):
        for table in (owner._parameters, owner._buffers):
            for key, tensor in table.items():
                if tensor is not None:
                    name = f"{path}.{key}" if path else key
                    tables[name] = table, key
                    names_of.setdefault(id(tensor), []).append(name)
    unknown = given.keys() - tables.keys()
    if unknown and strict:
        raise _names("unexpected", unknown)
    wanted = {}
    for name, tensor in given.items():
        if name in tables:
            table, key = tables[name]
            for alias in names_of[id(table[key])] if tie_weights else (name,):
                if alias == name or alias not in given:
                    wanted[alias] = tensor
    missing = tables.keys() - wanted.keys()
    if missing and strict:
        raise _names("missing", missing)
    before = {name: tables[name][0][tables[name][1]] for name in wanted}
    try:
        for name, tensor in wanted.items():
            table, key = tables[name]
            table[key] = tensor
        yield
    finally:
        for name, tensor in before.items():
            table, key = tables[name]
            table[key] = tensor


def _names(kind: str, names) -> OpError:
    return OpError(
        "functional_call(module, dicts, strict=True)",
        f"{kind} {sorted(names)}",
        "strict needs exactly the module's parameters and buffers",
        "dict(module.named_parameters()), dict(module.named_buffers())",
    )


def stack_module_state(models: Sequence) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the buffers of equal modules, stacked along a new first dim, for `vmap`.

    Args:
        models: modules of one class and mode.

    Returns:
        Two dicts of names to stacked tensors; the parameters are leaves that require grad as the models' do.

    Example:
        >>> params, buffers = stack_module_state([nn.Linear(2, 2) for _ in range(3)])
        >>> params["weight"].shape
        sbpjax.Size([3, 2, 2])
    """
    models = list(models)
    if not models or any(type(m) is not type(models[0]) or m.training != models[0].training for m in models):
        raise OpError(
            "stack_module_state(models)",
            f"{len(models)} models of {sorted({type(m).__name__ for m in models})}",
            "models are at least one, of one class and all in the same mode",
            "model.train() or model.eval() for each",
        )

    def stack_tensors(name: str, tensors: list):
        if len({t.requires_grad for t in tensors}) > 1:
            raise OpError(
                "stack_module_state(models)",
                f"{name} requires grad in some models only",
                "a parameter requires grad in all models or in none",
                "set requires_grad alike",
            )
        return functions.stack([t.detach() for t in tensors]).requires_grad_(tensors[0].requires_grad)

    parameters = {
        k: stack_tensors(k, [dict(m.named_parameters())[k] for m in models]) for k, _ in models[0].named_parameters()
    }
    buffers = {k: functions.stack([dict(m.named_buffers())[k] for m in models]) for k, _ in models[0].named_buffers()}
    return parameters, buffers


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """Return the function itself: arrays of JAX are never mutated."""
    return func
