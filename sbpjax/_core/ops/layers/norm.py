"""Normalisation ops: over dims of one sample (layer, group, instance, rms) or over the batch.

All share one shape of computation: mean, variance, ``(x - mean) * rsqrt(variance + eps)``, then scale and shift;
statistics of bfloat16 and float16 inputs are float32, as in torch. Worked case: `layer_norm` of (B, T, D) over (D,)
reduces dim 2 only, so a split of B or T passes through; a split of D costs two small reductions.
"""

from __future__ import annotations

import math

import numpy as np
from jax import lax

from ..arithmetic import add, sub
from ..dims import fail, one, restore_dims, several
from ..promote import broadcast_to, cast, compute_dtype, floats, is_float, joint_shape, promote_types, size_as
from ..reductions.reduce import norm as _vector_norm


def _statistics(x, axes):
    """Return (mean, biased variance) over ``axes`` with the dims kept, and x minus the mean."""
    count = size_as(math.prod(x.shape[d] for d in axes), x.dtype)
    mean = restore_dims(lax.div(lax.reduce_sum(x, axes), count), axes, True)
    centered = lax.sub(x, mean)
    variance = restore_dims(lax.div(lax.reduce_sum(lax.square(centered), axes), count), axes, True)
    return mean, variance, centered


def _scale_by_deviation(centered, variance, eps: float):
    return lax.mul(centered, lax.rsqrt(lax.add(variance, np.asarray(eps, variance.dtype))))


def _affine(x, weight, bias, dims):
    """Return x * weight + bias, both laid along ``dims`` of x, in x's dtype."""
    shape = tuple(x.shape[d] if d in dims else 1 for d in range(x.ndim))
    for value, apply in ((weight, lax.mul), (bias, lax.add)):
        if value is not None:
            x = apply(x, lax.broadcast_in_dim(cast(value, x.dtype), shape, tuple(dims)))
    return x


def _trailing_dims(x, weight, normalized_shape, op: str) -> tuple[int, ...]:
    """Return the dims of x that ``normalized_shape``, by default the weight's shape, covers."""
    if normalized_shape is None:
        normalized_shape = () if weight is None else weight.shape
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        fail(
            "shape",
            f"{op}(normalized_shape={shape})",
            f"x {x.shape}",
            "Input tensor dim must greater than normalized dim!"
            if len(shape) > x.ndim
            else f"Given normalized_shape={shape}, expected input with shape [*, {', '.join(map(str, shape))},], "
            f"but got input of size {list(x.shape)}",
            f"normalized_shape={tuple(x.shape[-max(1, len(shape)) :])}, the last dims of this x; or an x that ends in "
            f"{list(shape)}",
        )
    return tuple(range(x.ndim - len(shape), x.ndim))


def _check_affine(op: str, shape, **values) -> None:
    for name, value in values.items():
        if value is not None and value.shape != tuple(shape):
            fail(
                "shape", f"{op}({name})", f"{name} {value.shape}", f"{name} has the shape {tuple(shape)}", "reshape it"
            )


def layer_norm(x, weight=None, bias=None, /, normalized_shape: int | tuple[int, ...] | None = None, eps: float = 1e-5):
    """Return x with mean 0 and variance 1 over its last dims, scaled and shifted.

    Args:
        x: ``(..., *normalized_shape)``, floats; a split of any other dim needs no communication.
        weight: of ``normalized_shape``, or None.
        bias: of ``normalized_shape``, or None.
        normalized_shape: sizes of the last dims; by default those of the weight.
        eps: added to the variance.

    Returns:
        The shape of ``x``; a partial sum is reduced first.

    Example:
        >>> x = flow.tensor([[1.0, 3.0], [0.0, 4.0]]).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> y = flow.nn.functional.layer_norm(x, (2,), eps=0.0)
        >>> y.tolist(), y.sbp
        ([[-1.0, 1.0], [-1.0, 1.0]], (sbpjax.sbp.split(dim=0),))

    Source:
        Ba et al., https://arxiv.org/abs/1607.06450
    """
    axes = _trailing_dims(x, weight, normalized_shape, "layer_norm")
    _check_affine("layer_norm", tuple(x.shape[d] for d in axes), weight=weight, bias=bias)
    wide = cast(x, compute_dtype(x.dtype))
    _, variance, centered = _statistics(wide, axes)
    return cast(_affine(_scale_by_deviation(centered, variance, eps), weight, bias, axes), x.dtype)


def rms_norm(x, weight=None, /, normalized_shape: int | tuple[int, ...] | None = None, eps: float | None = None):
    """Return x divided by its root mean square over the last dims, times the weight.

    Args:
        x: ``(..., *normalized_shape)``, floats.
        weight: of ``normalized_shape``, or None.
        normalized_shape: sizes of the last dims; by default those of the weight.
        eps: added to the mean square; by default the smallest step of the computing dtype.
    """
    axes = _trailing_dims(x, weight, normalized_shape, "rms_norm")
    wide = cast(x, compute_dtype(x.dtype))
    eps = float(np.finfo(wide.dtype).eps) if eps is None else eps
    count = np.asarray(math.prod(x.shape[d] for d in axes), wide.dtype)
    square = restore_dims(lax.div(lax.reduce_sum(lax.square(wide), axes), count), axes, True)
    return cast(_affine(_scale_by_deviation(wide, square, eps), weight, None, axes), x.dtype)


def group_norm(x, weight=None, bias=None, /, num_groups: int = 1, eps: float = 1e-5):
    """Return x normalised over groups of channels and all other dims but the batch.

    Args:
        x: ``(N, C, ...)``, floats.
        weight: ``(C,)`` or None.
        bias: ``(C,)`` or None.
        num_groups: divides C.
        eps: added to the variance.

    Returns:
        The shape of ``x``. Splits of the batch stay, and of the channels where no group is cut.

    Example:
        >>> x = flow.arange(4.0).reshape(1, 2, 2)
        >>> flow.nn.functional.group_norm(x, 2)
        tensor([[[-1.0000,  1.0000],
                 [-1.0000,  1.0000]]])
    """
    if x.ndim < 2 or x.shape[1] % num_groups:
        fail(
            "shape",
            f"group_norm(num_groups={num_groups})",
            f"x {x.shape}",
            "x is (N, C, ...) and the groups divide C",
            "num_groups=1",
        )
    for given in (weight, bias):
        if given is not None and given.shape != (x.shape[1],):
            rule = f"The channels of input tensor must equal num_channels: {x.shape[1]} and {given.shape[0]}"
            fail(
                "shape", f"group_norm(num_groups={num_groups})", f"x {x.shape}", rule, f"x of {given.shape[0]} channels"
            )
    wide = lax.reshape(
        cast(x, compute_dtype(x.dtype)), (x.shape[0], num_groups, x.shape[1] // num_groups, *x.shape[2:])
    )
    _, variance, centered = _statistics(wide, tuple(range(2, wide.ndim)))
    out = lax.reshape(_scale_by_deviation(centered, variance, eps), x.shape)
    return cast(_affine(out, weight, bias, (1,)), x.dtype)


def _update_running(running, new, momentum: float):
    """Return the running statistic moved towards the new one; no gradient passes."""
    if running is None:
        return None
    new = cast(lax.stop_gradient(new), running.dtype)
    keep, take = (np.asarray(m, running.dtype) for m in (1.0 - momentum, momentum))
    return lax.add(lax.mul(running, keep), lax.mul(new, take))


def _unbias_variance(variance, count: int):
    if isinstance(count, int):
        return lax.mul(variance, np.asarray(count / max(count - 1, 1), variance.dtype))
    ratio = lax.div(size_as(count, np.float64), size_as(count - 1, np.float64))
    return lax.mul(variance, ratio.astype(variance.dtype))


def batch_norm(
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    /,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    axis: int = 1,
):
    """Return (x normalised per channel, new running mean, new running variance).

    Args:
        x: ``(N, C, ...)``, floats; a split batch costs one reduction of each statistic: they are of the whole batch.
        running_mean: ``(C,)`` or None.
        running_var: ``(C,)`` or None.
        weight: ``(C,)`` or None.
        bias: ``(C,)`` or None.
        training: use the batch's statistics and move the running ones; else use the running ones as they are.
        momentum: how far the running statistics move (the variance with the unbiased one, as in torch).
        eps: added to the variance.
        axis: the channel dim.

    Returns:
        ``(out, mean, var)``; the statistics are None where none were given, and unchanged if not ``training``.
    """
    if x.shape == (0,) and weight is None and bias is None:
        return x, running_mean, running_var  # as in PyTorch, which looks at no channels then
    channel = one(axis, x.ndim, "batch_norm")
    _check_affine(
        "batch_norm", (x.shape[channel],), running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    wide = cast(x, compute_dtype(x.dtype))
    others = tuple(d for d in range(x.ndim) if d != channel)
    if training or running_mean is None:
        count = math.prod(x.shape[d] for d in others)
        if training and count == 0:  # as in PyTorch, nothing is normalised and the running statistics stay
            return cast(_affine(wide, weight, bias, (channel,)), x.dtype), running_mean, running_var
        if training and count == 1:
            fail(
                "value",
                "batch_norm(training=True)",
                f"x {x.shape}",
                f"more than 1 value per channel, got {count}",
                "a larger batch",
            )
        mean, variance, centered = _statistics(wide, others)
        if training:
            running_mean = _update_running(running_mean, lax.squeeze(mean, others), momentum)
            running_var = _update_running(running_var, _unbias_variance(lax.squeeze(variance, others), count), momentum)
    else:
        sizes = tuple(n if d == channel else 1 for d, n in enumerate(x.shape))
        mean, variance = (
            lax.broadcast_in_dim(cast(v, wide.dtype), sizes, (channel,)) for v in (running_mean, running_var)
        )
        centered = lax.sub(wide, mean)
    out = cast(_affine(_scale_by_deviation(centered, variance, eps), weight, bias, (channel,)), x.dtype)
    return out, running_mean, running_var


def instance_norm(
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    /,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
):
    """Return (x normalised per sample and channel, new running mean, new running variance), as `batch_norm` does.

    Args:
        x: ``(N, C, ...)``, floats.
        running_mean: ``(C,)`` or None.
        running_var: ``(C,)`` or None.
        weight: ``(C,)`` or None.
        bias: ``(C,)`` or None.
        use_input_stats: use the statistics of each sample and move the running ones by their mean over the batch.
        momentum: how far the running statistics move.
        eps: added to the variance.
    """
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, training=False, momentum=momentum, eps=eps)
    axes = tuple(range(2, x.ndim))
    count = math.prod(x.shape[2:])
    if count <= 1:
        fail(
            "value",
            "instance_norm",
            f"x {x.shape}",
            f"more than 1 value per sample and channel, got {count}",
            "larger images",
        )
    mean, variance, centered = _statistics(cast(x, compute_dtype(x.dtype)), axes)

    def batch_mean(value):
        return lax.div(lax.reduce_sum(lax.squeeze(value, axes), (0,)), np.asarray(x.shape[0], value.dtype))

    if running_mean is not None:
        running_mean = _update_running(running_mean, batch_mean(mean), momentum)
        running_var = _update_running(running_var, batch_mean(_unbias_variance(variance, count)), momentum)
    out = cast(_affine(_scale_by_deviation(centered, variance, eps), weight, bias, (1,)), x.dtype)
    return out, running_mean, running_var


def normalize(x, /, p: float = 2.0, dim=1, eps: float = 1e-12):
    """Return x divided by its p-norm over ``dim``, or by ``eps`` where that is larger.

    Args:
        p: the power of the norm.
        eps: the least that is divided by.

    Returns:
        The shape of ``x``. Splits of other dims stay; a partial sum is reduced first.

    Example:
        >>> flow.nn.functional.normalize(flow.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    size = _vector_norm(x, p=p, dim=dim, keepdim=True)
    return lax.div(x, lax.convert_element_type(_at_least(size, eps), x.dtype))  # the norm of complex numbers is real


def _at_least(x, low: float):
    return lax.select_n(lax.lt(x, np.asarray(low, x.dtype)), x, lax.full_like(x, low))


def cosine_similarity(x, y, /, dim: int = 1, eps: float = 1e-8):
    """Return the cosine of the angle between x and y along ``dim``; each norm counts as at least ``eps``.

    Args:
        eps: the least that a norm counts.

    Returns:
        The broadcast shape without the dim. Splits of other dims stay.

    Example:
        >>> flow.nn.functional.cosine_similarity(flow.tensor([[1.0, 1.0]]), flow.tensor([[1.0, 0.0]]))
        tensor([0.7071])
    """
    shape = joint_shape(x.shape, y.shape)
    (dim,) = several(dim, max(len(shape), 1), "cosine_similarity")
    shape = shape or (1,)  # a number counts as a vector of one element
    seen = f"dtypes {x.dtype} and {y.dtype}"
    common = promote_types(x.dtype, y.dtype)  # torch counts a 0-d tensor like any other here
    x, y = (broadcast_to(cast(v, common), shape) for v in (x, y))
    if not is_float(x.dtype):
        fail("type", "cosine_similarity", seen, "one of them is a float", "x.float()")
    x, y = (lax.div(v, _at_least(_vector_norm(v, dim=dim, keepdim=True), eps)) for v in (x, y))
    return lax.reduce_sum(lax.mul(x, y), (dim,))


def pairwise_distance(x, y, /, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
    """Return the p-norm over the last dim of ``x - y + eps``."""
    return _vector_norm(add(sub(x, y), eps), p=p, dim=-1, keepdim=keepdim)


def local_response_norm(x, /, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
    """Return x divided by ``(k + alpha * mean of the squares of size neighbouring channels) ** beta``.

    Args:
        x: ``(N, C, ...)``; integers become floats.
        size: how many channels count, the missing ones at the ends as zeros.
        alpha: factor of the mean.
        beta: exponent.
        k: the added constant.
    """
    if x.ndim < 3:
        rule = f"Expected 3D or higher dimensionality input (got {x.ndim} dimensions)"
        fail("value", "local_response_norm", f"x {x.shape}", rule, "x of (N, C, ...)")
    # Channels further away than there are channels are zeros.
    before, after = min(size // 2, max(x.shape[1] - 1, 0)), min((size - 1) // 2, max(x.shape[1] - 1, 0))
    ends = [(before, after, 0) if d == 1 else (0, 0, 0) for d in range(x.ndim)]
    squares = lax.pad(lax.square(x), np.zeros((), x.dtype), ends)
    total = lax.slice_in_dim(squares, 0, x.shape[1], axis=1)
    for i in range(1, before + after + 1):
        total = lax.add(total, lax.slice_in_dim(squares, i, i + x.shape[1], axis=1))
    if np.issubdtype(x.dtype, np.integer):  # torch takes the mean of integers, without its fraction, and then floats
        total, x, alpha = floats(lax.div(total, np.asarray(size, x.dtype))), floats(x), alpha * size
    scale = lax.add(lax.mul(total, np.asarray(alpha / size, x.dtype)), np.asarray(k, x.dtype))
    return lax.div(x, lax.pow(scale, np.asarray(beta, x.dtype)))
