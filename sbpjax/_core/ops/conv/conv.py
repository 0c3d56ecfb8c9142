"""Convolutions and transposed convolutions over 1 to 3 spatial dims, each one equation.

It is ``conv_general_dilated``, a product for a tiny image, or `convolution` of one pixel, in groups, or of kernels that
are large relative to their input.

Worked case: `conv2d` of x (N, C, H, W) with a weight (O, C / groups, kh, kw) gives (N, O, H', W'),
``H' = (H + 2 * padding - dilation * (kh - 1) - 1) // stride + 1``. A split of N or of O passes through, a split of C
gives partial_sum. An input without the batch dim is given one and loses it again.
"""

from __future__ import annotations

import itertools
import math

from jax import lax

from sbpjax._core.runtime import sizes

from ..dims import fail
from ..promote import cast, category
from .cpu import is_pointwise
from .primitive import convolution
from .products import has_few_outputs, outputs

_FEW = 16  # windows that a product may read one by one

_LETTERS = "DHW"


def per_dim(value, n: int, name: str) -> tuple[int, ...]:
    """Return one number per spatial dim from a number or a sequence of 1 or n of them."""
    values = (value,) * n if isinstance(value, int) else tuple(int(v) for v in value)
    values = values * n if len(values) == 1 else values
    if len(values) != n:
        fail(
            "value",
            f"{name}={value!r}",
            f"{n} spatial dims",
            f"{name} is a number or {n} numbers",
            f"{name}={values[:1]}",
        )
    return values


def _add_batch_dim(x, n: int, op: str):
    if x.ndim not in (n + 1, n + 2):
        fail("shape", op, f"x {x.shape}", f"x has {n + 2} dims (N, C, ...), or {n + 1} without the batch", "reshape x")
    return (x, False) if x.ndim == n + 2 else (lax.expand_dims(x, (0,)), True)


def _finish(out, bias, single: bool):
    if bias is not None:
        if bias.dtype != out.dtype:
            rule = "input type and bias type should be the same"
            fail("shape", "conv(x, weight, bias)", f"x {out.dtype}, bias {bias.dtype}", rule, "bias.to(x.dtype)")
        sizes = tuple(bias.shape[0] if d == 1 else 1 for d in range(out.ndim))
        out = lax.add(out, lax.broadcast_in_dim(cast(bias, out.dtype), sizes, (1,)))
    return lax.squeeze(out, (0,)) if single else out


def _padding(padding, sizes, stride, dilation, op: str):
    n = len(sizes)
    if padding == "valid":
        return [(0, 0)] * n
    if padding == "same":
        if set(stride) != {1}:
            fail(
                "value",
                f"{op}(padding='same')",
                f"stride {stride}",
                "'same' needs stride 1",
                "stride=1, or a number as padding",
            )
        total = [d * (k - 1) for d, k in zip(dilation, sizes)]
        return [(t // 2, t - t // 2) for t in total]
    if isinstance(padding, str):
        fail("value", f"{op}(padding={padding!r})", "a text", "padding is 'same', 'valid' or numbers", "padding=0")
    return [(p, p) for p in _check_non_negative(per_dim(padding, n, "padding"), "padding", op)]


def _check_non_negative(sizes: tuple, name: str, op: str) -> tuple:
    """Return sizes along dims, none of which is negative."""
    if min(sizes) < 0:
        fail("value", f"{op}({name}={sizes})", f"{name}={sizes}", f"negative {name} is not supported", f"{name}=0")
    return sizes


def _check(x, weight, channels: int, groups: int, op: str) -> None:
    if weight.ndim != x.ndim or groups < 1 or x.shape[1] % groups or x.shape[1] != channels:
        fail(
            "shape",
            f"{op}(groups={groups})",
            f"x {x.shape}, weight {weight.shape}",
            f"The input channels {x.shape[1]} should be equal to self.in_channels {channels}. "
            f"The weight has {x.ndim} dims",
            "check weight and groups",
        )
    if weight.dtype != x.dtype:
        fail("type", op, f"x {x.dtype}, weight {weight.dtype}", "x and weight have the same dtype", "cast one of them")


def _fits_bias(bias, weight, channels: int, op: str) -> None:
    if bias is not None and bias.shape != (channels,):
        rule = f"expected bias to be 1-dimensional with {channels} elements, but got bias of size {list(bias.shape)}"
        fail("shape", op, f"weight {weight.shape}, bias {bias.shape}", rule, "make the bias fit the weight")


def _numbers(n: int):
    spatial = _LETTERS[-n:]
    return ("NC" + spatial, "OI" + spatial, "NC" + spatial)


def _check_padded(x, ends, stretch, op: str) -> None:
    """Raise unless XLA can count the padded input, whose elements are `stretch` apart: it ends the process if not."""
    padded = [(n - 1) * s + 1 + a + b for n, s, (a, b) in zip(x.shape[2:], stretch, ends)]
    sizes.check_bytes(op, (*x.shape[:2], *padded), x.dtype)


def conv(x, weight, bias=None, /, stride=1, padding=0, dilation=1, groups: int = 1):
    """Return the convolution (cross-correlation) over the spatial dims that the weight has.

    Args:
        x: ``(N, C, ...)`` or ``(C, ...)``.
        weight: ``(O, C / groups, ...)``.
        bias: ``(O,)`` or None.
        stride: number or one per spatial dim.
        padding: number(s), ``"same"`` or ``"valid"``.
        dilation: number(s).
        groups: divides C and O.
    """
    n = weight.ndim - 2
    op = f"conv{n}d"
    x, single = _add_batch_dim(x, n, op)
    _check(x, weight, weight.shape[1] * groups, groups, op)
    _fits_bias(bias, weight, weight.shape[0], op)
    stride, dilation = per_dim(stride, n, "stride"), per_dim(dilation, n, "dilation")
    if min(*stride, *dilation) < 1:
        seen = f"stride={stride}, dilation={dilation}"
        fail("value", f"{op}(...)", seen, "non-positive stride or dilation is not supported", "stride=1, dilation=1")
    ends = _padding(padding, weight.shape[2:], stride, dilation, op)
    for size, k, d, (a, b) in zip(x.shape[2:], weight.shape[2:], dilation, ends):
        if size + a + b < d * (k - 1) + 1:
            fail(
                "shape",
                op,
                f"x {x.shape}, weight {weight.shape}",
                f"the padded input {size + a + b} covers the kernel {d * (k - 1) + 1}",
                "pad x",
            )
    _check_padded(x, ends, (1,) * n, op)
    if groups == 1 and max(dilation) == 1 and _is_tiny(x.shape[2:], weight.shape[2:], stride, ends):
        return _finish(_product(x, weight, stride, ends), bias, single)
    # Of real floats; other numbers are rare, and XLA has no transposed convolution of some.
    special = groups > 1 or is_pointwise(weight.shape[2:], ends) or _has_few_outputs(x, weight, stride, ends, dilation)
    if category(x.dtype) == 2 and special:
        out = convolution(x, weight, strides=stride, padding=ends, dilation=dilation, groups=groups)
        return _finish(out, bias, single)
    out = lax.conv_general_dilated(
        x, weight, stride, ends, rhs_dilation=dilation, dimension_numbers=_numbers(n), feature_group_count=groups
    )
    return _finish(out, bias, single)


def _has_few_outputs(x, weight, stride, ends, dilation) -> bool:
    """Return whether the kernels are large relative to their input; unknown, so False, for symbolic sizes."""
    counts = outputs(x.shape[2:], weight.shape[2:], stride, ends, dilation)
    known = all(isinstance(n, int) for n in (x.shape[0], weight.shape[0], *counts))
    return known and has_few_outputs(x.shape[0], counts, weight.shape[0])


def _is_tiny(sizes, kernel, stride, ends) -> bool:
    """Return whether the kernel has more elements than the image or than the output, and the output has few.

    XLA swaps image and kernel of such a convolution (the output takes the image's place in the gradient), since a naive
    loop then has fewer iterations, and XLA:CPU then has nothing but the naive loop for it: 3 x 3 on 2 x 2 pixels of 512
    channels took 50 times as long as the product. A trace with symbolic sizes is never XLA's.
    """
    if not all(isinstance(n, int) for n in sizes):
        return False
    count = math.prod(outputs(sizes, kernel, stride, ends, (1,) * len(kernel)))
    return count <= _FEW and math.prod(kernel) > min(math.prod(sizes), count)


def _product(x, weight, stride, ends):
    """Return a convolution as one product: of the window of each output with the whole kernel."""
    kernel = weight.shape[2:]
    counts = outputs(x.shape[2:], kernel, stride, ends, (1,) * len(kernel))
    padded = lax.pad(x, x.dtype.type(0), ((0, 0, 0), (0, 0, 0), *((a, b, 0) for a, b in ends)))
    windows = []
    for place in itertools.product(*map(range, counts)):
        first = [i * s for i, s in zip(place, stride)]
        last = [f + k for f, k in zip(first, kernel)]
        window = lax.slice(padded, (0, 0, *first), (*x.shape[:2], *last))
        windows.append(lax.expand_dims(window, (1,)))
    read = windows[0] if len(windows) == 1 else lax.concatenate(windows, 1)  # (N, outputs, C, *kernel)
    # One summed dim, and the weight, which is the larger one, on the left: XLA:CPU takes a fifth of the time then.
    summed = math.prod(weight.shape[1:])
    read = lax.reshape(read, (*read.shape[:2], summed))
    weight = lax.reshape(weight, (weight.shape[0], summed))
    out = lax.dot_general(weight, read, (((1,), (2,)), ((), ())))  # (O, N, outputs)
    return lax.reshape(lax.transpose(out, (1, 0, 2)), (x.shape[0], weight.shape[0], *counts))


def _check_rank(weight, n: int) -> None:
    if weight.ndim != n + 2:
        fail("shape", f"conv{n}d", f"weight {weight.shape}", f"the weight has {n + 2} dims", f"conv{weight.ndim - 2}d")


def conv1d(x, weight, bias=None, /, stride=1, padding=0, dilation=1, groups: int = 1):
    """Return the convolution of `(N, C, L)` with kernels.

    Args:
        x: `(N, C, ...)` or `(C, ...)`; a split batch needs no communication.
        weight: `(O, C / groups, ...)`; ``split(0)`` splits the output channels, ``split(1)`` makes the result a
            partial sum if the input's channels are split too.
        bias: `(O,)` or None.
        stride: step of the kernel, a number or one per dim.
        padding: zeros added on both sides, a number or one per dim, or ``"same"`` or ``"valid"``.
        dilation: distance of the kernel's cells, a number or one per dim.
        groups: channels are divided into so many groups that do not mix.

    Returns:
        ``(N, Cout, ...)``. Splits of the batch and of the weight's output channels stay; where the input channels of
        both are split, the result is a partial sum.

    Example:
        >>> flow.nn.functional.conv1d(flow.tensor([[[1.0, 2.0, 3.0]]]), flow.tensor([[[1.0, 1.0]]]))
        tensor([[[3., 5.]]])
    """
    _check_rank(weight, 1)
    return conv(x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)


def conv2d(x, weight, bias=None, /, stride=1, padding=0, dilation=1, groups: int = 1):
    """Return the convolution of `(N, C, H, W)` with kernels; arguments as in `conv1d`.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.ones(2, 3, 8, 8, placement=p, sbp=flow.sbp.split(0))
        >>> w = flow.ones(4, 3, 3, 3, placement=p, sbp=flow.sbp.broadcast)
        >>> y = flow.nn.functional.conv2d(x, w, padding=1)
        >>> y.shape, y.sbp
        (sbpjax.Size([2, 4, 8, 8]), (sbpjax.sbp.split(dim=0),))
    """
    _check_rank(weight, 2)
    return conv(x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)


def conv3d(x, weight, bias=None, /, stride=1, padding=0, dilation=1, groups: int = 1):
    """Return the convolution of `(N, C, D, H, W)` with kernels; arguments as in `conv1d`.

    Example:
        >>> flow.nn.functional.conv3d(flow.ones(1, 2, 4, 4, 4), flow.ones(3, 2, 2, 2, 2)).shape
        sbpjax.Size([1, 3, 3, 3, 3])
    """
    _check_rank(weight, 3)
    return conv(x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)


def conv_transpose(x, weight, bias=None, /, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1):
    """Return the transposed convolution: the gradient of `conv` with respect to its input, as a function of x.

    Args:
        x: ``(N, C, ...)`` or ``(C, ...)``.
        weight: ``(C, O / groups, ...)``.
        bias: ``(O,)`` or None.
        stride: number(s): the spacing of x's elements in the output.
        padding: number(s) cut from both ends of the output.
        output_padding: number(s) added to the far end, less than stride or dilation.
        groups: divides C and O.
        dilation: number(s).
    """
    n = weight.ndim - 2
    op = f"conv_transpose{n}d"
    x, single = _add_batch_dim(x, n, op)
    _check(x, weight, weight.shape[0], groups, op)
    _fits_bias(bias, weight, weight.shape[1] * groups, op)
    stride, dilation = per_dim(stride, n, "stride"), per_dim(dilation, n, "dilation")
    padding = _check_non_negative(per_dim(padding, n, "padding"), "padding", op)
    extra = _check_non_negative(per_dim(output_padding, n, "output_padding"), "output_padding", op)
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation)):
        fail(
            "value",
            f"{op}(output_padding={extra})",
            f"stride {stride}, dilation {dilation}",
            "the output padding is less than stride or dilation",
            "output_padding=0",
        )
    kernel = lax.rev(weight, tuple(range(2, n + 2)))
    if groups > 1:  # (g · c, o, ...) -> (g · o, c, ...)
        kernel = lax.reshape(kernel, (groups, weight.shape[0] // groups, *weight.shape[1:]))
        kernel = lax.transpose(kernel, (0, 2, 1, *range(3, n + 3)))
        kernel = lax.reshape(kernel, (groups * weight.shape[1], weight.shape[0] // groups, *weight.shape[2:]))
    else:
        kernel = lax.transpose(kernel, (1, 0, *range(2, n + 2)))
    spans = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    ends = [(w - p, w - p + e) for w, p, e in zip(spans, padding, extra)]
    _check_padded(x, ends, stride, op)
    out = lax.conv_general_dilated(
        x,
        kernel,
        (1,) * n,
        ends,
        lhs_dilation=stride,
        rhs_dilation=dilation,
        dimension_numbers=_numbers(n),
        feature_group_count=groups,
    )
    return _finish(out, bias, single)


def conv_transpose1d(x, weight, bias=None, /, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1):
    """Return the transposed convolution of `(N, C, L)`: the gradient of `conv1d` as a function of its output.

    Args:
        x: `(N, C, ...)` or `(C, ...)`.
        weight: `(C, O / groups, ...)`.
        bias: `(O,)` or None.
        stride: distance of the input's cells in the output.
        padding: cells cut from both sides of the output.
        output_padding: cells added to one side of the output.
        groups: channels are divided into so many groups that do not mix.
        dilation: distance of the kernel's cells.

    Returns:
        ``(N, Cout, ...)``. Splits of the batch and of the weight's output channels (its dim 1) stay; where the input
        channels of both are split, the result is a partial sum.
    """
    _check_rank(weight, 1)
    return conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(x, weight, bias=None, /, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1):
    """Return the transposed convolution of `(N, C, H, W)`; arguments as in `conv_transpose1d`.

    Example:
        >>> flow.nn.functional.conv_transpose2d(flow.ones(1, 3, 4, 4), flow.ones(3, 2, 2, 2), stride=2).shape
        sbpjax.Size([1, 2, 8, 8])
    """
    _check_rank(weight, 2)
    return conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(x, weight, bias=None, /, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1):
    """Return the transposed convolution of `(N, C, D, H, W)`; arguments as in `conv_transpose1d`."""
    _check_rank(weight, 3)
    return conv_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation)
