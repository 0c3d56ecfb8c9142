"""`torch._chunk_cat` and its like: functions that PyTorch's own libraries and compiled programs call.

    segment_reduce(tensor([1.0, 2.0, 3.0]), "sum", lengths=tensor([2, 1]))      # [3, 3]
    _chunk_cat([ones(3, 2), ones(1, 2)], 0, 2)                                  # (2, 6): padded, one row per chunk

Each is a composition of public functions, so gradients, placements and compilation follow from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sbpjax._core import functions
from sbpjax._core.functions import nn as F
from sbpjax._core.functions.layers.norm import native_batch_norm
from sbpjax._core.ops.dims import one
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.calls.binding import into_out
from sbpjax._core.tensor.handle.dtype import int64
from sbpjax._core.tensor.handle.mode import mode
from sbpjax.errors import OpError, OpNotSupportedError

# of a segment: how `Tensor.scatter_reduce` reduces it, and the value of one without elements
_REDUCTIONS = {
    "sum": ("sum", 0), "mean": ("sum", 0), "prod": ("prod", 1), "max": ("amax", -float("inf")),
    "min": ("amin", float("inf")),
}  # fmt: skip


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Return one value per segment of consecutive elements: their sum, mean, product, maximum or minimum.

    Args:
        data: `(*batch, N, *rest)`, floats.
        reduce: `"sum"`, `"mean"`, `"prod"`, `"max"` or `"min"`.
        lengths: `(*batch, S)`, integers whose rows sum to `N`.
        indices: None; PyTorch has not implemented it either.
        offsets: `(*batch, S + 1)` instead of `lengths`: where the segments begin, and the last one's end.
        axis: the dim of `N`, which is the last one of `lengths`.
        unsafe: leave out the check of the values of `lengths`; a traced program leaves it out, too.
        initial: reduced with the elements of each segment.

    Returns:
        `(*batch, S, *rest)`; an empty segment gives `initial`, else 0, NaN (mean), 1, -inf or inf.

    Raises:
        OpError: an unknown reduction, `indices`, no lengths or ones that do not fit.
        OpIndexError: no such axis.
        OpNotSupportedError: integers.

    Example:
        >>> x = torch.tensor([1.0, 2.0, 3.0])
        >>> torch.segment_reduce(x, "max", lengths=torch.tensor([2, 1]))
        tensor([2., 3.])
    """
    axis = _check_segments(data, reduce, lengths, indices, offsets, axis, unsafe)
    ends: Any = F.pad(lengths.cumsum(-1), (1, 0)) if lengths is not None else offsets
    places = data.new_ones(data.shape[: axis + 1], dtype=int64).cumsum(axis) - 1
    count = ends.shape[-1] - 1
    segment = functions.searchsorted(ends[..., 1:].contiguous(), places, right=True)
    segment = segment.masked_fill(places < ends[..., :1], count)  # a further segment takes what belongs to none
    how, empty = _REDUCTIONS[reduce]
    shape = (*data.shape[:axis], count + 1, *data.shape[axis + 1 :])
    index = segment.reshape(*segment.shape, *(1,) * (data.ndim - axis - 1)).expand(data.shape)
    start = initial if initial is not None and reduce in ("sum", "mean", "prod") else empty
    result = data.new_full(shape, start).scatter_reduce(axis, index, data, how).narrow(axis, 0, count)
    if reduce == "mean":
        sizes = ends.diff().reshape(*ends.shape[:-1], count, *(1,) * (data.ndim - axis - 1)).to(data.dtype)
        result = result / sizes.clamp(min=1)
        return result.masked_fill(sizes == 0, float("nan")) if initial is None else result
    if initial is not None and reduce in ("max", "min"):
        # where both are equal the elements take the whole gradient
        beyond = result < initial if reduce == "max" else result > initial
        result = result.masked_fill(beyond, initial)
    return result


_segment_reduce = segment_reduce


def _require(rules: dict[str, bool], call: str, seen: str, fix: str) -> None:
    """Raise OpError for the first rule that does not hold."""
    for rule, holds in rules.items():
        if not holds:
            raise OpError(call, seen, rule, fix)


def _check_segments(data, reduce, lengths, indices, offsets, axis: int, unsafe: bool) -> int:
    """Return the axis, counted from the front, of a call of `segment_reduce` that fits."""
    call, seen = f"segment_reduce({reduce!r}, axis={axis})", f"data {tuple(data.shape)} of {data.dtype}"
    axis, ends = one(axis, data.ndim, "segment_reduce"), offsets if lengths is None else lengths
    if not data.is_floating_point():
        raise OpNotSupportedError(call, seen, "segment_reduce is not implemented for integers", "data.float()")
    rules = {
        f"reduce argument must be either sum, prod, mean, max or min, got {reduce}": reduce in _REDUCTIONS,
        "indices based reduction is not supported yet": indices is None,
        "Either lengths or offsets must be defined": ends is not None,
        f"Expected axis to be the last dimension of lengths but got {axis}": ends is None or ends.ndim - 1 == axis,
    }
    if lengths is not None and not unsafe and mode.capture is None:
        rules["lengths contains negative value!"] = not bool((lengths < 0).any())
        fits = bool((lengths.sum(-1) == data.shape[axis]).all())
        rules[f"Expected all rows of lengths along axis to sum to {data.shape[axis]} when !unsafe"] = fits
    _require(rules, call, seen, "segment_reduce(x, 'sum', lengths=torch.tensor([1, 2]))  # of three elements")
    return axis


def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int, *, out: Tensor | None = None) -> Tensor:
    """Return tensors cut into chunks along a dim, with zeros where they do not fill these, joined chunk by chunk.

    Args:
        tensors: of one dtype; the dims before `dim` have the same sizes.
        dim: the dim to cut, `d` from the front.
        num_chunks: how many chunks, `n`.
        out: takes the result.

    Returns:
        `(*sizes[:d], n, M)`: per chunk the elements of all tensors.

    Raises:
        OpError: no tensors, an empty one, no chunks, or sizes or dtypes that differ.
    """
    rules = {
        "_chunk_cat expects a non-empty input tensor list": len(tensors) > 0,
        "_chunk_cat expects positive num_chunks": num_chunks > 0,
        "_chunk_cat expects non-empty tensor": all(x.numel() for x in tensors),
        "_chunk_cat expects all input tensors with the same dtype": len({x.dtype for x in tensors}) < 2,
    }
    call, seen = f"_chunk_cat(dim={dim}, num_chunks={num_chunks})", f"shapes {[tuple(x.shape) for x in tensors]}"
    _require(rules, call, seen, "torch._chunk_cat([x, y], 0, 2)")
    dim = one(dim, tensors[0].ndim, "_chunk_cat")
    rule = "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors"
    _require({rule: len({x.shape[:dim] for x in tensors}) == 1}, call, seen, "dim=0")
    rows = [
        F.pad(x, (*(0, 0) * (x.ndim - 1 - dim), 0, -x.shape[dim] % num_chunks)).reshape(*x.shape[:dim], num_chunks, -1)
        for x in tensors
    ]
    joined = functions.cat(rows, -1)
    return joined if out is None else into_out(out, joined)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """Return the gradient of the input of a softmax from that of its output."""
    product = grad_output * output
    return product - output * product.sum(dim, keepdim=True)


def _safe_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the softmax along a dim, with zeros instead of NaN where all elements are -inf."""
    masked = (self == -float("inf")).all(dim, keepdim=True)
    return F.softmax(self.masked_fill(masked, 0), dim, dtype=dtype).masked_fill(masked, 0)


def _native_batch_norm_legit(input: Tensor, weight: Tensor | None, bias: Tensor | None, *statistics_and_options):
    """Return `torch.native_batch_norm`, for which the running statistics may be left out.

    Args:
        input: `(N, C, ...)`.
        weight: `(C,)` or None.
        bias: `(C,)` or None.
        statistics_and_options: the running mean and variance, which may both be left out; then `training`, `momentum`
            and `eps`.
    """
    options: Any = (None,) * (5 - len(statistics_and_options)) + statistics_and_options
    return tuple(native_batch_norm(input, weight, bias, *options))


def _clamp_indices(self: Tensor, indices: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return indices with those out of range moved to the ends."""
    return tuple(index.clamp(-size, size - 1) for index, size in zip(indices, self.shape))


def _unsafe_masked_index(self: Tensor, mask: Tensor, indices: Sequence[Tensor], fill: float) -> Tensor:
    """Return ``self[indices]`` with `fill` where the mask is False; there indices may be out of range."""
    if self.numel() == 0:
        return self.new_full(functions.broadcast_tensors(mask, *indices)[0].shape, fill)
    return self[_clamp_indices(self, indices)].masked_fill(~mask, fill)


def _unsafe_masked_index_put_accumulate(
    self: Tensor, mask: Tensor, indices: Sequence[Tensor], values: Tensor
) -> Tensor:
    """Return `self` with values added at indices where the mask is True; elsewhere indices may be out of range."""
    if self.numel() == 0:
        return self.clone()
    return self.index_put(_clamp_indices(self, indices), values.masked_fill(~mask, 0), accumulate=True)
