"""Named splits (`hsplit`, `vsplit`, `dsplit`), slices by triples, and copies of views."""

from __future__ import annotations

import numpy as np

from sbpjax._core import functions
from sbpjax._core.tensor.calls.binding import into_out
from sbpjax._core.tensor.handle.size import Size
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage import splitting
from sbpjax.errors import OpError, OpTypeError


def broadcast_shapes(*shapes) -> tuple:
    """Return the common shape of several shapes."""
    return Size(np.broadcast_shapes(*[tuple(s) if isinstance(s, (tuple, list)) else (s,) for s in shapes]))


def hsplit(input: Tensor, indices_or_sections) -> tuple:
    """Return `tensor_split` along dim 1, or 0 of a vector."""
    return _split_evenly(input, indices_or_sections, 0 if input.ndim == 1 else 1, "hsplit", 1)


def vsplit(input: Tensor, indices_or_sections) -> tuple:
    """Return `tensor_split` along dim 0."""
    return _split_evenly(input, indices_or_sections, 0, "vsplit", 2)


def _split_evenly(x: Tensor, parts, dim: int, name: str, least: int) -> tuple:
    """Return `tensor_split` along a dim, whose size a number of parts divides."""
    if x.ndim < least:
        rule = f"{name} requires a tensor with at least {least} dimensions"
        raise OpError(f"{name}(x, ...)", f"x {list(x.shape)}", rule, "x.tensor_split(..., dim=-1)")
    if isinstance(parts, int) and (parts < 1 or x.shape[dim] % parts):
        rule = f"the size of dim {dim} is divisible by the number of parts, {parts}"
        raise OpError(f"{name}(x, {parts})", f"x {list(x.shape)}", rule, f"x.tensor_split({parts}, {dim})")
    return splitting.tensor_split(x, parts, dim)


def dsplit(input: Tensor, indices_or_sections) -> tuple:
    """Return `tensor_split` along dim 2."""
    return _split_evenly(input, indices_or_sections, 2, "dsplit", 3)


def split_with_sizes(input: Tensor, split_sizes, dim: int = 0) -> tuple:
    """Return views of parts of a dim of the sizes listed."""
    return input.split(list(split_sizes), dim)


def unsafe_split(input: Tensor, split_size, dim: int = 0) -> tuple:
    """Return `split` into parts of one size."""
    if not isinstance(split_size, int):
        rule = f"argument 'split_size' must be int, not {type(split_size).__name__}"
        raise OpTypeError("x.unsafe_split(...)", repr(split_size)[:40], rule, "x.split([...])")
    return input.split(split_size, dim)


def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a copy of `narrow`."""
    return input.narrow(dim, start, length).clone()


_VIEWS = """alias as_strided detach diagonal expand permute select slice split split_with_sizes squeeze t transpose
 unbind unfold unsqueeze view view_as_complex view_as_real""".split()


def _copy_variant(name: str):
    def function(input, *args, out=None, **options):
        if name == "alias":
            viewed = _alone(input, *args, **options)
        elif name == "slice":
            viewed = slice_(input, *args, **options)
        elif hasattr(Tensor, name):
            viewed = getattr(input, name)(*args, **options)
        else:
            viewed = getattr(functions, name)(input, *args, **options)
        copied = tuple(v.clone() for v in viewed) if isinstance(viewed, tuple) else viewed.clone()
        return copied if out is None else into_out(out, copied)

    function.__name__ = function.__qualname__ = f"{name}_copy"
    function.__doc__ = f"Return a copy of the result of `{name}`."
    return function


def _alone(input):
    return input


for _name in _VIEWS:
    if _name not in ("slice", "as_strided"):
        globals()[f"{_name}_copy"] = _copy_variant(_name)


def _slices(input: Tensor, several, operation: str) -> tuple:
    if not isinstance(several, (list, tuple)) or len(several) > input.ndim:
        rule = f"one (start, stop, step) for each of up to {input.ndim} dims"
        raise OpTypeError(operation, repr(several)[:60], rule, "[[None, None, None], [0, 2, 1]]")
    return tuple(slice(*each) for each in several)


def slice_(input: Tensor, slice_tup_list) -> Tensor:
    """Return the part that one ``(start, stop, step)`` per dim names; None is the default of each."""
    return input[_slices(input, slice_tup_list, "slice(x, ...)")]


def slice_update(input: Tensor, update: Tensor, slice_tup_list) -> Tensor:
    """Write a tensor into the part that one ``(start, stop, step)`` per dim names, and return the whole."""
    input[_slices(input, slice_tup_list, "slice_update(x, ...)")] = update
    return input
