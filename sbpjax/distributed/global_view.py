"""Conversion of nested structures to global or local, and `global_mode` for a block of code.

`to_global` and `to_local` convert every tensor in a dict, list or tuple at once. Inside `global_mode`, code that was
written for local tensors makes global ones: ``zeros(8, 4)``, whatever its ``device``, is on the mode's placement.
"""

from __future__ import annotations

from typing import Any

from sbpjax._core.runtime.context_exit import ContextExit, restore_last
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.mode import mode
from sbpjax.errors import SbpTypeError
from sbpjax.sbp.algebra import sbp as Sbp


def to_global(input, placement=None, sbp: Any = None, warn_on_non_tensor_leaf: bool = True, **options):
    """Return ``input`` with every tensor in it made global; see `sbpjax.Tensor.to_global`.

    Args:
        input: a tensor, or dicts, lists and tuples of tensors and other values, which stay unchanged.
        placement: the placement of the results; a global tensor's own by default.
        sbp: the nd-sbp they should have, or a function ``f(input, tensor)`` that returns it for each tensor.
        warn_on_non_tensor_leaf: accepted; other values stay unchanged without a warning.
        options: ``grad_sbp`` and ``check_meta``, as for a tensor.

    Example:
        >>> p = sbpjax.placement("cpu", [0, 1])
        >>> sbpjax.utils.global_view.to_global({"x": sbpjax.ones(4)}, p, sbpjax.sbp.split(0))["x"].sbp
        (sbpjax.sbp.split(dim=0),)
    """
    # An sbp is callable too: OneFlow's older form is `broadcast()`.
    sbp_of = sbp if callable(sbp) and not isinstance(sbp, Sbp) else lambda input, tensor: sbp
    return _map_tensors(input, lambda x: x.to_global(placement, sbp_of(input, x), **options))


def to_local(input, *, copy: bool = False):
    """Return ``input`` with every global tensor in it made local; local ones stay."""
    return _map_tensors(input, lambda x: x.to_local(copy=copy) if x.is_global else x)


class global_mode:
    """Make new tensors without a placement global within a block; ``to_local`` does nothing there.

    Args:
        enabled: whether the mode is on in the block.
        placement: the placement of new tensors.
        sbp: their nd-sbp.

    Raises:
        SbpTypeError: it is enabled without placement and sbp.

    Example:
        >>> with sbpjax.utils.global_view.global_mode(True, placement=p, sbp=sbpjax.sbp.broadcast):
        ...     sbpjax.ones(2, device="cpu").is_global
        True
    """

    def __init__(self, enabled: bool, placement: Any = None, sbp: Any = None) -> None:
        if enabled and (placement is None or sbp is None):
            seen, rule = f"placement={placement}, sbp={sbp}", "an enabled global_mode needs placement and sbp"
            fix = "global_mode(True, placement=p, sbp=sbpjax.sbp.broadcast)"
            raise SbpTypeError("global_mode(enabled, placement, sbp)", seen, rule, fix)
        nd = tuple(sbp) if isinstance(sbp, list) else sbp
        self._wanted = (placement, nd) if enabled else None
        self._before: list[tuple | None] = []

    def __enter__(self) -> global_mode:
        self._before.append(mode.everywhere)
        mode.everywhere = self._wanted
        return self

    __exit__ = ContextExit(lambda self: restore_last(mode, "everywhere", self._before))


class current_global_mode:
    """State of the current `global_mode`: whether it is on, and its ``placement`` and ``sbp``."""

    def __init__(self) -> None:
        self.is_enabled = mode.everywhere is not None
        self.placement, self.sbp = mode.everywhere or (None, None)


def _map_tensors(value, function):
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        mapped: Any = type(value)((k, _map_tensors(v, function)) for k, v in value.items())
        if hasattr(value, "_metadata"):  # of a module's state: the versions of its modules
            mapped._metadata = vars(value)["_metadata"]
        return mapped
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_map_tensors(v, function) for v in value])
    if isinstance(value, (list, tuple)):
        return type(value)(_map_tensors(v, function) for v in value)
    return value
