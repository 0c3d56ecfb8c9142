"""Embedding lookups: `embedding`, `one_hot` and `embedding_bag`."""

from __future__ import annotations

from operator import index as as_int
from typing import Any

import jax.numpy as jnp
import numpy as np

from sbpjax._core.functions.table.checks import check_elements
from sbpjax._core.ops import arithmetic
from sbpjax._core.ops.layers import embedding as ops
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.calls.bounds import check_non_negative, check_rows, check_size
from sbpjax._core.tensor.dispatch.dispatch import apply, run
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax._core.tensor.tape.row_grad import has_row_gradient, record_lookup
from sbpjax.errors import OpError, OpNotSupportedError

_EMBEDDING = op_of(ops.embedding)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of a table that the input names.

    Args:
        input: integers of any shape, any sbp.
        weight: `(V, D)`; under ``split(0)`` each rank gives the rows it holds, the result is a partial sum. Or several
            tables of one size, `(F, V, D)`, of which the input's last dim has a number for each; under ``split(0)``
            whole tables are divided, and that dim with them.
        padding_idx: a row that gets no gradient.
        max_norm: rows that are looked up are scaled down to this norm first, in place.
        norm_type: p of that norm.
        scale_grad_by_freq: divide each row's gradient by how often the input names it.
        sparse: the gradient of a table that is a leaf is one of rows, see `nn.Embedding`.

    Returns:
        ``(..., D)``. Splits of ``input`` stay; ``split(1)`` of ``weight`` splits the last dim.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> table = flow.arange(8.0).reshape(4, 2).to_global(p, flow.sbp.split(0))
        >>> rows = flow.nn.functional.embedding(flow.tensor([3, 0]).to_global(p, flow.sbp.broadcast), table)
        >>> rows.tolist(), rows.sbp
        ([[6.0, 7.0], [0.0, 1.0]], (sbpjax.sbp.partial_sum,))
    """
    check_rows("embedding(input, weight)", input, weight, max(weight.ndim - 2, 0))
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    if not scale_grad_by_freq and has_row_gradient(weight, sparse):
        return record_lookup(input, run(_EMBEDDING, (input, weight.detach())), weight, _natural(padding_idx, weight))
    if padding_idx is None and not scale_grad_by_freq:
        return run(_EMBEDDING, (input, weight))
    return apply(ops.embedding, input, weight, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq)


def _natural(padding_idx: int | None, weight: Tensor) -> int | None:
    return None if padding_idx is None else padding_idx % weight.shape[-2]


def _limit_norm(weight: Any, input: Any, /, max_norm: float, norm_type: float) -> Any:
    norms = jnp.linalg.norm(weight, ord=norm_type, axis=1, keepdims=True)
    named = jnp.zeros((weight.shape[0], 1), bool).at[input.reshape(-1)].set(True)
    scale = jnp.where(named & (norms > max_norm), max_norm / (norms + 1e-7), 1.0)
    return weight * scale.astype(weight.dtype)


def _limit_rows(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    with no_grad():
        weight.copy_(apply(_limit_norm, weight, input, max_norm=float(max_norm), norm_type=float(norm_type)))


def one_hot(tensor: Tensor, num_classes: int = -1, on_value: float = 1, off_value: float = 0) -> Tensor:
    """Return a new last dim with 1 at the class and 0 elsewhere, int64; or with other numbers, float32 if one is.

    Args:
        tensor: integers of any shape.
        num_classes: the size of the new dim; -1 takes the largest class plus one, which reads the tensor's values.
        on_value: the number at the class.
        off_value: the number elsewhere.

    Returns:
        The input's shape with a last dim of ``num_classes``; a split stays.

    Raises:
        OpError: an empty tensor without ``num_classes``.
        OpBoundsError: a number is no class.

    Example:
        >>> flow.nn.functional.one_hot(flow.tensor([0, 2]), 3)
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    if num_classes == -1:
        check_non_negative("one_hot(x)", tensor, "classes")
        if not tensor.numel():
            rule = "Can not infer total number of classes from empty tensor"
            raise OpError("one_hot(x)", f"{tensor.dtype.name}{list(tensor.shape)}", rule, "one_hot(x, num_classes)")
        num_classes = int(tensor.max().item()) + 1
    else:
        check_size(f"one_hot(x, {num_classes})", tensor, num_classes, tensor.ndim)
    hot = apply(ops.one_hot, tensor, num_classes=as_int(num_classes))
    if (on_value, off_value) == (1, 0) and not isinstance(on_value, float) and not isinstance(off_value, float):
        return hot
    dtype = np.dtype(np.float32 if isinstance(on_value, float) or isinstance(off_value, float) else np.int64)
    return apply(_fill_one_hot, hot, on=on_value, off=off_value, dtype=dtype)


def _fill_one_hot(hot: Any, /, on: float, off: float, dtype: Any) -> Any:
    return arithmetic.where(hot, dtype.type(on), dtype.type(off))


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return sums, means or maxima of rows of a table, one per bag.

    Args:
        input: integers `(B, K)`, each row a bag, or `(L,)` with offsets.
        weight: `(V, D)`.
        offsets: `(B,)`, where each bag begins in a 1-d input.
        max_norm: rows that are looked up are scaled down to this norm first, in place.
        norm_type: p of that norm.
        scale_grad_by_freq: divide each row's gradient by how often the input names it.
        mode: ``"sum"``, ``"mean"`` or ``"max"``; an empty bag gives zeros.
        sparse: the gradient of a table that is a leaf is one of rows, see `nn.Embedding`.
        per_sample_weights: of the input's shape, factors of the rows; sums only.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: a row that does not count and gets no gradient.
    """
    if per_sample_weights is not None and mode != "sum":
        rule = f"per_sample_weights is only supported for mode='sum', got mode='{mode}'"
        raise OpNotSupportedError("embedding_bag(...)", f"mode={mode!r}", rule, "mode='sum'")
    check_rows("embedding_bag(input, weight)", input, weight, 0)
    if offsets is not None and input.ndim == 1:
        operation, fix = "embedding_bag(input, weight, offsets)", "offsets = lengths.cumsum(0) - lengths"
        rule = "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0"
        check_elements(operation, offsets, lambda whole: whole.flat[0] == 0, rule, fix, whole=True)
        rule = f"offsets[-1] can not be greater than input's length {input.shape[0]}"
        check_elements(operation, offsets, lambda part: bool(part.max() <= input.shape[0]), rule, fix)
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    if sparse and not scale_grad_by_freq and mode in ("sum", "mean", "max"):
        rows = embedding(input, weight, padding_idx, sparse=True)
        options = {"include_last_offset": include_last_offset, "padding_idx": _natural(padding_idx, weight)}
        return apply(ops.reduce_bags, input, rows, offsets, per_sample_weights, mode=mode, **options)
    return apply(
        ops.embedding_bag,
        input,
        weight,
        offsets,
        per_sample_weights,
        mode=mode,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
        scale_grad_by_freq=scale_grad_by_freq,
    )
