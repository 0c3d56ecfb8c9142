"""OneFlow's op-level functions, under the names its own programs call: ``flow._C.matmul(a, b, transpose_b=True)``.

They differ from the public functions in their call form only: one op each, so that a transposed product or a sum of
three tensors is planned as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from operator import index as as_int
from typing import Any

from jax import lax

from sbpjax.errors import OpError, message
from sbpjax.functions import table
from sbpjax.ops import arithmetic, norm
from sbpjax.ops import fused as _fused
from sbpjax.ops import gather as _gather
from sbpjax.ops import view as _view
from sbpjax.tensor import Tensor, dispatch
from sbpjax.tensor.binding import hashable
from sbpjax.tensor.mode import mode
from sbpjax.tensor.oneflow_arguments import take_oneflow
from sbpjax.tensor.op import op_of


def identity(x: Tensor) -> Tensor:
    """Return a tensor with the value and the layout of ``x``, on the tape."""
    return x.clone()


def bias_add(x: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """Return ``x`` with a vector added along dim ``axis``."""
    return dispatch.run(op_of(_bias_added, (("axis", axis),)), (x, bias))


def _bias_added(x, bias, /, axis: int):
    axis = axis % x.ndim
    shape = tuple(n if d == axis else 1 for d, n in enumerate(x.shape))
    return arithmetic.add(x, lax.broadcast_in_dim(bias, shape, (axis,)))


def gather(x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    """Return slices of ``x`` along dim ``axis``; the dims of ``indices`` replace that dim."""
    return dispatch.run(op_of(_gathered, (("axis", axis),)), (x, indices))


def _gathered(x, indices, /, axis: int):
    axis = axis % x.ndim
    return _gather.take_rows(x, _gather.wrap(indices, x.shape[axis]), axis)


def normalization(
    x: Tensor,
    moving_mean: Tensor | None = None,
    moving_variance: Tensor | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    axis: int = 1,
    epsilon: float = 1e-5,
    momentum: float = 0.1,
    is_training: bool = False,
) -> Tensor:
    """Return ``x`` normalised per channel; if training by its own statistics, which move the given ones."""
    static = (("training", is_training), ("momentum", momentum), ("eps", epsilon), ("axis", axis))
    if is_training and moving_mean is not None and moving_variance is not None:
        inputs = (x, moving_mean, moving_variance, gamma, beta)
        out, mean, variance = dispatch.run(op_of(norm.batch_norm, static), inputs)
        for target, value in ((moving_mean, mean), (moving_variance, variance)):
            target.data.copy_(value.detach())
        return out
    return dispatch.run(op_of(_normalized, static), (x, moving_mean, moving_variance, gamma, beta))


def _normalized(x, mean=None, variance=None, gamma=None, beta=None, /, **options):
    return norm.batch_norm(x, mean, variance, gamma, beta, **options)[0]


def sparse_softmax_cross_entropy(logits: Tensor, label: Tensor, depth: int | None = None) -> Tensor:
    """Return the cross entropy of each row: logits ``(..., C)`` with class indices ``(...)``."""
    from sbpjax.ops import loss

    if depth is not None and depth != logits.shape[-1]:
        raise OpError(
            message(
                f"sparse_softmax_cross_entropy(depth={depth})",
                f"logits with {logits.shape[-1]} classes",
                "depth is the number of classes",
                "leave depth out",
            )
        )
    return dispatch.run(op_of(loss.sparse_softmax_cross_entropy), (logits, label))


def broadcast_like(x: Tensor, like: Tensor, broadcast_axes: Sequence[int] = ()) -> Tensor:
    """Return ``x`` expanded to the shape of ``like``.

    Args:
        x: the tensor.
        like: gives the shape, not the layout.
        broadcast_axes: the dims of the result that ``x`` does not have; by default ``x``'s dims are the last ones.
    """
    static = (("shape", tuple(like.shape)), ("axes", tuple(broadcast_axes)))
    return dispatch.run(op_of(_broadcast_to, static), (x,))


def _broadcast_to(x, /, shape, axes):
    if not axes:
        return _view.expand(x, shape)
    kept = [d for d in range(len(shape)) if d not in {a % len(shape) for a in axes}]
    if x.ndim == len(shape):
        return _view.expand(x, shape)
    return lax.broadcast_in_dim(x, shape, kept)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return `nn.functional.cross_entropy`."""
    from sbpjax.functions import nn as functional

    options = {"ignore_index": ignore_index, "reduction": reduction, "label_smoothing": label_smoothing}
    return functional.cross_entropy(input, target, weight, **options)


def binary_cross_entropy_with_logits_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return `nn.functional.binary_cross_entropy_with_logits`."""
    from sbpjax.functions import nn as functional

    options = {"reduction": reduction, "pos_weight": pos_weight}
    return functional.binary_cross_entropy_with_logits(input, target, weight, **options)


def binary_cross_entropy_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Return `nn.functional.binary_cross_entropy`."""
    from sbpjax.functions import nn as functional

    return functional.binary_cross_entropy(input, target, weight, reduction=reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return `nn.functional.l1_loss`."""
    from sbpjax.functions import nn as functional

    return functional.l1_loss(input, target, reduction=reduction)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return `nn.functional.mse_loss`."""
    from sbpjax.functions import nn as functional

    return functional.mse_loss(input, target, reduction=reduction)


def layer_norm(x: Tensor, begin_norm_axis: int, begin_params_axis: int, epsilon: float) -> Tensor:
    """Return ``x`` normalised over its dims from ``begin_norm_axis`` on."""
    static = (("axis", as_int(begin_norm_axis)), ("eps", float(epsilon)))
    return dispatch.run(op_of(_fused.rows_normed, static), (x,))


def layer_norm_affine(
    x: Tensor, gamma: Tensor, beta: Tensor, begin_norm_axis: int, begin_params_axis: int, epsilon: float
) -> Tensor:
    """Return ``x`` normalised over its dims from ``begin_norm_axis`` on, times gamma plus beta."""
    static = (("axis", as_int(begin_norm_axis)), ("eps", float(epsilon)))
    return dispatch.run(op_of(_fused.rows_normed, static), (x, gamma, beta))


def rms_norm(x: Tensor, weight: Tensor | None = None, normalized_shape: Any = None, epsilon: float = 1e-6) -> Tensor:
    """Return ``x`` over the root of the mean of its squares over the last dims, times a weight."""
    static = (("normalized_shape", hashable(normalized_shape)), ("eps", float(epsilon)))
    return dispatch.run(op_of(norm.rms_norm, static), (x, weight))


def global_arange(start, end=None, step=1, *, dtype=None, placement, sbp) -> Tensor:
    """Return `sbpjax.arange` on a placement."""
    from sbpjax.tensor.creation import arange

    start, end = (0, start) if end is None else (start, end)
    return arange(start, end, step, dtype=dtype, placement=placement, sbp=sbp)


def amp_white_identity(x: Tensor) -> Tensor:
    """Return ``x``, in the lower precision under `autocast`."""
    return x.to(mode.autocast.dtype) if mode.autocast is not None and x.dtype.is_floating_point else x


def amp_black_identity(x: Tensor) -> Tensor:
    """Return ``x``, in float32 under `autocast`."""
    return x.float() if mode.autocast is not None and x.dtype.is_floating_point else x


take_oneflow(globals(), "_C.")


def __getattr__(name: str):
    """Return what a room of the package has under a name of OneFlow's ops, or a method of `Tensor`."""
    if name.startswith("_"):
        raise AttributeError(f"module 'sbpjax._C' has no attribute {name!r}")
    if table.has("_C", name):
        return globals().setdefault(name, table.found("_C", name))
    for room in ("functions.oneflow_fused", "nn.functional", "", "functions.oneflow_kernels", "fft", "special"):
        found = getattr(import_module(f"sbpjax.{room}".rstrip(".")), name, None)
        if callable(found) and not isinstance(found, type):
            globals()[name] = found
            return found
    if callable(getattr(Tensor, name, None)):
        return getattr(Tensor, name)
    from sbpjax.world.absent import absent

    raise absent("_C", name)
