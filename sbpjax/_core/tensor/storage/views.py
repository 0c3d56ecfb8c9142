"""View ops: `transpose permute expand narrow squeeze …`, which share storage with their input.

Each op resolves its arguments into one step of `_core.tensor.storage.view_steps`, runs it as an op (on the tape), and
ties the result to the storage of its input (`_core.tensor.storage.storage`).
"""

from __future__ import annotations

import math
from operator import index as as_int

from sbpjax._core.jax_private import is_symbolic_dim
from sbpjax._core.ops import dims as _dims
from sbpjax.errors import OpError, OpIndexError, OpTypeError, OpValueError

from ..dispatch import dispatch
from ..dispatch.op import op_of
from ..handle.mode import mode
from ..handle.tensor import Tensor
from . import lazy_views, view_steps
from .storage import share, strides_of


def view_of(x: Tensor, fn, static: tuple = (), starts: tuple = ()) -> Tensor:
    """Return the view of ``x`` through one step."""
    if starts:
        return link_view(x, dispatch.run(op_of(fn, static), (x, *starts)), (fn, static, starts))
    return _through_one(x, op_of(fn, static), (fn, static, ()))


def _through_one(x: Tensor, op, step: tuple) -> Tensor:
    outs = lazy_views.views(x, op)
    return link_view(x, dispatch.unary(op, x) if outs is None else outs[0], step)


# Without it ``x.reshape(4, 16, 4, 24).transpose(1, 2)`` takes 25 µs of Python instead of 12, and a step of
# `benchmarks/eager.py` 5 % more.
_known: dict = {}


def known_view(x: Tensor, key: tuple) -> Tensor | None:
    """Return the view of a plain tensor for arguments that were checked before, without checking them again."""
    found = _known.get(key)
    if found is None:
        return None
    return _through_one(x, *found)


def cache_view_step(key: tuple, fn, static: tuple) -> None:
    """Keep the step of a view for `known_view`."""
    if len(_known) > 20_000:
        _known.clear()
    _known[key] = op_of(fn, static), (fn, static, ())


def link_view(x: Tensor, out: Tensor, step: tuple) -> Tensor:
    """Make ``out``, computed from ``x`` by a step, a view of it."""
    share(x, out, (step,))
    old, new = x._meta, out._meta
    new.base = x if old is None or old.base is None else old.base
    # Inherited: a view of such a view is off the tape as well.
    new.no_grad_view = (old is not None and old.no_grad_view) or (not mode.grad and new.base._edge is not None)
    return out


# ------------------------------------------------------------------------------------------------------------ strides


def stride(self: Tensor, dim: int | None = None):
    """Return the strides in elements; a global tensor's shards are always contiguous, so are its strides."""
    found = view_steps.contiguous_strides(self.shape) if self._layout is not None else strides_of(self)
    return found if dim is None else found[_dims.one(dim, len(found), "stride")]


def is_contiguous(self: Tensor, memory_format=None) -> bool:
    """Return whether the elements lie in row-major order without gaps."""
    return _row_major(self.shape, stride(self))


def _row_major(shape, strides) -> bool:
    expected = 1
    for n, k in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1 and k != expected:
            return math.prod(shape) == 0
        expected *= n
    return True


def contiguous(self: Tensor, memory_format=None) -> Tensor:
    """Return the tensor itself if it is contiguous, else a copy.

    Returns:
        The same shape and sbp.

    Example:
        >>> flow.ones(2, 3).t().contiguous().stride()
        (2, 1)
    """
    return self if is_contiguous(self) else self.clone()


# --------------------------------------------------------------------------------------------------------- dims moved


def permute(self: Tensor, *dims) -> Tensor:
    """Return a view with the dims in another order.

    Args:
        dims: all dims in their new order.

    Raises:
        OpError: not every dim is named once.

    Example:
        >>> flow.ones(2, 3, 4).permute(2, 0, 1).shape
        sbpjax.Size([4, 2, 3])
    """
    if len(dims) == 1 and isinstance(dims[0], (tuple, list)):
        dims = tuple(dims[0])
    n = self.ndim
    # By the number of dims alone: a permutation is the same step for every shape.
    key = ("permute", n, dims)
    if not self._kind:
        found = known_view(self, key)
        if found is not None:
            return found
    resolved = tuple(_dims.one(d, n, "permute") for d in dims)
    if n and not dims:
        raise OpTypeError("permute()", f"a tensor of {n} dims", "dims is a required argument", "x.permute(0)")
    if sorted(resolved) != list(range(n)):
        raise OpError(
            f"permute{dims}",
            f"a tensor of {n} dims",
            "every dim is named once",
            f"x.permute{tuple(reversed(range(n)))}",
        )
    cache_view_step(key, view_steps.permute, (("dims", resolved),))
    return view_of(self, view_steps.permute, (("dims", resolved),))


def transpose(self: Tensor, dim0: int = 0, dim1: int | None = None, *, perm=None) -> Tensor:
    """Return a view with two dims exchanged; or, as in OneFlow, all in the order of ``perm``.

    Args:
        dim0: one dim.
        dim1: the other.
        perm: all dims in their new order.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.ones(4, 6, placement=p, sbp=flow.sbp.split(0))
        >>> x.transpose(0, 1).shape, x.transpose(0, 1).sbp
        (sbpjax.Size([6, 4]), (sbpjax.sbp.split(dim=1),))
    """
    if dim1 is None:
        return permute(self, *(dim0 if perm is None else perm))
    n = self.ndim
    key = ("transpose", n, dim0, dim1)
    if not self._kind:
        found = known_view(self, key)
        if found is not None:
            return found
    a, b = _dims.one(dim0, n, "transpose"), _dims.one(dim1, n, "transpose")
    order = list(range(n))
    if n:
        order[a], order[b] = order[b], order[a]
    cache_view_step(key, view_steps.permute, (("dims", tuple(order)),))
    return view_of(self, view_steps.permute, (("dims", tuple(order)),))


def t(self: Tensor) -> Tensor:
    """Return the transpose of a matrix; fewer dims stay.

    Raises:
        OpError: more than 2 dims.

    Example:
        >>> flow.tensor([[1, 2], [3, 4]]).t()
        tensor([[1, 3],
                [2, 4]])
    """
    if self.ndim > 2:
        raise OpError(
            "t()", f"a tensor of {self.ndim} dims", "t() expects a tensor with <= 2 dims", "x.transpose(0, 1)"
        )
    return view_of(self, view_steps.permute, (("dims", tuple(reversed(range(self.ndim)))),))


def adjoint(self: Tensor) -> Tensor:
    """Return matrices with their last two dims exchanged and, if complex, conjugated."""
    return transpose(self, -2, -1).conj()


def movedim(self: Tensor, source, destination) -> Tensor:
    """Return a view with dims moved to other positions.

    Args:
        source: a dim, or several.
        destination: where they go.

    Raises:
        OpError: not as many places as dims, or one named twice.

    Example:
        >>> flow.movedim(flow.ones(2, 3, 4), 0, -1).shape
        sbpjax.Size([3, 4, 2])
    """
    source = (source,) if isinstance(source, int) else tuple(source)
    destination = (destination,) if isinstance(destination, int) else tuple(destination)
    n = self.ndim
    a = [_dims.one(d, n, "movedim") for d in source]
    b = [_dims.one(d, n, "movedim") for d in destination]
    if len(a) != len(b) or len(set(a)) != len(a) or len(set(b)) != len(b):
        raise OpError(
            f"movedim({source}, {destination})", f"{n} dims", "sources and destinations pair up", "name each dim once"
        )
    order: list = [None] * n
    for i, j in zip(a, b, strict=True):
        order[j] = i
    rest = iter(d for d in range(n) if d not in a)
    return permute(self, *[next(rest) if d is None else d for d in order])


def expand(self: Tensor, *sizes) -> Tensor:
    """Return a view with dims of size 1 repeated, and new leading dims; -1 keeps a size.

    Args:
        sizes: the sizes, as numbers or one tuple.

    Raises:
        OpError: a size other than 1 is changed, or fewer sizes than dims.

    Example:
        >>> flow.tensor([[1], [2]]).expand(-1, 3)
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    elif not sizes:
        raise OpTypeError("expand()", f"{list(self.shape)}", "size is a required argument", "x.expand(2, -1)")
    own = tuple(self.shape)
    offset = len(sizes) - len(own)
    shape = tuple(own[i - offset] if n == -1 and i >= offset else _size(n) for i, n in enumerate(sizes))
    if (
        offset < 0
        or any(n < 0 for n in shape)
        or any(m not in (1, n) for m, n in zip(own, shape[max(offset, 0) :], strict=False))
    ):
        raise OpError(
            f"expand{tuple(sizes)}",
            f"a tensor of shape {list(own)}",
            _dims.expand_rule(own, tuple(sizes)),
            f"x.expand{own}",
        )
    # Nothing is repeated, so that the view can be written to.
    if shape == (1,) * offset + own:
        view = view_of(self, view_steps.unsqueeze, (("dim", 0),)) if offset else view_of(self, view_steps.alias)
        for _ in range(offset - 1):
            view = view_of(view, view_steps.unsqueeze, (("dim", 0),))
        return view
    return view_of(self, view_steps.expand, (("shape", shape),))


def _size(n) -> int:
    """Return a size as an int; a symbol, as in an export with a free batch, as it is."""
    try:
        return as_int(n)
    except TypeError:
        if is_symbolic_dim(n):
            return n
        raise


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Return `expand` to the shape of another tensor.

    Example:
        >>> flow.ones(1, 3).expand_as(flow.ones(2, 3)).shape
        sbpjax.Size([2, 3])
    """
    return expand(self, tuple(other.shape))


def broadcast_to(self: Tensor, size) -> Tensor:
    """Return `expand` to a size."""
    return expand(self, tuple(size))


def squeeze(self: Tensor, dim=None) -> Tensor:
    """Return a view without dims of size 1: all of them, or those named.

    Args:
        dim: a dim, several, or None for all.

    Example:
        >>> flow.ones(1, 3, 1).squeeze().shape, flow.ones(1, 3, 1).squeeze(0).shape
        (sbpjax.Size([3]), sbpjax.Size([3, 1]))
    """
    shape = tuple(self.shape)
    if dim is None:
        gone = tuple(d for d, n in enumerate(shape) if n == 1)
    else:
        named = _dims.several(dim, len(shape), "squeeze") if shape and dim not in ((), []) else ()
        gone = tuple(sorted(d for d in named if shape[d] == 1))
    return view_of(self, view_steps.squeeze, (("dims", gone),)) if gone else view_of(self, view_steps.alias)


def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """Return a view with a new dim of size 1.

    Args:
        dim: where the new dim is in the result.

    Example:
        >>> flow.ones(3).unsqueeze(0).shape, flow.ones(3).unsqueeze(-1).shape
        (sbpjax.Size([1, 3]), sbpjax.Size([3, 1]))
    """
    return view_of(self, view_steps.unsqueeze, (("dim", _dims.one(dim, self.ndim + 1, "unsqueeze")),))


# ------------------------------------------------------------------------------------------------------------- parts


def select_part(self: Tensor, spec: tuple) -> Tensor:
    """Return the part that a spec of `view_steps.index` names; on one device its starts are inputs of the program."""
    if all(s is None for s in spec):
        return view_of(self, view_steps.alias)
    if not self._kind:
        starts = tuple(s[2] for s in spec if s is not None)
        spec = tuple(None if s is None else (s[0], s[1], None) for s in spec)
        return view_of(self, view_steps.index, (("spec", spec),), starts)
    return view_of(self, view_steps.index, (("spec", spec),))


def select_along(self: Tensor, dim: int, entry: tuple) -> Tensor:
    """Return `select_part` of one dim."""
    return select_part(self, one_dim_spec(self.ndim, dim, entry))


def one_dim_spec(ndim: int, dim: int, entry: tuple) -> tuple:
    """Return the spec of `view_steps.index` that has an entry for one dim and takes the others whole."""
    return (*[None] * dim, entry, *[None] * (ndim - dim - 1))


def narrow(self: Tensor, dim: int, start, length: int) -> Tensor:
    """Return ``length`` indices of a dim from ``start`` on.

    Args:
        start: the first index.
        length: how many.

    Raises:
        OpIndexError: ``start`` is outside the dim.
        OpError: the part reaches past the end.

    Example:
        >>> flow.tensor([1, 2, 3, 4]).narrow(0, 1, 2)
        tensor([2, 3])
    """
    d = _dims.one(dim, self.ndim, "narrow")
    n = self.shape[d]
    if isinstance(start, Tensor) and (start.ndim or start.dtype.np.kind not in "iu"):
        rule = "start must be an 0-dim integral Tensor"
        raise OpError(f"narrow({dim}, start, {length})", f"start {list(start.shape)} of {start.dtype}", rule, "start=0")
    begin = as_int(start)
    if not -n <= begin <= n:
        rule = f"Dimension out of range (expected to be in range of [{-n}, {n}], but got {begin}): the start"
        operation = f"narrow({dim}, {start}, {length})"
        raise OpIndexError(operation, f"a dim of size {n}", rule, "a start inside the dim")
    begin = begin + n if begin < 0 else begin
    if length < 0 or begin < 0 or begin + length > n:
        raise OpError(
            f"narrow({dim}, {start}, {length})",
            f"a dim of size {n}",
            f"start ({begin}) + length ({length}) exceeds dimension size ({n})",
            f"a length of at most {max(n - begin, 0)}",
        )
    return select_along(self, d, (length, 1, begin))


def select(self: Tensor, dim: int, index: int) -> Tensor:
    """Return one index of a dim; the dim goes away."""
    d = _dims.one(dim, self.ndim, "select")
    return select_along(self, d, (None, 1, checked_index(index, self.shape[d], d)))


def checked_index(index, size: int, dim: int) -> int:
    """Return an index counted from the front."""
    index = as_int(index)
    if not -size <= index < size:
        raise OpIndexError(
            f"index {index} on dim {dim}",
            f"a dim of size {size}",
            f"index {index} is out of bounds for dimension {dim} with size {size}: "
            f"Index out of range (expected to be in range of [{-size},{size - 1}], but got {index})",
            f"use {-size} to {size - 1}" if size else "the dim is empty",
        )
    return index + size if index < 0 else index


def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of all windows of ``size`` along a dim, every ``step``; the window is a new last dim."""
    n = max(self.ndim, 1)
    d = _dims.one(dimension, n, "unfold")
    length = self.shape[d] if self.ndim else 1
    if size > length or size < 0 or step <= 0:
        raise OpValueError(
            f"unfold({dimension}, {size}, {step})",
            f"a dim of size {length}",
            f"maximum size for tensor at dimension {d} is {length} but size is {size}; step is positive",
            f"a size of at most {length}",
        )
    if not self.ndim:  # one window, without a dim of its own
        return narrow(unsqueeze(self, 0), 0, 0, size)
    return view_of(self, view_steps.unfold, (("dim", d), ("size", as_int(size)), ("step", as_int(step))))


def diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of a diagonal of two dims, as a new last dim."""
    n = self.ndim
    a, b = _dims.one(dim1, n, "diagonal"), _dims.one(dim2, n, "diagonal")
    if a == b:
        raise OpError(
            f"diagonal(dim1={dim1}, dim2={dim2})",
            f"{n} dims",
            "diagonal dimensions cannot be identical",
            "name two dims",
        )
    return view_of(self, view_steps.diagonal, (("offset", as_int(offset)), ("dim1", a), ("dim2", b)))


def is_view(self: Tensor) -> bool:
    """Return whether this tensor is a view of another one."""
    return self._meta is not None and self._meta.base is not None


def size(self: Tensor, dim: int | None = None):
    """Return the shape, or the size of one dim.

    Args:
        dim: the dim; None for all.

    Returns:
        The logical size, under any sbp.

    Example:
        >>> flow.ones(2, 3).size(), flow.ones(2, 3).size(1)
        (sbpjax.Size([2, 3]), 3)
    """
    shape = self.shape
    return shape if dim is None else shape[_dims.one(dim, len(shape), "size")]
