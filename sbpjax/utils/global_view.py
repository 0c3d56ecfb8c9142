"""Local and global views of nested structures: every tensor in a dict, list or tuple at once."""

from __future__ import annotations

from typing import Any

from sbpjax.tensor import Tensor


def to_global(value, placement=None, sbp=None, **options):
    """Return ``value`` with every tensor in it made global; see `sbpjax.Tensor.to_global`.

    Args:
        value: a tensor, or dicts, lists and tuples of tensors and other things, which stay as they are.
        placement: where the tensors should lie; a global tensor's own by default.
        sbp: the nd-sbp they should have.
        options: ``grad_sbp`` and ``check_meta``, as for a tensor.

    Example:
        >>> p = sbpjax.placement("cpu", [0, 1])
        >>> sbpjax.utils.global_view.to_global({"x": sbpjax.ones(4)}, p, sbpjax.sbp.split(0))["x"].sbp
        (sbpjax.sbp.split(dim=0),)
    """
    return _mapped(value, lambda x: x.to_global(placement, sbp, **options))


def to_local(value):
    """Return ``value`` with every global tensor in it made local; local ones stay."""
    return _mapped(value, lambda x: x.to_local() if x.is_global else x)


def _mapped(value, function):
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        mapped: Any = type(value)((k, _mapped(v, function)) for k, v in value.items())
        if hasattr(value, "_metadata"):  # of a module's state: the versions of its modules
            mapped._metadata = vars(value)["_metadata"]
        return mapped
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_mapped(v, function) for v in value])
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(v, function) for v in value)
    return value
