"""Sharding rules of window primitives: convolution, pooling, cumulative sums.

A convolution is a contraction: the batch and the output channels are free dims, the input channels a contracted one,
so a split of them gives a partial sum. Its two gradients are convolutions as well, with the batch contracted in that
of the kernel. With groups, a split of the channels cuts between groups: a depthwise convolution over 8 channels runs
as 4 of 2 channels each.
"""

from __future__ import annotations

import math

from sbpjax._core.programs.primitives import CUMULATIVE, WINDOW_REDUCTIONS

from .table import B, Context, P, Strategy, local, other_dims, rule


@rule("conv_general_dilated")
def convolution(eqn, size: int) -> list[Strategy]:
    """Split batch and output channels, input channels S,S → P, groups S,S → S; partial in either operand."""
    numbers, groups = eqn.params["dimension_numbers"], eqn.params["feature_group_count"]
    batch_groups = eqn.params["batch_group_count"]
    (batch, feature, *space), (out_l, in_r, *space_r), (batch_o, feature_o, *space_o) = numbers
    shape, kernel = (v.aval.shape for v in eqn.invars)
    found = []
    if batch_groups == 1 and shape[batch] > 1:
        found.append(Strategy((batch, B), (batch_o,)))
    if batch_groups == 1 and groups == 1 and kernel[out_l] > 1:
        found.append(Strategy((B, out_l), (feature_o,)))
    if groups == 1 and kernel[in_r] > 1:
        found.append(Strategy((feature, in_r), (P,)))
    # A split that cuts a group would need its other half for every output channel.
    if groups % size == 0 and groups > 1:
        found.append(Strategy((feature, out_l), (feature_o,), rigid_ins=(0, 1), groups=groups))
    if batch_groups % size == 0 and batch_groups > 1:
        found.append(Strategy((batch, out_l), (feature_o,), rigid_ins=(0, 1), groups=batch_groups))
    found += [
        Strategy((i, B), (o,))
        for k, (i, j, o) in enumerate(zip(space, space_r, space_o))
        if kernel[j] == 1 and shape[i] > 1 and _is_pointwise_dim(eqn.params, k)
    ]
    return [*found, Strategy((P, B), (P,)), Strategy((B, P), (P,))]


def _is_pointwise_dim(params, k: int) -> bool:
    """Return whether spatial dim ``k`` is not strided, padded or dilated, so that a 1-wide kernel works row by row."""
    return params["window_strides"][k] == 1 and tuple(params["padding"][k]) == (0, 0) and params["lhs_dilation"][k] == 1


@local("conv_general_dilated")
def convolution_local(ctx: Context, x, kernel):
    """Convolve the blocks, with fewer groups where they are split and padded input channels zeroed on both sides."""
    (batch, feature, *_), (out_l, in_r, *_), _ = ctx.params["dimension_numbers"]
    x, kernel = ctx.mask(x, 0, (feature,), 0), ctx.mask(kernel, 1, (in_r,), 0)
    changed = {}
    for name, dim in (("feature_group_count", feature), ("batch_group_count", batch)):
        if ctx.params[name] > 1:
            cut = math.prod(n for n, l, r in zip(ctx.here.sizes, ctx.ins[0], ctx.ins[1]) if (l, r) == (dim, out_l))
            changed[name] = ctx.params[name] // cut
    return ctx.bind(x, kernel, **changed)


def _windowed_dims(params) -> set[int]:
    """Return the dims along which a window reads more than one row, or moves."""
    ndim = len(params["window_dimensions"])
    ones, zeros = (1,) * ndim, ((0, 0),) * ndim
    return {
        d
        for d in range(ndim)
        if (params["window_dimensions"][d], params["window_strides"][d], params.get("base_dilation", ones)[d])
        != (1, 1, 1)
        or tuple(params.get("padding", zeros)[d]) != (0, 0)
    }


@rule(*WINDOW_REDUCTIONS)
def reduce_window(eqn, size: int) -> list[Strategy]:
    """Split dims outside the window; a sum keeps P."""
    found = other_dims(eqn, _windowed_dims(eqn.params))
    return [*found, Strategy((P,), (P,))] if eqn.primitive.name == "reduce_window_sum" else found


@rule("reduce_window")
def general_reduce_window(eqn, size: int) -> list[Strategy]:
    """Split dims outside the window; the initial values are scalars."""
    half = len(eqn.invars) // 2
    found = other_dims(eqn, _windowed_dims(eqn.params))
    return [Strategy(s.ins[:half] + (B,) * half, s.outs) for s in found]


@rule("select_and_scatter_add", "select_and_gather_add")
def select_window(eqn, size: int) -> list[Strategy]:
    """Split dims outside the window; linear in the first operand, the gradient of a pooling or its tangent."""
    return [*other_dims(eqn, _windowed_dims(eqn.params)), Strategy((P, B), (P,))]


@rule(*CUMULATIVE)
def cumulative(eqn, size: int) -> list[Strategy]:
    """Split dims other than the accumulated one; a cumulative sum keeps P."""
    found = other_dims(eqn, {eqn.params["axis"]})
    return [*found, Strategy((P,), (P,))] if eqn.primitive.name == "cumsum" else found
