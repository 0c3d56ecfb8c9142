"""Normalisations with running statistics; the others are in `rows/layers.py`."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from sbpjax._core import naming
from sbpjax._core.functions.table import table
from sbpjax._core.ops.dims import fail, same_dtype
from sbpjax._core.ops.layers import norm as ops
from sbpjax._core.ops.layers import shared_statistics as shared
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.dispatch import apply, run
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.storage.inplace import assign_result
from sbpjax._core.tensor.tape.grad_mode import no_grad


def batch_norm_of_batch(x: Any, weight: Any, bias: Any, /, eps: float) -> Any:
    return ops.batch_norm(x, None, None, weight, bias, training=True, eps=eps)[0]


def batch_norm_with_statistics(x: Any, mean: Any, var: Any, weight: Any, bias: Any, /, eps: float) -> Any:
    """Return an array normalised with statistics that are given; the op of `batch_norm` in evaluation."""
    return ops.batch_norm(x, mean, var, weight, bias, training=False, eps=eps)[0]


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `(N, C, ...)` normalised per channel, scaled and shifted; in training move the running statistics.

    Args:
        input: `(N, C, ...)`; the statistics are those of the whole logical batch under every sbp.
        running_mean: `(C,)` or None; written in training.
        running_var: `(C,)` or None; written in training, with the unbiased variance.
        weight: `(C,)` or None.
        bias: `(C,)` or None.
        training: use the batch's statistics.
        momentum: weight of this batch in the running statistics; a 0-d tensor may change from call to call.
        eps: added to the variance.

    Returns:
        The shape of ``input``. Splits stay; a split batch costs all-reduces of the statistics.

    Raises:
        OpError: no running statistics in evaluation mode.
        OpValueError: a negative `eps` in training, or under the name torch one of 0.

    Example:
        >>> flow.nn.functional.batch_norm(flow.tensor([[1.0], [3.0]]), None, None, training=True, eps=0.0)
        tensor([[-1.],
                [ 1.]])
    """
    if training and not (eps > 0 or (eps == 0 and not naming.is_torch())):
        rule = f"batch_norm eps must be positive during training, but got {eps}"
        fail("value", "batch_norm(training=True)", f"eps={eps}", rule, "eps=1e-5")
    if not training:
        if running_mean is None or running_var is None:
            fail(
                "shape",
                "batch_norm(training=False)",
                f"running_mean {'given' if running_mean is not None else 'None'}, "
                f"running_var {'given' if running_var is not None else 'None'}",
                "Expected running_mean and running_var to be defined when training=False",
                "training=True takes the batch's own statistics",
            )
        return apply(batch_norm_with_statistics, input, running_mean, running_var, weight, bias, eps=eps)
    if running_mean is None or running_var is None:
        return apply(batch_norm_of_batch, input, weight, bias, eps=eps)
    moving = isinstance(momentum, Tensor)
    static = (("training", True), ("momentum", 1.0 if moving else momentum), ("eps", eps))
    pins = None
    if running_mean.is_global and not running_mean.is_lazy and running_mean.layout.shape is not None:
        pins = (None, running_mean.sbp, running_var.sbp)
    inputs = (input, running_mean, running_var, weight, bias)
    out, mean, var = run(op_of(ops.batch_norm, static), inputs, pins)
    with no_grad():
        if moving:
            mean = running_mean + (mean.detach() - running_mean) * momentum
            var = running_var + (var.detach() - running_var) * momentum
        assign_result(running_mean, mean.detach(), "batch_norm")
        assign_result(running_var, var.detach(), "batch_norm")
    return out


def batch_norm_over_ranks(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float | Tensor,
    eps: float,
    gather: Callable[[Tensor], Tensor],
) -> Tensor:
    """Return `batch_norm` in training of the rows of all ranks, of which each has some, or none, as a local tensor.

    Args:
        input: `(N, C, ...)`, this rank's rows.
        running_mean: `(C,)` or None; moved towards the mean of all rows.
        running_var: `(C,)` or None.
        weight: `(C,)` or None.
        bias: `(C,)` or None.
        momentum: how far the running statistics move.
        eps: added to the variance.
        gather: returns a tensor of all ranks, stacked; differentiable.
    """
    rows = gather(apply(shared.own_statistics, input))
    mean, var, *moved = apply(shared.joined_statistics, rows, running_mean, running_var, momentum)
    out = apply(batch_norm_with_statistics, input, mean, var, weight, bias, eps=eps)
    with no_grad():
        for running, new in zip([r for r in (running_mean, running_var) if r is not None], moved, strict=True):
            assign_result(running, new.detach(), "batch_norm")
    return out


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `(N, C, ...)` normalised per sample and channel, scaled and shifted.

    Args:
        input: `(N, C, ...)`; splits of the batch and the channels need no communication.
        running_mean: `(C,)` or None; moved towards the mean over the batch if `use_input_stats`.
        running_var: `(C,)` or None.
        weight: `(C,)` or None.
        bias: `(C,)` or None.
        use_input_stats: use each sample's own statistics.
        momentum: weight of this batch in the running statistics.
        eps: added to the variance.
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if running_mean is None or running_var is None:
        return apply(_per_sample, input, weight, bias, eps=eps)
    static = (("momentum", momentum), ("eps", eps))
    pins = None
    if running_mean.is_global and not running_mean.is_lazy and running_mean.layout.shape is not None:
        pins = (None, running_mean.sbp, running_var.sbp)
    out, mean, var = run(op_of(ops.instance_norm, static), (input, running_mean, running_var, weight, bias), pins)
    with no_grad():
        assign_result(running_mean, mean.detach(), "instance_norm")
        assign_result(running_var, var.detach(), "instance_norm")
    return out


def _per_sample(x: Any, weight: Any, bias: Any, /, eps: float) -> Any:
    return ops.instance_norm(x, None, None, weight, bias, eps=eps)[0]


def _check_dtypes(op: str, input: Tensor, *parameters: Tensor | None) -> None:
    """Raise unless the parameters of a norm have the dtype of its input, or float32 if that has 16 bits."""
    half = input.element_size() == 2
    same_dtype(op, input, *(x for x in parameters if x is not None and not (half and x.dtype.np == "float32")))


def _statistics(x: Tensor, dims: tuple[int, ...], keepdim: bool, eps: float, *parameters: Tensor | None):
    """Return means and reciprocal deviations, in float32 if 16-bit values have a float32 parameter, else in their own.

    They are computed in float32: a rounded variance would round the deviation twice.
    """
    values = x.float() if x.element_size() == 2 else x
    mean = values.mean(dims, keepdim=keepdim)
    deviation = (values.var(dims, correction=0, keepdim=keepdim) + eps).rsqrt()
    wide = any(p is not None and p.dtype.np == values.dtype.np for p in parameters)
    return (mean, deviation) if wide else (mean.to(x.dtype), deviation.to(x.dtype))


native_layer_norm_result = namedtuple("native_layer_norm", "output mean rstd")


def native_layer_norm(input: Tensor, normalized_shape, weight, bias, eps: float):
    """Return `nn.functional.layer_norm`, the means and the reciprocal deviations."""
    _check_dtypes("native_layer_norm", input, weight, bias)
    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    out = table.find_function("nn.functional", "layer_norm")(input, normalized_shape, weight, bias, eps)
    return native_layer_norm_result(out, *_statistics(input, dims, True, eps, weight, bias))


native_group_norm_result = namedtuple("native_group_norm", "output mean rstd")


def native_group_norm(input: Tensor, weight, bias, N: int, C: int, HxW: int, group: int, eps: float):
    """Return `nn.functional.group_norm` of `(N, C, ...)`, means and reciprocal deviations, both `(N, group)`."""
    _check_dtypes("native_group_norm", input, weight, bias)
    rows = input.reshape(N, group, C // group * HxW)
    out = table.find_function("nn.functional", "group_norm")(input, group, weight, bias, eps)
    return native_group_norm_result(out, *_statistics(rows, (2,), False, eps, weight, bias))


native_batch_norm_result = namedtuple("native_batch_norm", "output save_mean save_invstd")


def native_batch_norm(
    input: Tensor, weight, bias, running_mean, running_var, training: bool, momentum: float, eps: float
):
    """Return `nn.functional.batch_norm`, the batch's means and reciprocal deviations; these are empty in evaluation.

    Raises:
        OpTypeError: a parameter or a statistic of another dtype than the input (or float32 for a half), or a wrong type
            of `training` or `momentum`.
    """
    if not isinstance(training, bool) or not isinstance(momentum, (int, float, Tensor)):
        seen = f"training={training!r}, momentum={momentum!r}"
        fail(
            "type",
            "native_batch_norm(...)",
            seen,
            "training is a bool, momentum a number",
            "training=True, momentum=0.1",
        )
    _check_dtypes("native_batch_norm", input, weight, bias, running_mean, running_var)
    out = batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    parameters = (weight, bias, running_mean, running_var)
    if not training:
        wide = any(p is not None and p.dtype != input.dtype for p in parameters)
        nothing = input.new_empty(0).float() if wide else input.new_empty(0)
        return native_batch_norm_result(out, nothing, nothing.clone())
    dims = tuple(d for d in range(input.ndim) if d != 1)
    return native_batch_norm_result(out, *_statistics(input, dims, False, eps, *parameters))
