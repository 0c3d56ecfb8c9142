"""`state_dict` and `load_state_dict` of modules: parameters and persistent buffers by name.

Loading copies values into the existing tensors, so a module keeps its own dtype, placement and sbp: a state
saved under one layout loads into any other. Local tensors load into local ones and global into global ones; the other
kind raises, as everywhere, and `sbpjax.utils.global_view` converts a whole state from one kind to the other. Nothing is
copied before the whole state is known to fit. With ``assign=True`` the saved tensors themselves take the place.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.from_data import tensor as _tensor
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.errors import OpTypeError, StateDictError
from sbpjax.nn.names import missing_extra_state_error
from sbpjax.nn.parameter import Parameter
from sbpjax.sbp import broadcast

if TYPE_CHECKING:
    from sbpjax.nn.module import Module

EXTRA_STATE_KEY = "_extra_state"


class ExtraState:
    """State of a module besides parameters and buffers; a base of `Module`."""

    def get_extra_state(self) -> Any:
        """Return further state for `state_dict`; override together with `set_extra_state`."""
        raise missing_extra_state_error(self, "get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned; override together with it."""
        raise missing_extra_state_error(self, "set_extra_state")


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """Names that did not fit in `load_state_dict`: ``missing_keys`` and ``unexpected_keys``, two lists of names."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def state_dict(module: Module, destination: Any, prefix: str, keep_vars: bool) -> dict[str, Any]:
    """Collect the state of `module` and its children under `prefix`; see `Module.state_dict`."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()  # type: ignore[attr-defined]
    local = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = local  # type: ignore[attr-defined]
    for hook in list(module._state_dict_pre_hooks.values()):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in list(module._state_dict_hooks.values()):
        result = hook(module, destination, prefix, local)
        if result is not None:
            destination = result
    return destination


def save_own(module: Module, destination: dict, prefix: str, keep_vars: bool) -> None:
    """Put the state that `module` itself owns into `destination`; the default of `Module._save_to_state_dict`."""
    for name, tensor in module._parameters.items():
        if tensor is not None:
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
    for name, tensor in module._buffers.items():
        if tensor is not None and name not in module._non_persistent_buffers_set:
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
    if type(module).get_extra_state is not ExtraState.get_extra_state:
        destination[prefix + EXTRA_STATE_KEY] = module.get_extra_state()


class LoadFindings(list):
    """Errors found in a state, one text each, and the writes deferred until there are none.

    Attributes:
        writes: for every tensor that fits, the function that loads it.
        kinds: of the first pair of a local and a global tensor, its name and the target; None if there is none.
    """

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[Callable[[], None]] = []
        self.kinds: tuple[str, Tensor] | None = None


def load_state_dict(module: Module, state: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Copy `state` into `module` and its children; see `Module.load_state_dict`."""
    operation = f"{type(module).__name__}.load_state_dict(...)"
    if not isinstance(state, Mapping):
        raise OpTypeError(
            operation,
            f"a {type(state).__name__}",
            "a state is dict-like: names to tensors",
            "pass the result of state_dict(), e.g. utils.load(path)['model']",
        )
    metadata = getattr(state, "_metadata", None)
    state = OrderedDict(state)
    missing: list[str] = []
    unexpected: list[str] = []
    found = LoadFindings()
    visited: list[Module] = []

    def load_child(child: Module, local_state: dict, prefix: str) -> None:
        local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
        if assign:
            local_metadata = {**local_metadata, "assign_to_params_buffers": True}
        child._load_from_state_dict(local_state, prefix, local_metadata, True, missing, unexpected, found)
        for name, grandchild in child._modules.items():
            if grandchild is not None:
                start = f"{prefix}{name}."
                load_child(grandchild, {k: v for k, v in local_state.items() if k.startswith(start)}, start)
        visited.append(child)

    load_child(module, state, "")
    incompatible = IncompatibleKeys(missing, unexpected)
    hooks = [(child, hook) for child in visited for hook in child._load_state_dict_post_hooks.values()]
    if not hooks:  # a hook sees the loaded module, and may take keys off the lists
        _refuse(operation, found, incompatible, strict)
    _refuse(operation, found, incompatible, False)
    for write in found.writes:
        write()
    for child, hook in hooks:
        hook(child, incompatible)
    _refuse(operation, found, incompatible, strict)
    return incompatible


def _refuse(operation: str, found: LoadFindings, keys: IncompatibleKeys, strict: bool) -> None:
    """Raise if anything was found that does not fit, or, with `strict`, names that differ."""
    seen = list(found)
    if strict and keys.missing_keys:
        seen.insert(0, f"Missing key(s) in state_dict: {_quote_names(keys.missing_keys)}.")
    if strict and keys.unexpected_keys:
        seen.insert(0, f"Unexpected key(s) in state_dict: {_quote_names(keys.unexpected_keys)}.")
    if not seen:
        return
    rule = "the state contains every name of the module, with a tensor of the same shape, and no other names"
    if found.kinds is not None:
        name, target = found.kinds
        rule = "local tensors load into local ones and global into global ones"
        view = "to_local(state)"
        if target.is_global:
            everywhere = ", ".join(["sbpjax.sbp.broadcast"] * len(target.placement.hierarchy))
            view = f"to_global(state, {target.placement!r}, [{everywhere}])"
        fix = f"load_state_dict(sbpjax.utils.global_view.{view}); {name!r} is the first of them"
    elif found:
        fix = "build the module with the sizes of the one that was saved"
    else:
        fix = "strict=False loads the names that both have; or compare with module.state_dict().keys()"
    raise StateDictError(operation, "\n        ".join(seen), rule, fix)


def _quote_names(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def load_own(
    module: Module,
    state: dict[str, Any],
    prefix: str,
    local_metadata: dict,
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
    assign: bool,
) -> None:
    """Load the tensors that `module` itself owns; the default of `Module._load_from_state_dict`."""
    for hook in list(module._load_state_dict_pre_hooks.values()):
        hook(module, state, prefix, local_metadata, strict, missing, unexpected, errors)
    buffers = {k: v for k, v in module._buffers.items() if k not in module._non_persistent_buffers_set}
    for name, tensor in itertools.chain(module._parameters.items(), buffers.items()):
        if tensor is None:
            continue
        key = prefix + name
        if key not in state:
            if strict:
                missing.append(key)
            continue
        value = state[key]
        if isinstance(value, np.ndarray):
            value = _to_target_devices(value, tensor)
        if not isinstance(value, Tensor):
            errors.append(f'"{key}" is a {type(value).__name__}, not an sbpjax.Tensor')
            continue
        if tuple(value.shape) != tuple(tensor.shape):
            errors.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                f"the shape in current model is {tensor.shape}."
            )
            continue
        if assign:
            if isinstance(tensor, Parameter) and not isinstance(value, Parameter):
                value = Parameter(value, requires_grad=tensor.requires_grad)
            write = partial(setattr, module, name, value)
        elif value.is_global == tensor.is_global:
            write = partial(copy_value, tensor, value)
        else:
            kind, other = ("local", "global") if tensor.is_global else ("global", "local")
            errors.append(f"{key} is {kind} in the state and {other} in the module")
            if isinstance(errors, LoadFindings) and errors.kinds is None:
                errors.kinds = key, tensor
            continue
        _write(errors, write)
    _load_extra(module, state, prefix, strict, missing, errors)
    if strict:
        _find_unexpected(module, state, prefix, unexpected)


def _to_target_devices(value: np.ndarray, target: Tensor) -> Tensor:
    """Return an array as a tensor on the target's devices; for a global target it is the logical value."""
    if not target.is_global:
        return _tensor(value)
    return _tensor(value, placement=target.placement, sbp=[broadcast] * len(target.placement.hierarchy))


def _write(errors: list[str], write: Callable[[], None]) -> None:
    """Defer the write to `load_state_dict`, or write at once where a module's own loading is called alone."""
    if isinstance(errors, LoadFindings):
        errors.writes.append(write)
    else:
        write()


def copy_value(target: Tensor, value: Tensor) -> None:
    """Write `value` into `target` in place: dtype, placement and sbp stay the target's."""
    with no_grad():
        target.copy_(value)


def _load_extra(module: Module, state: dict, prefix: str, strict: bool, missing: list[str], errors: list[str]) -> None:
    key = prefix + EXTRA_STATE_KEY
    if type(module).set_extra_state is not ExtraState.set_extra_state:
        if key in state:
            _write(errors, partial(module.set_extra_state, state[key]))
        elif strict:
            missing.append(key)


def _find_unexpected(module: Module, state: dict, prefix: str, unexpected: list[str]) -> None:
    extra = type(module).set_extra_state is not ExtraState.set_extra_state
    for key in state:
        if not key.startswith(prefix) or (extra and key == prefix + EXTRA_STATE_KEY):
            continue
        first, *rest = key[len(prefix) :].split(".", 1)
        known = module._modules if rest else {**module._parameters, **module._buffers}
        persistent = first not in module._non_persistent_buffers_set
        if first not in known or (not rest and not persistent):
            unexpected.append(key)
