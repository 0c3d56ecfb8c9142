"""View steps: pure functions that select part of a storage, each with its inverse write and stride rule.

Each step is a pure function that *looks* (``permute(x, dims=(1, 0))``), with a partner that *puts* a value of the
view's shape back into the viewed array, and a rule for strides, as PyTorch counts them: they decide whether a reshape
can be a view at all. Worked case: ``x`` of shape (2, 3) has strides (3, 1); ``x.t()`` has (1, 3); ``x.t().view(6)``
would need one stride that walks 0, 3, 1, 4, …, which does not exist, so it is an error and ``reshape`` copies.

The start of a slice is an input, not an attribute, so ``x[i]`` in a loop compiles once.
"""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

# ------------------------------------------------------------------------------------------------------------- reshape


def reshape(x, /, shape):
    """Return the elements in row-major order in another shape."""
    return lax.reshape(x, shape) if tuple(x.shape) != shape else x


def _put_reshape(x, value, /, shape):
    return lax.reshape(value, x.shape)


@functools.lru_cache(maxsize=4096)
def reshaped_strides(shape, strides, new_shape):
    """Return the strides of a reshape that shows the same elements, or None if no strides do."""
    if not all(isinstance(n, (int, np.integer)) for n in (*shape, *new_shape)):
        return None  # a size is a symbol: whether the dims are contiguous is unknown
    if math.prod(shape) == 0:
        return contiguous_strides(new_shape) if tuple(shape) != tuple(new_shape) else tuple(strides)
    if not shape:
        return (1,) * len(new_shape)
    # from the back: dims that are contiguous in memory make runs of (elements, stride of the last)
    runs: list[tuple[int, int]] = []
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if runs and (n == 1 or stride == runs[-1][0] * runs[-1][1]):
            runs[-1] = (runs[-1][0] * n, runs[-1][1])
        else:
            runs.append((n, stride))
    # each new dim takes its elements from one run; dims of size 1 go with the run after them
    result, left = [0] * len(new_shape), list(new_shape)
    for count, step in runs:
        taken = 1
        while left and (taken < count or left[-1] == 1):
            n = left.pop()
            result[len(left)] = step * taken
            taken *= n
        if taken != count:
            return None
    return tuple(result)


@functools.lru_cache(maxsize=4096)
def contiguous_strides(shape) -> tuple[int, ...]:
    """Return the strides of a row-major array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


# ------------------------------------------------------------------------------------------------- dims moved and added


def permute(x, /, dims):
    """Return the dims in another order."""
    return lax.transpose(x, dims)


def _put_permute(x, value, /, dims):
    return lax.transpose(value, tuple(int(i) for i in np.argsort(dims)))


def squeeze(x, /, dims):
    """Drop dims of size 1."""
    return lax.squeeze(x, dims)


def _put_squeeze(x, value, /, dims):
    return lax.reshape(value, x.shape)


def unsqueeze(x, /, dim):
    """Add a dim of size 1."""
    return lax.expand_dims(x, (dim,))


def _put_unsqueeze(x, value, /, dim):
    return lax.squeeze(value, (dim,))


def expand(x, /, shape):
    """Repeat dims of size 1, and add leading ones, without new memory."""
    offset = len(shape) - x.ndim
    return lax.broadcast_in_dim(x, shape, tuple(range(offset, len(shape))))


def _put_expand(x, value, /, shape):
    """Put a value where an element shows several times: the last place counts in which it is new."""
    if 0 in shape:
        return x
    offset = len(shape) - x.ndim
    many = [d for d in range(len(shape)) if d < offset or x.shape[d - offset] != shape[d]]
    if not many:
        return lax.reshape(value, x.shape)
    own = [d for d in range(len(shape)) if d not in many]
    count = math.prod(shape[d] for d in many)

    # Every element with the places where it shows, in a last dim.
    def rows(v):
        return lax.reshape(lax.transpose(v, (*own, *many)), (*(shape[d] for d in own), count))

    old, new = rows(expand(x, shape)), rows(value)
    # NaN differs from itself; a NaN that stays NaN is not new.
    changed = (old != new) & ~((old != old) & (new != new))
    place = jnp.where(changed, lax.broadcasted_iota(np.int32, changed.shape, len(own)), np.int32(-1))
    last = lax.reduce_max(place, (len(own),))
    found = jnp.take_along_axis(new, jnp.maximum(last, 0)[..., None], axis=-1)[..., 0]
    return lax.reshape(found, x.shape)


# ---------------------------------------------------------------------------------------------------------- basic index


def index(x, /, *starts, spec):
    """Return a rectangular part.

    Args:
        x: the array.
        starts: the first index for each entry of ``spec`` without one, as integer scalars.
        spec: for each dim ``None`` (all of it), ``(size, stride, start)`` for a slice, or ``(None, 1, start)`` for
            one index, whose dim goes away. ``start`` is None if it comes as an input.
    """
    begin, dynamic = _begin(starts, spec)
    spans = tuple(n if s is None else _span(s) for n, s in zip(x.shape, spec, strict=True))
    strides = _steps(spec)
    if dynamic:
        # `dynamic_slice` knows no strides: all that the slice reaches over first, then every k-th of it.
        out = lax.dynamic_slice(x, begin, spans)
        if any(k > 1 for k in strides):
            out = lax.slice(out, (0,) * x.ndim, out.shape, strides)
    else:
        out = lax.slice(x, begin, tuple(b + n for b, n in zip(begin, spans, strict=True)), strides)
    dropped = _dropped_dims(spec)
    return lax.squeeze(out, dropped) if dropped else out


def _steps(spec) -> tuple[int, ...]:
    """Return the step along each dim; that of a slice of one element is always 1."""
    return tuple(1 if s is None or s[0] is None or s[0] < 2 else s[1] for s in spec)


def _span(entry) -> int:
    """Return how many elements of its dim a slice reaches over."""
    size, stride, _ = entry
    return 1 if size is None else max(0, (size - 1) * stride + 1)


def _dropped_dims(spec) -> tuple[int, ...]:
    return tuple(d for d, s in enumerate(spec) if s is not None and s[0] is None)


def _begin(starts, spec) -> tuple[tuple, bool]:
    """Return the first index of each dim, and whether any of them is an input."""
    starts = iter(starts)
    begin = [0 if s is None else next(starts) if s[2] is None else s[2] for s in spec]
    if all(isinstance(b, int) for b in begin):
        return tuple(begin), False
    # All of one dtype: `dynamic_slice` refuses mixed ones, and int64 addresses more than 2**31 elements.
    return tuple(np.int64(b) if isinstance(b, int) else lax.convert_element_type(b, np.int64) for b in begin), True


def _put_index(x, value, /, *starts, spec):
    begin, _ = _begin(starts, spec)
    dropped = _dropped_dims(spec)
    value = lax.expand_dims(value, dropped) if dropped else value
    begin = [np.int64(b) if isinstance(b, int) else b for b in begin]
    strides = _steps(spec)
    if any(k > 1 for k in strides):
        spans = tuple(n if s is None else _span(s) for n, s in zip(x.shape, spec, strict=True))
        # The elements between those of a strided part are unchanged: they are read, and written back with them.
        span = lax.dynamic_slice(x, begin, spans)
        value = span.at[tuple(slice(None, None, k) for k in strides)].set(value)
    return lax.dynamic_update_slice(x, value, begin)


def _strides_index(shape, strides, /, *starts, spec):
    kept = [(n, k, s) for n, k, s in zip(shape, strides, spec, strict=True) if s is None or s[0] is not None]
    new_shape = tuple(n if s is None else s[0] for n, _, s in kept)
    return new_shape, tuple(k if s is None else k * s[1] for _, k, s in kept)


# ---------------------------------------------------------------------------------------------------- windows, diagonal


def unfold(x, /, dim, size, step):
    """Return windows of ``size`` along a dim, every ``step``; the window is the last dim."""
    count = (x.shape[dim] - size) // step + 1
    starts = np.arange(count) * step
    # Every index is inside; "clip" spares the mask that jnp's default mode computes.
    taken = jnp.take(x, (starts[:, None] + np.arange(size)[None]).reshape(-1), axis=dim, mode="clip")
    split = lax.reshape(taken, (*x.shape[:dim], count, size, *x.shape[dim + 1 :]))
    return jnp.moveaxis(split, dim + 1, -1)


def _put_unfold(x, value, /, dim, size, step):
    count = (x.shape[dim] - size) // step + 1
    where = (np.arange(count)[:, None] * step + np.arange(size)[None]).reshape(-1)
    flat = jnp.moveaxis(value, -1, dim + 1)
    flat = lax.reshape(flat, (*x.shape[:dim], count * size, *x.shape[dim + 1 :]))
    return x.at[(slice(None),) * dim + (where,)].set(flat)


def _strides_unfold(shape, strides, /, dim, size, step):
    count = (shape[dim] - size) // step + 1
    new_shape = (*shape[:dim], count, *shape[dim + 1 :], size)
    return new_shape, (*strides[:dim], strides[dim] * step, *strides[dim + 1 :], strides[dim])


def diagonal(x, /, offset, dim1, dim2):
    """Return the diagonal of two dims as the last dim."""
    return jnp.diagonal(x, offset, dim1, dim2)


def _put_diagonal(x, value, /, offset, dim1, dim2):
    count = value.shape[-1]
    rows = np.arange(count) + max(-offset, 0)
    columns = np.arange(count) + max(offset, 0)
    moved = jnp.moveaxis(x, (dim1, dim2), (-2, -1))
    return jnp.moveaxis(moved.at[..., rows, columns].set(value), (-2, -1), (dim1, dim2))


def _strides_diagonal(shape, strides, /, offset, dim1, dim2):
    rest = [d for d in range(len(shape)) if d not in (dim1, dim2)]
    rows, columns = shape[dim1] - max(-offset, 0), shape[dim2] - max(offset, 0)
    count = max(0, min(rows, columns))
    return (*[shape[d] for d in rest], count), (*[strides[d] for d in rest], strides[dim1] + strides[dim2])


def read_strided(x, /, size, stride, offset):
    """Return the elements of row-major memory at ``offset + sum(index * stride)``."""
    return lax.reshape(x, (math.prod(x.shape),))[_memory_places(size, stride, offset)]


def _memory_places(size, stride, offset):
    places = np.asarray(offset)
    for n, k in zip(size, stride, strict=True):
        places = places[..., None] + np.arange(n) * k
    return places


def _put_strided(x, value, /, size, stride, offset):
    flat = lax.reshape(x, (math.prod(x.shape),))
    return lax.reshape(flat.at[_memory_places(size, stride, offset)].set(value), x.shape)


def alias(x, /):
    """Return the same elements."""
    return x


# ------------------------------------------------------------------------------------------------------------- complex


def conj(x, /):
    """Return the complex conjugate."""
    return lax.conj(x)


def real_part(x, /):
    """Return the real part."""
    return lax.real(x)


def imag_part(x, /):
    """Return the imaginary part."""
    return lax.imag(x)


def as_real(x, /):
    """Return real and imaginary part along a new last dim."""
    return lax.concatenate([lax.expand_dims(part(x), (x.ndim,)) for part in (lax.real, lax.imag)], x.ndim)


def as_complex(x, /):
    """Return the pairs along the last dim as complex numbers."""
    last = x.ndim - 1
    return lax.complex(*[lax.index_in_dim(x, i, last, keepdims=False) for i in (0, 1)])


# --------------------------------------------------------------------------------------------------------------- tables


def _pick(dims_of):
    def rule(shape, strides, /, **static):
        dims = dims_of(len(shape), **static)
        return tuple(shape[d] for d in dims), tuple(strides[d] for d in dims)

    return rule


def _strides_unsqueeze(shape, strides, /, dim):
    stride = shape[dim] * strides[dim] if dim < len(shape) else 1
    return (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], stride, *strides[dim:])


def _strides_expand(shape, strides, /, new):
    offset = len(new) - len(shape)
    widened = [0 if n == 1 and m != 1 else s for n, s, m in zip(shape, strides, new[offset:], strict=True)]
    # A leading dim of size 1 has the stride that unsqueeze gives it.
    for dim in reversed(range(offset)):
        widened.insert(0, new[dim + 1] * widened[0] if shape and new[dim] == 1 else 0)
    return new, tuple(widened)


PUT = {
    reshape: _put_reshape,
    permute: _put_permute,
    squeeze: _put_squeeze,
    unsqueeze: _put_unsqueeze,
    expand: _put_expand,
    index: _put_index,
    unfold: _put_unfold,
    diagonal: _put_diagonal,
    read_strided: _put_strided,
    alias: lambda x, value, /: value,
    conj: lambda x, value, /: lax.conj(value),
    real_part: lambda x, value, /: lax.complex(lax.real(value), lax.imag(x)),
    imag_part: lambda x, value, /: lax.complex(lax.real(x), lax.real(value)),
    as_real: lambda x, value, /: as_complex(value),
    as_complex: lambda x, value, /: as_real(value),
}
STRIDES = {
    reshape: lambda shape, strides, /, **s: (s["shape"], reshaped_strides(shape, strides, s["shape"])),
    permute: _pick(lambda n, dims: dims),
    squeeze: _pick(lambda n, dims: [d for d in range(n) if d not in dims]),
    unsqueeze: _strides_unsqueeze,
    expand: lambda shape, strides, /, **s: _strides_expand(shape, strides, s["shape"]),
    index: _strides_index,
    unfold: _strides_unfold,
    diagonal: _strides_diagonal,
    read_strided: lambda shape, strides, /, **s: (s["size"], s["stride"]),
    alias: lambda shape, strides, /: (shape, strides),
    conj: lambda shape, strides, /: (shape, strides),
    # In real numbers, of which a complex one has two.
    real_part: lambda shape, strides, /: (shape, tuple(2 * k for k in strides)),
    imag_part: lambda shape, strides, /: (shape, tuple(2 * k for k in strides)),
    as_real: lambda shape, strides, /: ((*shape, 2), (*[2 * k for k in strides], 1)),
    as_complex: lambda shape, strides, /: (shape[:-1], tuple(k // 2 for k in strides[:-1])),
}
# Their value has another dtype than the viewed array.
_OWN_DTYPE = (as_real, as_complex)


def apply_steps(x, /, *starts, steps):
    """Return the part that a chain of steps selects; ``steps`` is a tuple of ``(fn, static, number of starts)``."""
    for fn, static, count in steps:
        x = fn(x, *starts[:count], **dict(static))
        starts = starts[count:]
    return x


def put(x, value, /, *starts, steps):
    """Return ``x`` with ``value`` in the part that a chain of steps selects."""
    if not steps:
        return lax.convert_element_type(value, x.dtype)
    (fn, static, count), rest = steps[0], steps[1:]
    keywords = dict(static)
    if rest:
        # From the root inwards: the part of a step is read, the value is put into it by the later steps, and it is
        # put back.
        value = put(fn(x, *starts[:count], **keywords), value, *starts[count:], steps=rest)
    value = value if fn in _OWN_DTYPE else lax.convert_element_type(value, x.dtype)
    return PUT[fn](x, value, *starts[:count], **keywords)


def put_row(x, value, /, *starts, steps):
    """Return `put` of a row of an expanded tensor, an op of its own: its backward may see the old elements changed.

    The put compares with them, which PyTorch has no need of, so they are not watched (`_core.tensor.dispatch.op`).
    """
    return put(x, value, *starts, steps=steps)
