"""Splitting into views along a dim: `split chunk tensor_split unbind`.

All parts come from one op, so their gradients meet in one concatenation, and each is then tied to the storage as the
part that it is. Worked case: of 7 rows, `split(3)` shows 3, 3 and 1, `chunk(3)` the same, `tensor_split(3)` 3, 2, 2.
A part is one of several: a recorded write to it in place is an error, as in PyTorch.
"""

from __future__ import annotations

import functools
import itertools
from operator import index as as_int

from sbpjax._core.ops import dims as _dims
from sbpjax._core.ops.shapes import view as _view
from sbpjax.errors import OpError, OpTypeError, OutOfMemoryError

from ..dispatch import dispatch
from ..dispatch.op import op_of
from ..handle.tensor import Tensor
from . import lazy_views, view_steps
from .views import link_view, one_dim_spec, select_along

# Of tensors that one call returns, empty ones among them.
_MOST_SECTIONS = 1 << 20


def _split_into_views(self: Tensor, d: int, sizes: list[int]) -> tuple:
    return _tie_views(self, *_cut(self.ndim, d, tuple(sizes)))


@functools.lru_cache(maxsize=4096)
def _cut(ndim: int, d: int, sizes: tuple[int, ...]) -> tuple:
    """Return the op that cuts a dim into parts of some sizes, and each part's view step."""
    begins = [0, *itertools.accumulate(sizes)]
    # The starts are attributes here, unlike those of ``x[i]``: a split makes the same parts again and again.
    parts = [one_dim_spec(ndim, d, (n, 1, begin)) for n, begin in zip(sizes, begins, strict=False)]
    op = op_of(_view.split, (("split_size", sizes), ("dim", d)))
    return op, [(view_steps.index, (("spec", spec),), ()) for spec in parts]


def _tie_views(x: Tensor, op, all_steps: list) -> tuple:
    outs = lazy_views.views(x, op)
    if outs is None:
        outs = dispatch.run(op, (x,))
    for out, step in zip(outs, all_steps, strict=True):
        link_view(x, out, step)
        # A recorded write to one of several outputs would have to put it back into a node that made them all; PyTorch
        # raises too.
        out._meta.multi = True
    return outs


def split(self: Tensor, split_size_or_sections=None, dim: int = 0, *, split_size=None) -> tuple:
    """Return views of consecutive parts of a dim: of one size (the last may be shorter), or of the sizes listed.

    Args:
        split_size_or_sections: one size, or a list of sizes.
        split_size: the size, by OneFlow's name.

    Raises:
        OpError: the sizes do not add up to the dim's.

    Example:
        >>> [part.tolist() for part in flow.arange(5).split(2)], [len(part) for part in flow.arange(5).split([1, 4])]
        ([[0, 1], [2, 3], [4]], [1, 4])
    """
    if split_size_or_sections is None:  # the method's name for it
        split_size_or_sections = split_size
    if split_size_or_sections is None:
        rule = "split_size is a required argument"
        raise OpTypeError("split()", f"{list(self.shape)}", rule, "x.split(2)")
    d = _dims.one(dim, self.ndim, "split")
    n = self.shape[d]
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = [as_int(k) for k in split_size_or_sections]
        if sum(sizes) != n or any(k < 0 for k in sizes):
            raise OpError(
                f"split({sizes}, dim={dim})",
                f"a dim of size {n}",
                f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {d}), "
                f"but got sum(split_sizes)={sum(sizes)}",
                "give sizes that cover the dim",
            )
        return _split_into_views(self, d, sizes)
    size = as_int(split_size_or_sections)
    if size <= 0 and n:
        rule = f"split expects split_size be non-negative, but got split_size={size}: a part has at least one index"
        raise OpError(f"split({size})", f"a dim of size {n}", rule, "use split(1)")
    sizes = [min(size, n - k) for k in range(0, n, size)] if n else [0]
    return _split_into_views(self, d, sizes)


def chunk(self: Tensor, chunks: int, dim: int = 0) -> tuple:
    """Return at most ``chunks`` views of equal parts of a dim; the last may be shorter.

    Args:
        chunks: how many at most.

    Raises:
        OpError: ``chunks`` is not positive.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.ones(4, 6, placement=p, sbp=flow.sbp.split(0))
        >>> [part.shape for part in x.chunk(2, dim=1)], x.chunk(2, dim=1)[0].sbp
        ([sbpjax.Size([4, 3]), sbpjax.Size([4, 3])], (sbpjax.sbp.split(dim=0),))
    """
    d = _dims.one(dim, self.ndim, "chunk")
    if not self.ndim:
        raise OpError("chunk(...)", "a 0-d tensor", "chunk expects at least a 1-dimensional tensor.", "x.reshape(1)")
    chunks = as_int(chunks)
    if chunks <= 0:
        rule = f"chunk expects `chunks` to be greater than 0, got: {chunks}"
        raise OpError(f"chunk({chunks})", f"chunks={chunks}", rule, "use chunk(1)")
    n = self.shape[d]
    size = -(-n // chunks)
    if not size:
        # Of an empty dim PyTorch makes the requested number of chunks.
        return _split_into_views(self, d, [0] * chunks)
    return split(self, size, d)


def tensor_split(self: Tensor, indices_or_sections=None, dim: int = 0, *, indices=None, sections=None) -> tuple:
    """Return views of parts of a dim: a number of nearly equal ones, or cut at the indices."""
    indices_or_sections = next((v for v in (indices_or_sections, indices, sections) if v is not None), None)
    if not self.ndim:
        rule = "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        raise OpError("tensor_split(...)", "a 0-d tensor", rule, "x.reshape(1)")
    d = _dims.one(dim, self.ndim, "tensor_split")
    n = self.shape[d]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = _places(indices_or_sections)
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count <= 0:
            rule = "number of sections must be larger than 0"
            raise OpError(f"tensor_split({count})", f"{count} sections", rule, "tensor_split(1)")
        if count > max(n, _MOST_SECTIONS):
            rule = f"sections beyond the {n} elements are empty, and each is a tensor of its own in memory"
            raise OutOfMemoryError(f"tensor_split({count})", f"{count} sections", rule, f"tensor_split({max(n, 1)})")
        return _split_into_views(self, d, [n // count + (i < n % count) for i in range(count)])
    edges = [0, *[min(max(i + n if i < 0 else i, 0), n) for i in indices_or_sections], n]
    parts = []
    for a, b in zip(edges, edges[1:], strict=False):
        parts.append(select_along(self, d, (max(b - a, 0), 1, a)))
        parts[-1]._meta.multi = True
    return tuple(parts)


def _places(given: Tensor):
    """Return the number, or the list of them, that an integer tensor of at most 1 dim holds."""
    if given.ndim > 1 or given.dtype.name not in ("int64", "int32"):
        seen = f"a tensor of {given.dtype.name} and {given.ndim} dims"
        rule = "tensor_split expected tensor_indices_or_sections to be a long tensor of at most 1 dim"
        raise OpError("tensor_split(...)", seen, rule, "tensor_split([1, 3])")
    return given.tolist()


def unbind(self: Tensor, dim: int = 0) -> tuple:
    """Return a view of every index of a dim.

    Example:
        >>> flow.tensor([[1, 2], [3, 4]]).unbind()
        (tensor([1, 2]), tensor([3, 4]))
    """
    d = _dims.one(dim, self.ndim, "unbind")
    if not self.shape[d]:
        return ()
    specs = [one_dim_spec(self.ndim, d, (None, 1, i)) for i in range(self.shape[d])]
    return _tie_views(
        self, op_of(_view.unbind, (("dim", d),)), [(view_steps.index, (("spec", spec),), ()) for spec in specs]
    )
