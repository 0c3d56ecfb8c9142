"""Parameter groups: parameters with options of their own; PyTorch's checks of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sbpjax._core import naming
from sbpjax._core.runtime.user_line import warn
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.storage.version_counter import Group, Items
from sbpjax._core.tensor.tape.row_grad import request_row_gradient
from sbpjax.optim.check import params_type, params_value
from sbpjax.optim.options import plain_option

_NAMED = "sbpjax.optim.AdamW(list(model.named_parameters())), or all groups without names"


def make_group(param_group: dict[str, Any], defaults: dict[str, Any]) -> Group:
    """Return the group of a dict: parameters apart from their names, and defaults for absent options.

    Raises:
        TypeError: the parameters have no order, or are no tensors.
        ValueError: a parameter is not a leaf, or some have names and others none.
    """
    if not isinstance(param_group, Mapping):
        torchs = f"param_group must be a dict, but got {type(param_group)}"
        rule = torchs if naming.is_torch() else "param group must be a dict"
        raise params_type(param_group, f"{rule}: parameters under the key 'params', and their options")
    group = Group({k: v if k == "params" else plain_option(v) for k, v in param_group.items()})
    params = group["params"]
    if isinstance(params, set):
        rule = "optimizer parameters need to be organized in ordered collections; a set has no order"
        raise params_type(params, rule)
    group["params"] = params = Items([params] if isinstance(params, Tensor) else params)
    names = tuple(param[0] for param in params if isinstance(param, tuple))
    if names:
        group["param_names"] = names
        group["params"] = params = Items([p[1] if isinstance(p, tuple) else p for p in params])
        if len(names) != len(params):
            rule = "all optimizer params should be with/without names. Some param names are missing"
            raise params_value(f"{len(names)} names of {len(params)} parameters", rule, _NAMED)
    for param in params:
        if not isinstance(param, Tensor):
            rule = f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}"
            raise params_type(param, rule)
        if not param.is_leaf:
            seen = f"{param.dtype.name}{list(param.shape)} with grad_fn={param.grad_fn!r}"
            rule = "can't optimize a non-leaf Tensor" if naming.is_torch() else "parameters must be leaf tensor"
            rule += ": the next forward makes the result of an op anew, without the update"
            raise params_value(seen, rule, "x.detach().requires_grad_()")
    for name, value in defaults.items():
        group.setdefault(name, plain_option(value))
    return group


def check_added_group(group: Group, earlier: list[dict[str, Any]]) -> None:
    """Raise a ValueError for a group with a parameter of an earlier group, or with names where those have none."""
    params, names = group["params"], group.get("param_names")
    if len({id(p) for p in params}) != len(params):
        warn("optimizer contains a parameter group with duplicate parameters")
    taken = {id(p) for g in earlier for p in g["params"]}
    if any(("param_names" in g) != bool(names) for g in earlier):
        seen = "with names" if names else "without names"
        rule = "all optimizer param groups should be with/without names. cannot add param group"
        raise params_value(f"a group {seen}", f"{rule} {seen} to the optimizer", _NAMED)
    if any(id(p) in taken for p in params):
        rule = "some parameters appear in more than one parameter group"
        raise params_value("a parameter of an earlier group", rule)


def request_row_grads(params: Iterable[Tensor], wanted: bool) -> None:
    """Let matrices get gradients of rows, or no longer."""
    for param in params:
        if param.ndim >= 2:
            request_row_gradient(param, wanted)
