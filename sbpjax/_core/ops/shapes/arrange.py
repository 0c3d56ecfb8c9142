"""Rearrangement ops: cat, stack, repeat, pad, flip, roll, meshgrid.

Worked case: `pad(x, (1, 2), mode="constant")` widens the last dim by 1 in front and 2 at the end, as one ``pad``; the
other modes concatenate slices of x along that dim, so all other dims keep their split.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail, one, several, shape_text
from ..promote import cast, result_type
from .view import _shape, slice_dim


def _cat_error_rule(first, other, dim: int) -> str:
    """Return the rule that two shapes of a concatenation break."""
    if len(first) != len(other):
        return f"Tensors must have same number of dimensions: got {len(first)} and {len(other)} is expected."
    at = next(d for d, (a, b) in enumerate(zip(first, other)) if a != b and d != dim)
    sizes = f"Got {other[at]} and {first[at]} is expected in dimension {at}."
    return f"Sizes of tensors must match except in dimension {dim}. {sizes}"


def _stack_error_rule(arrays) -> str:
    """Return the rule that the shapes of a stack break."""
    if not arrays:
        return "stack expects a non-empty TensorList"
    at, x = next((i, x) for i, x in enumerate(arrays) if x.shape != arrays[0].shape)
    shapes = f"{shape_text(arrays[0].shape)} at first input and {shape_text(x.shape)} which index is {at}"
    return f"stack expects each tensor to be equal size, but got {shapes}"


def cat(*arrays, dim: int = 0):
    """Return the arrays put together along a dim, in their common dtype.

    Args:
        arrays: at least one; equal sizes but for ``dim`` (an empty 1-D one is skipped, as in torch).
        dim: any dim that they have.

    Raises:
        OpValueError: no tensors.
        OpError: one has no dims, or other sizes.

    Example:
        >>> x = flow.ones(4, 2).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> flow.cat([x, x], dim=1).shape, flow.cat([x, x], dim=1).sbp
        (sbpjax.Size([4, 4]), (sbpjax.sbp.split(dim=0),))
    """
    if not arrays:
        fail("value", "cat()", "no tensors", "at least one tensor is given", "cat([x])")
    dtype = result_type(*arrays)
    full = [x for x in arrays if x.shape != (0,)] or list(arrays[:1])
    ndim = full[0].ndim
    if ndim == 0:
        fail("shape", "cat(...)", "a 0-d tensor", "the tensors have at least 1 dim", "use stack")
    where = one(dim, ndim, "cat") if full[0].shape != (0,) else 0
    for x in full[1:]:
        if x.ndim != ndim or any(a != b for d, (a, b) in enumerate(zip(x.shape, full[0].shape)) if d != where):
            fail(
                "shape",
                f"cat(dim={dim})",
                "shapes " + ", ".join(str(x.shape) for x in full),
                _cat_error_rule(full[0].shape, x.shape, where),
                "slice or pad them first",
            )
    full = [cast(x, dtype) for x in full]
    return full[0] if len(full) == 1 else lax.concatenate(full, where)


def stack(*arrays, dim: int = 0):
    """Return arrays of one shape along a new dim.

    Args:
        dim: where the new dim is in the result.

    Returns:
        One dim more. Splits stay with their dims, a partial sum stays one.

    Raises:
        OpError: no tensors, or of several shapes.

    Example:
        >>> flow.stack([flow.tensor([1, 2]), flow.tensor([3, 4])], dim=1)
        tensor([[1, 3],
                [2, 4]])
    """
    if not arrays or any(x.shape != arrays[0].shape for x in arrays):
        fail(
            "shape",
            f"stack(dim={dim})",
            "shapes " + ", ".join(str(x.shape) for x in arrays),
            _stack_error_rule(arrays),
            "expand or reshape them first",
        )
    where = one(dim, arrays[0].ndim + 1, "stack")
    return cat(*(lax.expand_dims(x, (where,)) for x in arrays), dim=where)


def _at_least(x, ndim: int):
    return x if x.ndim >= ndim else lax.reshape(x, (1,) * (ndim - x.ndim) + x.shape)


def hstack(*arrays):
    """Return the arrays side by side: along dim 1, or along dim 0 for vectors.

    Returns:
        Splits of other dims stay; a split of the dim itself is moved first. A partial sum stays one.

    Example:
        >>> flow.hstack([flow.tensor([1, 2]), flow.tensor([3])])
        tensor([1, 2, 3])
    """
    arrays = [_at_least(x, 1) for x in arrays]
    return cat(*arrays, dim=0 if arrays[0].ndim == 1 else 1)


def vstack(*arrays):
    """Return the arrays one below the other; vectors are rows.

    Returns:
        Splits of other dims stay; a split of the dim itself is moved first. A partial sum stays one.

    Example:
        >>> flow.vstack([flow.tensor([1, 2]), flow.tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]])
    """
    return cat(*(_at_least(x, 2) for x in arrays), dim=0)


def dstack(*arrays):
    """Return the arrays along dim 2."""
    arrays = [_at_least(x, 2) for x in arrays]
    return cat(*(lax.expand_dims(x, (2,)) if x.ndim == 2 else x for x in arrays), dim=2)


def column_stack(*arrays):
    """Return the arrays side by side; vectors are columns."""
    return cat(*(lax.reshape(x, (x.size, 1)) if x.ndim < 2 else x for x in arrays), dim=1)


def repeat(x, /, repeats):
    """Return x repeated that often along each dim; surplus entries are new dims in front.

    Args:
        repeats: a number per dim, at least as many as dims.

    Returns:
        The sizes times the repeats. A split of a dim that is not repeated stays, a partial sum stays one.

    Raises:
        OpError: fewer numbers than dims.

    Example:
        >>> flow.tensor([1, 2]).repeat(2, 2)
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    repeats = _shape(repeats)
    if any(n < 0 for n in repeats):
        rule = f"Trying to create tensor with negative dimension {min(repeats)}"
        fail("shape", f"repeat({repeats})", f"x {x.shape}", rule, "numbers from 0")
    if len(repeats) < x.ndim:
        rule = "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        fail("shape", f"repeat({repeats})", f"x {x.shape}", rule, "use tile")
    x = _at_least(x, len(repeats))
    wide, places, final = [], [], []
    for size, times in zip(x.shape, repeats):
        if times != 1 and size != 1:
            wide.append(times)
        places.append(len(wide))
        wide.append(times if size == 1 else size)
        final.append(size * times)
    if 0 in repeats:
        return jnp.zeros(final, x.dtype)
    out = x if tuple(wide) == x.shape else lax.broadcast_in_dim(x, tuple(wide), tuple(places))
    return out if out.shape == tuple(final) else lax.reshape(out, tuple(final))


def tile(x, /, dims):
    """Return x repeated along its last dims; fewer numbers than dims leave the first dims alone.

    Args:
        dims: a number per dim.

    Returns:
        The sizes times the numbers. A split of a dim that is not repeated stays, a partial sum stays one.

    Example:
        >>> flow.tile(flow.tensor([1, 2]), (2,))
        tensor([1, 2, 1, 2])
    """
    dims = _shape(dims)
    return repeat(x, (1,) * (x.ndim - len(dims)) + dims)


def repeat_interleave(x, /, repeats, dim: int | None = None):
    """Return every element along a dim repeated, one after the other.

    Args:
        x: any array; without ``dim`` it is flattened.
        repeats: a number, or one number per element of the dim (a tuple; static, since it makes the shape).
        dim: the dim, or None.
    """
    if dim is None:
        x, dim = lax.reshape(x, (x.size,)), 0
    dim = one(dim, x.ndim, "repeat_interleave")
    if not isinstance(repeats, (int, np.integer)):
        if len(repeats) != x.shape[dim]:
            fail(
                "shape",
                f"repeat_interleave({repeats})",
                f"x {x.shape}",
                f"one number for each of {x.shape[dim]} elements",
                "",
            )
        index = np.repeat(np.arange(x.shape[dim]), np.asarray(repeats))
        return jnp.take(x, index, axis=dim, mode="clip") if index.size else slice_dim(x, dim, 0, 0)
    wide = (*x.shape[: dim + 1], int(repeats), *x.shape[dim + 1 :])
    out = lax.broadcast_in_dim(x, wide, tuple(d + (d > dim) for d in range(x.ndim)))
    return lax.reshape(out, (*x.shape[:dim], x.shape[dim] * int(repeats), *x.shape[dim + 1 :]))


def flip(x, /, dims):
    """Return x with the given dims reversed.

    Args:
        dims: one or several.

    Example:
        >>> flow.flip(flow.tensor([[1, 2], [3, 4]]), [0])
        tensor([[3, 4],
                [1, 2]])
    """
    dims = several(_shape(dims), x.ndim, "flip") if _shape(dims) else ()
    return lax.rev(x, dims) if dims else x


def fliplr(x, /):
    """Return x with dim 1 reversed."""
    if x.ndim < 2:
        fail("shape", "fliplr(x)", f"x {x.shape}", "Input must be >= 2-d.", "flip(x, (0,))")
    return flip(x, (1,))


def flipud(x, /):
    """Return x with dim 0 reversed."""
    if not x.ndim:
        fail("shape", "flipud(x)", "x ()", "x has at least 1 dim", "x.reshape(1)")
    return flip(x, (0,))


def rot90(x, /, k: int = 1, dims=(0, 1)):
    """Return x turned by k quarter turns in the plane of two dims."""
    a, b = several(dims, x.ndim, "rot90")
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    k %= 4
    if k == 0:
        return x
    if k == 2:
        return flip(x, (a, b))
    return lax.transpose(flip(x, (b,)), order) if k == 1 else flip(lax.transpose(x, order), (b,))


def roll(x, /, shifts, dims=None):
    """Return x with its elements moved along dims, those beyond the end coming in at the front.

    Args:
        shifts: how far, a number or one per dim.
        dims: one or several; by default the flattened tensor is rolled.

    Returns:
        The shape of ``x``. Splits of other dims stay, a partial sum stays one.

    Raises:
        OpError: not one shift per dim.

    Example:
        >>> flow.roll(flow.tensor([1, 2, 3, 4]), 1), flow.roll(flow.tensor([[1, 2], [3, 4]]), 1, dims=0)
        (tensor([4, 1, 2, 3]), tensor([[3, 4],
                [1, 2]]))
    """
    shifts = _shape(shifts)
    if dims is None or dims == ():
        return lax.reshape(roll(lax.reshape(x, (x.size,)), shifts, (0,)), x.shape)
    dims = _shape(dims)
    if len(dims) != len(shifts):
        rule = f"shifts and dimensions must align. shifts: {len(shifts)}, dims: {len(dims)}"
        fail("shape", f"roll({shifts}, {dims})", f"x {x.shape}", rule, "give as many shifts as dims")
    for shift, d in zip(shifts, dims):
        d = one(d, x.ndim, "roll")
        cut = -shift % max(x.shape[d], 1)
        if cut:
            x = lax.concatenate([slice_dim(x, d, cut, None), slice_dim(x, d, 0, cut)], d)
    return x


def pad(x, /, pad: tuple[int, ...], mode: str = "constant", value: float | None = None):
    """Return x widened at both ends of its last dims.

    Args:
        x: any array.
        pad: (front, end) of the last dim, then of the one before, …; negative numbers crop.
        mode: ``"constant"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        value: for ``"constant"``, 0 by default.

    Returns:
        The widened shape. Splits of dims that are not widened stay.

    Raises:
        OpError: more numbers than ends of dims, or the mode has not so many elements to give, or none would be left.
        OpValueError: a value with another mode than ``"constant"``.
        OpNotSupportedError: another mode.

    Example:
        >>> flow.nn.functional.pad(flow.tensor([[1, 2], [3, 4]]), (1, 0, 0, 1), value=9)
        tensor([[9, 1, 2],
                [9, 3, 4],
                [9, 9, 9]])
    """
    pad = tuple(pad)
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        fail(
            "shape",
            f"pad({pad})",
            f"x {x.shape}",
            "Padding length must be divisible by 2"
            if len(pad) % 2
            else f"Padding length too large: {len(pad)} numbers for {x.ndim} dims",
            "pad=(before, after)",
        )
    ends = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    for d, (a, b) in enumerate(ends):
        least = 1 if mode in ("reflect", "replicate") and (a or b) else 0
        cropped = min(a, 0) + min(b, 0) if mode in ("constant", "circular") else a + b
        if x.shape[d] + cropped < least:
            fail("shape", f"pad({pad})", f"x {x.shape}", f"dim {d} keeps a size of at least {least}", "crop less")
    if mode == "constant":
        config = [(a, b, 0) for a, b in ends]
        return x if not any(pad) else lax.pad(x, cast(0 if value is None else value, x.dtype), config)
    if mode not in _EDGES:
        rule = f"Unrecognised padding mode {mode}: it is 'constant' or one of {sorted(_EDGES)}"
        fail("unsupported", f"pad(mode={mode!r})", f"x {x.shape}", rule, "mode='constant'")
    if value:
        rule = f"Padding mode {mode!r} doesn't take in value argument"
        fail("value", f"pad(mode={mode!r})", f"value={value}", rule, "mode='constant', or leave value out")
    for d, (a, b) in enumerate(ends):
        if a or b:
            x = _pad_dim(x, d, a, b, mode)
    return x


def _reflect_borders(x, d: int, a: int, b: int):
    n = x.shape[d]
    return lax.rev(slice_dim(x, d, 1, a + 1), (d,)), lax.rev(slice_dim(x, d, n - 1 - b, n - 1), (d,))


def _replicate_borders(x, d: int, a: int, b: int):
    def edge(at: int, times: int):
        sizes = (*x.shape[:d], times, *x.shape[d + 1 :])
        return lax.broadcast_in_dim(slice_dim(x, d, at, at + 1), sizes, tuple(range(x.ndim)))

    return edge(0, a), edge(x.shape[d] - 1, b)


def _wrap_borders(x, d: int, a: int, b: int):
    return slice_dim(x, d, x.shape[d] - a, None), slice_dim(x, d, 0, b)


# mode: (front and end, the most that a dim of size n can give)
_EDGES = {
    "reflect": (_reflect_borders, lambda n: n - 1),
    "replicate": (_replicate_borders, lambda n: None if n else 0),
    "circular": (_wrap_borders, lambda n: n),
}


def _pad_dim(x, d: int, a: int, b: int, mode: str):
    edges, most = _EDGES[mode]
    limit = most(x.shape[d] + (min(a, 0) + min(b, 0) if mode == "circular" else 0))
    if limit is not None and max(a, b) > limit:
        fail(
            "shape",
            f"pad(mode={mode!r})",
            f"dim {d} of size {x.shape[d]}, padded by {a} and {b}",
            "Padding size should be less than the corresponding input dimension, but got: "
            f"padding ({a}, {b}) at dimension {d} of input {x.ndim}: {mode} padding is at most {limit} there",
            "pad less, or in several steps",
        )
    # A circle closes where it was cropped; reflected or repeated elements come from the whole dim.
    x = _crop_dim(x, d, a, b) if mode == "circular" else x
    front, behind = edges(x, d, max(a, 0), max(b, 0))
    parts = [front] * (a > 0) + [x] + [behind] * (b > 0)
    x = lax.concatenate(parts, d) if len(parts) > 1 else x
    return x if mode == "circular" else _crop_dim(x, d, a, b)


def _crop_dim(x, d: int, a: int, b: int):
    return slice_dim(x, d, max(-a, 0), x.shape[d] - max(-b, 0))


def meshgrid(*arrays, indexing: str = "ij"):
    """Return one grid per vector (or 0-d tensor), each of the shape of all sizes; ``"xy"`` swaps the first two dims."""
    if indexing not in ("ij", "xy"):
        fail(
            "value",
            f"meshgrid(indexing={indexing!r})",
            f"{len(arrays)} tensors",
            f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}',
            "indexing='ij'",
        )
    if len({x.dtype for x in arrays}) > 1:
        dtypes = ", ".join(str(x.dtype) for x in arrays)
        fail("type", "meshgrid()", f"tensors of {dtypes}", "all tensors have one dtype", "x.to(y.dtype)")
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        places[:2] = [1, 0]
    arrays = [_at_least(x, 1) for x in arrays]
    shape = [0] * len(arrays)
    for x, place in zip(arrays, places):
        shape[place] = x.shape[0]
    return tuple(lax.broadcast_in_dim(x, tuple(shape), (place,)) for x, place in zip(arrays, places))


def atleast(x, /, ndim: int):
    """Return x with at least 1, 2 or 3 dims, as torch's atleast_1d, atleast_2d and atleast_3d."""
    if x.ndim >= ndim:
        return x
    shapes = {1: (1,), 2: (1, *x.shape) if x.ndim else (1, 1)}
    shapes[3] = {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}.get(x.ndim, ())
    return lax.reshape(x, shapes[ndim])


def view_dtype(x, /, dtype):
    """Return the bits of x as elements of another dtype; the last dim grows or shrinks as the elements do not."""
    lead, last = x.shape[:-1], x.shape[-1] if x.ndim else 1
    row = last * x.dtype.itemsize  # bytes
    shape = (*lead, row // np.dtype(dtype).itemsize) if x.ndim else ()
    pairs = np.dtype(dtype).kind == "c"  # XLA casts no bits of complex numbers: pairs of floats replace them
    part = np.empty(0, dtype).real.dtype if pairs else np.dtype(dtype)
    parts = jnp.stack([jnp.real(x), jnp.imag(x)], -1) if x.dtype.kind == "c" else x
    ratio = part.itemsize // parts.dtype.itemsize
    if ratio > 1:  # several elements become one
        parts = lax.reshape(parts, (*lead, row // part.itemsize, ratio))
    parts = lax.bitcast_convert_type(parts, part)
    if pairs:
        parts = lax.reshape(parts, (*lead, row // part.itemsize // 2, 2))
        parts = lax.complex(parts[..., 0], parts[..., 1])
    return lax.reshape(parts, shape)
