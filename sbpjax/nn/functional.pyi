"""Written by `make stubs` from the live package; do not edit."""
# Functional forms of the layers, with PyTorch's signatures.

import builtins
import collections.abc
import typing
import sbpjax._core.tensor.handle.types as _types
from sbpjax._core.tensor.creation.generator import Generator as _Generator
from sbpjax._core.tensor.handle.tensor import Tensor as _Tensor

def adaptive_avg_pool1d(input: _Tensor, output_size: _types.IntOrInts) -> _Tensor:
    """Return means of ``output_size`` windows that cover the last dim, of nearly equal size."""
def adaptive_avg_pool2d(input: _Tensor, output_size: _types.IntOrInts) -> _Tensor:
    """Return means of windows that cover the last 2 dims; None in ``output_size`` keeps a dim.

    Args:
        output_size: the sizes of the last 2 dims, or one number for both; None keeps a size.
    """
def adaptive_avg_pool3d(input: _Tensor, output_size: _types.IntOrInts) -> _Tensor:
    """Return means of windows that cover the last 3 dims; None in ``output_size`` keeps a dim."""
@typing.overload
def adaptive_max_pool1d(input: _Tensor, output_size: _types.IntOrInts, return_indices: typing.Literal[False] = False) -> _Tensor:
    """Return maxima of ``output_size`` windows that cover the last dim, and optionally their places."""
@typing.overload
def adaptive_max_pool1d(input: _Tensor, output_size: _types.IntOrInts, *, return_indices: typing.Literal[True]) -> builtins.tuple[_Tensor, _Tensor]:
    """Return maxima of ``output_size`` windows that cover the last dim, and optionally their places."""
@typing.overload
def adaptive_max_pool1d(input: _Tensor, output_size: _types.IntOrInts, return_indices: builtins.bool = False) -> _Tensor | builtins.tuple[_Tensor, _Tensor]:
    """Return maxima of ``output_size`` windows that cover the last dim, and optionally their places."""
def adaptive_max_pool1d_with_indices(input: _Tensor, output_size: _types.IntOrInts, return_indices: builtins.bool = False) -> _Tensor:
    """Return maxima of ``output_size`` windows that cover the last dim, and optionally their places."""
@typing.overload
def adaptive_max_pool2d(input: _Tensor, output_size: _types.IntOrInts, return_indices: typing.Literal[False] = False) -> _Tensor:
    """Return maxima of windows that cover the last 2 dims, and optionally their flat places."""
@typing.overload
def adaptive_max_pool2d(input: _Tensor, output_size: _types.IntOrInts, *, return_indices: typing.Literal[True]) -> builtins.tuple[_Tensor, _Tensor]:
    """Return maxima of windows that cover the last 2 dims, and optionally their flat places."""
@typing.overload
def adaptive_max_pool2d(input: _Tensor, output_size: _types.IntOrInts, return_indices: builtins.bool = False) -> _Tensor | builtins.tuple[_Tensor, _Tensor]:
    """Return maxima of windows that cover the last 2 dims, and optionally their flat places."""
def adaptive_max_pool2d_with_indices(input: _Tensor, output_size: _types.IntOrInts, return_indices: builtins.bool = False) -> _Tensor:
    """Return maxima of windows that cover the last 2 dims, and optionally their flat places."""
@typing.overload
def adaptive_max_pool3d(input: _Tensor, output_size: _types.IntOrInts, return_indices: typing.Literal[False] = False) -> _Tensor:
    """Return maxima of windows that cover the last 3 dims, and optionally their flat places."""
@typing.overload
def adaptive_max_pool3d(input: _Tensor, output_size: _types.IntOrInts, *, return_indices: typing.Literal[True]) -> builtins.tuple[_Tensor, _Tensor]:
    """Return maxima of windows that cover the last 3 dims, and optionally their flat places."""
@typing.overload
def adaptive_max_pool3d(input: _Tensor, output_size: _types.IntOrInts, return_indices: builtins.bool = False) -> _Tensor | builtins.tuple[_Tensor, _Tensor]:
    """Return maxima of windows that cover the last 3 dims, and optionally their flat places."""
def adaptive_max_pool3d_with_indices(input: _Tensor, output_size: _types.IntOrInts, return_indices: builtins.bool = False) -> _Tensor:
    """Return maxima of windows that cover the last 3 dims, and optionally their flat places."""
def affine_grid(theta: _Tensor, size: collections.abc.Sequence[builtins.int], align_corners: builtins.bool | None = None) -> _Tensor:
    """Return the places ``(N, [D,] H, W, n)`` that affine maps send the points of a regular grid to.

    Args:
        theta: ``(N, n, n + 1)``, n is 2 or 3.
        size: ``(N, C, [D,] H, W)`` of the image that will be made.
        align_corners: -1 and 1 are the centres of the corner pixels rather than their edges.
    """
def alpha_dropout(input: _Tensor, p: builtins.float = 0.5, training: builtins.bool = False, inplace: builtins.bool = False, generator: _Generator | None = None) -> _Tensor:
    """Return x with elements at selu's lower limit with probability p, scaled to keep mean and variance."""
def avg_pool1d(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, ceil_mode: builtins.bool = False, count_include_pad: builtins.bool = True, divisor_override: builtins.int | None = None, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the mean of every window of `(N, C, L)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: zeros added on both sides.
        ceil_mode: also take windows that begin inside but reach past the end.
        count_include_pad: whether those zeros count in the mean.
        divisor_override: divide by it instead of by the number of cells.
    """
def avg_pool2d(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, ceil_mode: builtins.bool = False, count_include_pad: builtins.bool = True, divisor_override: builtins.int | None = None, data_format: builtins.str = 'channels_first', *, out: _Tensor | None = None) -> _Tensor:
    """Return the mean of every window of `(N, C, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: zeros added on both sides.
        ceil_mode: also take windows that begin inside but reach past the end.
        count_include_pad: whether those zeros count in the mean.
        divisor_override: divide by it instead of by the number of cells.
    """
def avg_pool3d(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, ceil_mode: builtins.bool = False, count_include_pad: builtins.bool = True, divisor_override: builtins.int | None = None, data_format: builtins.str = 'channels_first', *, out: _Tensor | None = None) -> _Tensor:
    """Return the mean of every window of `(N, C, D, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: zeros added on both sides.
        ceil_mode: also take windows that begin inside but reach past the end.
        count_include_pad: whether those zeros count in the mean.
        divisor_override: divide by it instead of by the number of cells.
    """
from sbpjax._core.functions.layers.norm import batch_norm as batch_norm
def bilinear(input1: _Tensor, input2: _Tensor, weight: _Tensor, bias: _Tensor | None = None) -> _Tensor:
    """Return x1 A x2 + b.

    Args:
        input1: `(..., in1)`.
        input2: `(..., in2)`.
        weight: `(out, in1, in2)`.
        bias: `(out,)`.
    """
def binary_cross_entropy(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return ``-t * log(input) - (1 - t) * log(1 - input)``, the logarithms at least -100, reduced.

    Args:
        input: probabilities in [0, 1].
        target: of input's shape, in [0, 1].
        weight: broadcast factor of the elements, or None.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
    """
def binary_cross_entropy_with_logits(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean', pos_weight: _Tensor | None = None) -> _Tensor:
    """Return the binary cross entropy of logits, weighted and reduced.

    Args:
        input: logits of any shape.
        target: probabilities of the same shape.
        weight: a weight per element, broadcast.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        pos_weight: a weight of positive examples, broadcast.
    """
def celu(input: _Tensor, alpha: builtins.float = 1.0, inplace: builtins.bool = False) -> _Tensor:
    """Return max(input, 0) + min(0, alpha * (e**(input / alpha) - 1))."""
def celu_(input: _Tensor, alpha: builtins.float = 1.0) -> _Tensor:
    """Write the result of `celu` into the first tensor, which keeps its layout."""
def channel_shuffle(input: _Tensor, groups: builtins.int) -> _Tensor:
    """Return input with its channels dealt out to ``groups`` in turn."""
def combined_margin_loss(input: _Tensor, label: _Tensor, m1: builtins.float = 1.0, m2: builtins.float = 0.0, m3: builtins.float = 0.0) -> _Tensor:
    """Return cosines ``(N, C)`` with the target's replaced by ``cos(m1 * acos(input) + m2) - m3``."""
def conv1d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = None, stride: _types.IntOrInts = 1, padding: _types.IntOrInts | builtins.str = 0, dilation: _types.IntOrInts = 1, groups: builtins.int = 1, channel_pos: builtins.str = 'channels_first') -> _Tensor:
    """Return the convolution of `(N, C, L)` with kernels.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; a split batch needs no communication.
        weight: `(O, C / groups, ...)`; ``split(0)`` splits the output channels, ``split(1)`` makes the result a
            partial sum if the input's channels are split too.
        bias: `(O,)` or None.
        stride: step of the kernel, a number or one per dim.
        padding: zeros added on both sides, a number or one per dim, or ``"same"`` or ``"valid"``.
        dilation: distance of the kernel's cells, a number or one per dim.
        groups: channels are divided into so many groups that do not mix.
    """
def conv2d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = None, stride: _types.IntOrInts = 1, padding: _types.IntOrInts | builtins.str = 0, dilation: _types.IntOrInts = 1, groups: builtins.int = 1, channel_pos: builtins.str = 'channels_first') -> _Tensor:
    """Return the convolution of `(N, C, H, W)` with kernels.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; a split batch needs no communication.
        weight: `(O, C / groups, ...)`; ``split(0)`` splits the output channels, ``split(1)`` makes the result a
            partial sum if the input's channels are split too.
        bias: `(O,)` or None.
        stride: step of the kernel, a number or one per dim.
        padding: zeros added on both sides, a number or one per dim, or ``"same"`` or ``"valid"``.
        dilation: distance of the kernel's cells, a number or one per dim.
        groups: channels are divided into so many groups that do not mix.
    """
def conv3d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = None, stride: _types.IntOrInts = 1, padding: _types.IntOrInts | builtins.str = 0, dilation: _types.IntOrInts = 1, groups: builtins.int = 1, channel_pos: builtins.str = 'channels_first') -> _Tensor:
    """Return the convolution of `(N, C, D, H, W)` with kernels.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; a split batch needs no communication.
        weight: `(O, C / groups, ...)`; ``split(0)`` splits the output channels, ``split(1)`` makes the result a
            partial sum if the input's channels are split too.
        bias: `(O,)` or None.
        stride: step of the kernel, a number or one per dim.
        padding: zeros added on both sides, a number or one per dim, or ``"same"`` or ``"valid"``.
        dilation: distance of the kernel's cells, a number or one per dim.
        groups: channels are divided into so many groups that do not mix.
    """
def conv_transpose1d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = None, stride: _types.IntOrInts = 1, padding: _types.IntOrInts = 0, output_padding: _types.IntOrInts = 0, groups: builtins.int = 1, dilation: _types.IntOrInts = 1, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the transposed convolution of `(N, C, L)`: the gradient of `conv1d` as a function of its output.

    Args:
        input: `(N, C, ...)` or `(C, ...)`.
        weight: `(C, O / groups, ...)`.
        bias: `(O,)` or None.
        stride: distance of the input's cells in the output.
        padding: cells cut from both sides of the output.
        output_padding: cells added to one side of the output.
        groups: channels are divided into so many groups that do not mix.
        dilation: distance of the kernel's cells.
    """
def conv_transpose2d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = None, stride: _types.IntOrInts = 1, padding: _types.IntOrInts = 0, output_padding: _types.IntOrInts = 0, groups: builtins.int = 1, dilation: _types.IntOrInts = 1, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the transposed convolution of `(N, C, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`.
        weight: `(C, O / groups, ...)`.
        bias: `(O,)` or None.
        stride: distance of the input's cells in the output.
        padding: cells cut from both sides of the output.
        output_padding: cells added to one side of the output.
        groups: channels are divided into so many groups that do not mix.
        dilation: distance of the kernel's cells.
    """
def conv_transpose3d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = None, stride: _types.IntOrInts = 1, padding: _types.IntOrInts = 0, output_padding: _types.IntOrInts = 0, groups: builtins.int = 1, dilation: _types.IntOrInts = 1, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the transposed convolution of `(N, C, D, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`.
        weight: `(C, O / groups, ...)`.
        bias: `(O,)` or None.
        stride: distance of the input's cells in the output.
        padding: cells cut from both sides of the output.
        output_padding: cells added to one side of the output.
        groups: channels are divided into so many groups that do not mix.
        dilation: distance of the kernel's cells.
    """
def cosine_embedding_loss(input1: _Tensor, input2: _Tensor, target: _Tensor, margin: builtins.float = 0.0, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return 1 - cos(input1, input2) where the target is 1, max(0, cos(input1, input2) - margin) where it is -1, else 0, reduced."""
def cosine_similarity(x1: _Tensor, x2: _Tensor, dim: builtins.int = 1, eps: builtins.float = 1e-08) -> _Tensor:
    """Return the cosine of the angle between x1 and x2 along ``dim``; each norm counts as at least ``eps``.

    Args:
        eps: the least that a norm counts.
    """
def cross_entropy(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, size_average: builtins.bool | None = None, ignore_index: builtins.int = -100, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean', label_smoothing: builtins.float = 0.0) -> _Tensor:
    """Return the cross entropy of logits with class indices, or with class probabilities.

    Args:
        input: logits ``(C,)`` or ``(N, C, ...)``; any sbp, also split over C.
        target: integers of input's shape without C, or probabilities of input's shape.
        weight: ``(C,)`` or None.
        ignore_index: a class index that does not count.
        reduction: ``"none"``, ``"sum"``, or ``"mean"`` over the weights of the targets that count.
        label_smoothing: share of the uniform distribution mixed into the target.
    """
def ctc_greedy_decoder(log_probs: _Tensor, input_lengths: _Tensor, merge_repeated: builtins.bool = True) -> builtins.tuple[_Tensor, _Tensor]:
    """Return the labels of the best class per step without blanks, and minus the sum of the best scores.

    The blank is the last class, unlike that of `ctc_loss`; OneFlow has it so.

    Args:
        log_probs: ``(T, N, C)``.
        input_lengths: ``(N,)``.
        merge_repeated: equal classes in consecutive steps count once.
    """
def ctc_loss(log_probs: _Tensor, targets: _Tensor, input_lengths: _Tensor, target_lengths: _Tensor, blank: builtins.int = 0, reduction: builtins.str = 'mean', zero_infinity: builtins.bool = False) -> _Tensor:
    """Return minus the log probability of label sequences, over all alignments, reduced.

    Args:
        log_probs: `(T, N, C)` or `(T, C)`, logarithms of probabilities; a split of N needs no communication.
        targets: `(N, S)`, or all targets one after the other.
        input_lengths: `(N,)`, as a tensor or numbers; each at most T.
        target_lengths: `(N,)`, as a tensor or numbers.
        blank: the class of no label.
        reduction: ``"none"``, ``"sum"``, or ``"mean"``: of the losses divided by their targets' lengths.
        zero_infinity: an impossible sequence costs 0, without a gradient, rather than infinity.
    """
def deform_conv2d(input: _Tensor, offset: _Tensor, weight: _Tensor, bias: _Tensor | None = None, stride: _types.IntOrInts = (1, 1), padding: _types.IntOrInts = (0, 0), dilation: _types.IntOrInts = (1, 1), mask: _Tensor | None = None) -> _Tensor:
    """Return a convolution whose kernel's cells are moved by offsets, linearly between pixels.

    Args:
        input: ``(N, C, H, W)``.
        offset: ``(N, 2 * G * kh * kw, Ho, Wo)``: per offset group and cell how far down, and how far right.
        weight: ``(O, C / groups, kh, kw)``.
        bias: ``(O,)`` or None.
        stride: number(s).
        padding: number(s).
        dilation: number(s).
        mask: ``(N, G * kh * kw, Ho, Wo)``, a factor per read, or None.
    """
from sbpjax._core.functions.layers.depend import depend as depend
def dropout(input: _Tensor, p: builtins.float = 0.5, training: builtins.bool = True, inplace: builtins.bool = False, generator: _Generator | None = None, *, addend: _Tensor | None = None) -> _Tensor:
    """Return x with each element zero with probability p and the others divided by 1 - p.

    Args:
        input: any shape; any sbp: the mask does not depend on it.
        p: the probability of a zero.
        training: if false, return x as it is.
        inplace: write into the input.
        generator: draws the mask; the default one if not given.
        addend: added to the result.
    """
def dropout1d(input: _Tensor, p: builtins.float = 0.5, training: builtins.bool = True, inplace: builtins.bool = False, generator: _Generator | None = None) -> _Tensor:
    """Return `(N, C, L)` with whole channels zero; arguments as in `dropout`."""
def dropout2d(input: _Tensor, p: builtins.float = 0.5, training: builtins.bool = True, inplace: builtins.bool = False, generator: _Generator | None = None) -> _Tensor:
    """Return `(N, C, H, W)` with whole channels zero; arguments as in `dropout`."""
def dropout3d(input: _Tensor, p: builtins.float = 0.5, training: builtins.bool = True, inplace: builtins.bool = False, generator: _Generator | None = None) -> _Tensor:
    """Return `(N, C, D, H, W)` with whole channels zero; arguments as in `dropout`."""
def elu(input: _Tensor, alpha: builtins.float = 1.0, inplace: builtins.bool = False) -> _Tensor:
    """Return scale * (input where positive, else alpha * (e**(input_scale * input) - 1)).

    Args:
        alpha: minus the limit for large negative elements.
    """
def elu_(input: _Tensor, alpha: builtins.float = 1.0) -> _Tensor:
    """Write the result of `elu` into the first tensor, which keeps its layout."""
from sbpjax._core.functions.layers.embedding import embedding as embedding
from sbpjax._core.functions.layers.embedding import embedding_bag as embedding_bag
def feature_alpha_dropout(input: _Tensor, p: builtins.float = 0.5, training: builtins.bool = False, inplace: builtins.bool = False, generator: _Generator | None = None) -> _Tensor:
    """Return `(N, C, ...)` with whole channels at selu's lower limit, scaled to keep mean and variance."""
def fold(input: _Tensor, output_size: _types.IntOrInts, kernel_size: _types.IntOrInts, dilation: _types.IntOrInts = 1, padding: _types.IntOrInts = 0, stride: _types.IntOrInts = 1, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return images from columns of patches, overlapping parts added: (N, C * kh * kw, L) gives (N, C, H, W).

    Args:
        output_size: the sizes H and W.
        kernel_size: size of a patch, a number or one per dim.
        dilation: distance of a patch's cells.
        padding: cells cut from both sides.
        stride: step of the patches.
    """
@typing.overload
def fractional_max_pool2d(input: _Tensor, kernel_size: _types.IntOrInts, output_size: _types.IntOrInts | None = None, output_ratio: _types.FloatOrFloats | None = None, return_indices: typing.Literal[False] = False, _random_samples: _Tensor | None = None) -> _Tensor:
    """Return maxima of windows of `(N, C, H, W)` that begin at random, increasing places.

    Args:
        input: `(N, C, H, W)` or `(C, H, W)`.
        kernel_size: size of the window.
        output_size: sizes of the result; or
        output_ratio: its share of the input's sizes.
        return_indices: return also the flat place of each maximum.
        _random_samples: `(N, C, 2)` numbers in [0, 1) instead of random ones.
    """
@typing.overload
def fractional_max_pool2d(input: _Tensor, kernel_size: _types.IntOrInts, output_size: _types.IntOrInts | None = None, output_ratio: _types.FloatOrFloats | None = None, *, return_indices: typing.Literal[True], _random_samples: _Tensor | None = None) -> builtins.tuple[_Tensor, _Tensor]:
    """Return maxima of windows of `(N, C, H, W)` that begin at random, increasing places.

    Args:
        input: `(N, C, H, W)` or `(C, H, W)`.
        kernel_size: size of the window.
        output_size: sizes of the result; or
        output_ratio: its share of the input's sizes.
        return_indices: return also the flat place of each maximum.
        _random_samples: `(N, C, 2)` numbers in [0, 1) instead of random ones.
    """
@typing.overload
def fractional_max_pool2d(input: _Tensor, kernel_size: _types.IntOrInts, output_size: _types.IntOrInts | None = None, output_ratio: _types.FloatOrFloats | None = None, return_indices: builtins.bool = False, _random_samples: _Tensor | None = None) -> _Tensor | builtins.tuple[_Tensor, _Tensor]:
    """Return maxima of windows of `(N, C, H, W)` that begin at random, increasing places.

    Args:
        input: `(N, C, H, W)` or `(C, H, W)`.
        kernel_size: size of the window.
        output_size: sizes of the result; or
        output_ratio: its share of the input's sizes.
        return_indices: return also the flat place of each maximum.
        _random_samples: `(N, C, 2)` numbers in [0, 1) instead of random ones.
    """
def fractional_max_pool2d_with_indices(input: _Tensor, kernel_size: _types.IntOrInts, output_size: _types.IntOrInts | None = None, output_ratio: _types.FloatOrFloats | None = None, return_indices: builtins.bool = False, _random_samples: _Tensor | None = None) -> builtins.tuple[_Tensor, _Tensor]:
    """Return maxima of windows of `(N, C, H, W)` that begin at random, increasing places.

    Args:
        input: `(N, C, H, W)` or `(C, H, W)`.
        kernel_size: size of the window.
        output_size: sizes of the result; or
        output_ratio: its share of the input's sizes.
        return_indices: return also the flat place of each maximum.
        _random_samples: `(N, C, 2)` numbers in [0, 1) instead of random ones.
    """
@typing.overload
def fractional_max_pool3d(input: _Tensor, kernel_size: _types.IntOrInts, output_size: _types.IntOrInts | None = None, output_ratio: _types.FloatOrFloats | None = None, return_indices: typing.Literal[False] = False, _random_samples: _Tensor | None = None) -> _Tensor:
    """Return maxima of windows of `(N, C, D, H, W)`; arguments as in `fractional_max_pool2d`."""
@typing.overload
def fractional_max_pool3d(input: _Tensor, kernel_size: _types.IntOrInts, output_size: _types.IntOrInts | None = None, output_ratio: _types.FloatOrFloats | None = None, *, return_indices: typing.Literal[True], _random_samples: _Tensor | None = None) -> builtins.tuple[_Tensor, _Tensor]:
    """Return maxima of windows of `(N, C, D, H, W)`; arguments as in `fractional_max_pool2d`."""
@typing.overload
def fractional_max_pool3d(input: _Tensor, kernel_size: _types.IntOrInts, output_size: _types.IntOrInts | None = None, output_ratio: _types.FloatOrFloats | None = None, return_indices: builtins.bool = False, _random_samples: _Tensor | None = None) -> _Tensor | builtins.tuple[_Tensor, _Tensor]:
    """Return maxima of windows of `(N, C, D, H, W)`; arguments as in `fractional_max_pool2d`."""
def fractional_max_pool3d_with_indices(input: _Tensor, kernel_size: _types.IntOrInts, output_size: _types.IntOrInts | None = None, output_ratio: _types.FloatOrFloats | None = None, return_indices: builtins.bool = False, _random_samples: _Tensor | None = None) -> builtins.tuple[_Tensor, _Tensor]:
    """Return maxima of windows of `(N, C, D, H, W)`; arguments as in `fractional_max_pool2d`."""
def gaussian_nll_loss(input: _Tensor, target: _Tensor, var: builtins.float | _Tensor, full: builtins.bool = False, eps: builtins.float = 1e-06, reduction: builtins.str = 'mean') -> _Tensor:
    """Return the negative log likelihood under normal distributions with the given variances, reduced.

    Args:
        input: expectations.
        target: samples.
        var: variances: a number, or a tensor of the input's shape, or with a last dim of 1 or none.
        full: add the constant term.
        eps: the smallest variance.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
def gelu(input: _Tensor, approximate: builtins.str = 'none', *, out: _Tensor | None = None) -> _Tensor:
    """Return input * Φ(input), with Φ the normal distribution function.

    Args:
        input: floats of any shape.
        approximate: ``"none"`` uses erf, ``"tanh"`` the tanh formula.
    """
def glu(input: _Tensor, dim: builtins.int = -1) -> _Tensor:
    """Return a * sigmoid(b), with a and b the two halves of input along ``dim``.

    Args:
        dim: the dim that is halved.
    """
def grid_sample(input: _Tensor, grid: _Tensor, mode: builtins.str = 'bilinear', padding_mode: builtins.str = 'zeros', align_corners: builtins.bool | None = None) -> _Tensor:
    """Return input read at the places of a grid.

    Args:
        input: ``(N, C, H, W)`` or ``(N, C, D, H, W)``; splits of the batch and the channels need no communication.
        grid: ``(N, Ho, Wo, 2)`` or ``(N, Do, Ho, Wo, 3)``: places in [-1, 1], input first.
        mode: ``"bilinear"``, ``"nearest"`` or, for images, ``"bicubic"``.
        padding_mode: the values outside: ``"zeros"``, ``"border"`` or ``"reflection"``.
        align_corners: -1 and 1 are the centres of the corner pixels rather than their edges.
    """
def group_norm(input: _Tensor, num_groups: builtins.int, weight: _Tensor | None = None, bias: _Tensor | None = None, eps: builtins.float = 1e-05) -> _Tensor:
    """Return input normalised over groups of channels and all other dims but the batch.

    Args:
        input: ``(N, C, ...)``, floats.
        num_groups: divides C.
        weight: ``(C,)`` or None.
        bias: ``(C,)`` or None.
        eps: added to the variance.
    """
def grouped_matmul(input: _Tensor, weight: _Tensor, group_sizes: _Tensor) -> _Tensor:
    """Return the products of rows with the matrix of their group: ``y[i] = input[i] · weight[g]`` for the rows i of group g.

    The first ``group_sizes[0]`` rows are of group 0, the next ``group_sizes[1]`` of group 1, and so on; rows after the
    last group give zeros. The work grows with the rows, not with the groups. On TPU and on NVIDIA's Hopper it is a
    kernel.

    Args:
        input: ``(*lead, M, in)``: of each sequence M rows in the order of their groups. Any split of lead, M or in.
        weight: ``(G, in, out)``, of input's dtype. Split by groups each rank computes its own groups' rows.
        group_sizes: ``(*lead, G)`` integers with a sum of at most M, in every rank whole but for lead.
    """
def gumbel_softmax(logits: _Tensor, tau: builtins.float = 1, hard: builtins.bool = False, eps: builtins.float = 1e-10, dim: builtins.int = -1, *, generator: _Generator | None = None) -> _Tensor:
    """Return a sample of a relaxed categorical distribution: the softmax of ``(logits + noise) / tau``.

    Args:
        logits: any shape.
        tau: the temperature.
        hard: return one-hot samples whose gradient is that of the soft ones.
        eps: accepted for compatibility, as in PyTorch; it has no effect.
        dim: the dim of the classes.
        generator: where the noise comes from.
    """
def hardshrink(input: _Tensor, lambd: builtins.float = 0.5, inplace: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return input, and 0 where |input| <= lambd."""
def hardsigmoid(input: _Tensor, inplace: builtins.bool = False) -> _Tensor:
    """Return min(max(input + 3, 0), 6) / 6."""
def hardswish(input: _Tensor, inplace: builtins.bool = False) -> _Tensor:
    """Return input * min(max(input + 3, 0), 6) / 6."""
def hardtanh(input: _Tensor, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0, inplace: builtins.bool = False) -> _Tensor:
    """Return input limited to [min_val, max_val], with gradient 0 at both bounds.

    Args:
        min_val: the lower bound.
        max_val: the upper bound.
    """
def hardtanh_(input: _Tensor, min_val: builtins.float = -1.0, max_val: builtins.float = 1.0) -> _Tensor:
    """Write the result of `hardtanh` into the first tensor, which keeps its layout."""
def hinge_embedding_loss(input: _Tensor, target: _Tensor, margin: builtins.float = 1.0, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return input where the target is 1, max(0, margin - input) where it is -1, reduced; input and target broadcast."""
def huber_loss(input: _Tensor, target: _Tensor, reduction: builtins.str = 'mean', delta: builtins.float = 1.0, weight: _Tensor | None = None) -> _Tensor:
    """Return d² / 2 where the difference d is at most delta, else delta * (|d| - delta / 2), reduced.

    Args:
        input: numbers of any shape.
        target: a tensor that broadcasts with it.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        delta: where the parabola becomes a line.
        weight: a factor per element, broadcast, or None; the mean is over them.
    """
from sbpjax._core.functions.layers.norm import instance_norm as instance_norm
def interpolate(input: _Tensor, size: _types.IntOrInts | None = None, scale_factor: _types.FloatOrFloats | None = None, mode: builtins.str = 'nearest', align_corners: builtins.bool | None = None, recompute_scale_factor: builtins.bool | None = None, antialias: builtins.bool = False) -> _Tensor:
    """Return input with its spatial dims resized.

    Args:
        input: ``(N, C, ...)`` with 1 to 3 spatial dims.
        size: the new size(s), or None.
        scale_factor: the factor(s), if no size is given; the new size is rounded down.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"``, ``"bilinear"``, ``"trilinear"``, ``"bicubic"`` or
            ``"area"``.
        align_corners: let the corner elements keep their places; only the linear and cubic modes take it.
        recompute_scale_factor: take the factor from the rounded size.
        antialias: average over the area of an output element when an image shrinks (bilinear and bicubic modes).
    """
def interpolate_like(input: _Tensor, like: _Tensor, mode: builtins.str = 'nearest', align_corners: builtins.bool | None = None) -> _Tensor:
    """Return ``nn.functional.interpolate(input, tuple(like.shape[2:]), None, mode, align_corners)``."""
def kl_div(input: _Tensor, target: _Tensor, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean', log_target: builtins.bool = False) -> _Tensor:
    """Return ``target * (log(target) - input)`` reduced; ``"batchmean"`` divides by the first dim's size.

    Args:
        input: log-probabilities.
        target: probabilities, or log-probabilities with ``log_target``.
        reduction: ``"none"``, ``"mean"``, ``"sum"`` or ``"batchmean"``.
        log_target: whether the target is given as logarithms.
    """
def l1_loss(input: _Tensor, target: _Tensor, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean', weight: _Tensor | None = None) -> _Tensor:
    """Return the absolute differences, reduced; the gradient at 0 is 0.

    Args:
        input: numbers of any shape.
        target: a tensor that broadcasts with it.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        weight: a factor per element, broadcast, or None; the mean is over them.
    """
def layer_norm(input: _Tensor, normalized_shape: builtins.int | builtins.tuple[builtins.int, ...], weight: _Tensor | None = None, bias: _Tensor | None = None, eps: builtins.float = 1e-05) -> _Tensor:
    """Return input with mean 0 and variance 1 over its last dims, scaled and shifted.

    Args:
        input: ``(..., *normalized_shape)``, floats; a split of any other dim needs no communication.
        normalized_shape: sizes of the last dims; by default those of the weight.
        weight: of ``normalized_shape``, or None.
        bias: of ``normalized_shape``, or None.
        eps: added to the variance.
    """
def leaky_relu(input: _Tensor, negative_slope: builtins.float = 0.01, inplace: builtins.bool = False) -> _Tensor:
    """Return input where positive, else negative_slope * input.

    Args:
        negative_slope: the factor of negative elements.
    """
def leaky_relu_(input: _Tensor, negative_slope: builtins.float = 0.01) -> _Tensor:
    """Write the result of `leaky_relu` into the first tensor, which keeps its layout."""
def linear(input: _Tensor, weight: _Tensor, bias: _Tensor | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return input Wᵀ + b.

    Args:
        input: `(..., in)`, any sbp.
        weight: `(out, in)`; ``split(0)`` splits the result, ``split(1)`` makes it a partial sum if input is split
            along its last dim too.
        bias: `(out,)`.
    """
def linear_cross_entropy(input: _Tensor, linear_weight: _Tensor, target: _Tensor, *, linear_bias: _Tensor | None = None, weight: _Tensor | None = None, reduction: builtins.str = 'mean', ignore_index: builtins.int | None = None, label_smoothing: builtins.float = 0.0, options: builtins.object = None, z_loss: builtins.float = 0.0) -> _Tensor:
    """Return the cross entropy of the logits ``x weightᵀ + bias``, of which some tokens' are in memory at a time.

    Args:
        input: ``(..., D)``; any sbp but P, and whole along D.
        linear_weight: ``(C, D)``; may be split by classes. With ``(C, *K, D)`` of input ``(N, D)`` there are losses ``(N, *K)``.
        target: class indices ``(...)``. Probabilities ``(N, C, *K)`` too; their logits, those of K and those of weights
            with label smoothing are in memory as a whole.
        linear_bias: ``(C,)`` or None; ``(C, *K)``.
        weight: ``(C,)`` or None.
        reduction: ``"none"``, ``"sum"``, or ``"mean"`` over the weights of the targets that count.
        ignore_index: a target that does not count; None is -100.
        label_smoothing: share of the uniform distribution mixed into the target.
        z_loss: factor of the squared logarithm of the sum of exponentials, which is added to each loss.
    """
def local_response_norm(input: _Tensor, size: builtins.int, alpha: builtins.float = 0.0001, beta: builtins.float = 0.75, k: builtins.float = 1.0) -> _Tensor:
    """Return input divided by ``(k + alpha * mean of the squares of size neighbouring channels) ** beta``.

    Args:
        input: ``(N, C, ...)``; integers become floats.
        size: how many channels count, the missing ones at the ends as zeros.
        alpha: factor of the mean.
        beta: exponent.
        k: the added constant.
    """
def log_softmax(input: _Tensor, dim: builtins.int | None = None, _stacklevel: builtins.int = 3, dtype: _types.DTypeLike | None = None) -> _Tensor:
    """Return the logarithm of the softmax along ``dim``, computed without its underflow."""
def logsigmoid(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return log(1 / (1 + e**-input)) without overflow."""
def lp_pool1d(input: _Tensor, norm_type: builtins.float, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, ceil_mode: builtins.bool = False) -> _Tensor:
    """Return the p-norm of every window of `(N, C, L)`.

    Args:
        input: `(N, C, L)` or `(C, L)`.
        norm_type: p.
        kernel_size: size of the window.
        stride: step of the window; None takes `kernel_size`.
        ceil_mode: also take windows that reach past the end.
    """
def lp_pool2d(input: _Tensor, norm_type: builtins.float, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, ceil_mode: builtins.bool = False) -> _Tensor:
    """Return the p-norm of every window of `(N, C, H, W)`.

    Args:
        input: `(N, C, L)` or `(C, L)`.
        norm_type: p.
        kernel_size: size of the window.
        stride: step of the window; None takes `kernel_size`.
        ceil_mode: also take windows that reach past the end.
    """
def lp_pool3d(input: _Tensor, norm_type: builtins.float, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, ceil_mode: builtins.bool = False) -> _Tensor:
    """Return the p-norm of every window of `(N, C, D, H, W)`.

    Args:
        input: `(N, C, L)` or `(C, L)`.
        norm_type: p.
        kernel_size: size of the window.
        stride: step of the window; None takes `kernel_size`.
        ceil_mode: also take windows that reach past the end.
    """
def margin_ranking_loss(input1: _Tensor, input2: _Tensor, target: _Tensor, margin: builtins.float = 0.0, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return max(0, margin - target * (input1 - input2)), reduced."""
@typing.overload
def max_pool1d(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, dilation: _types.IntOrInts = 1, ceil_mode: builtins.bool = False, return_indices: typing.Literal[False] = False, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the largest element of every window of `(N, C, L)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
@typing.overload
def max_pool1d(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, dilation: _types.IntOrInts = 1, ceil_mode: builtins.bool = False, *, return_indices: typing.Literal[True], data_format: builtins.str = 'channels_first') -> builtins.tuple[_Tensor, _Tensor]:
    """Return the largest element of every window of `(N, C, L)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
@typing.overload
def max_pool1d(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, dilation: _types.IntOrInts = 1, ceil_mode: builtins.bool = False, return_indices: builtins.bool = False, data_format: builtins.str = 'channels_first') -> _Tensor | builtins.tuple[_Tensor, _Tensor]:
    """Return the largest element of every window of `(N, C, L)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
def max_pool1d_with_indices(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, dilation: _types.IntOrInts = 1, ceil_mode: builtins.bool = False, return_indices: builtins.bool = False, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the largest element of every window of `(N, C, L)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
@typing.overload
def max_pool2d(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, dilation: _types.IntOrInts = 1, ceil_mode: builtins.bool = False, return_indices: typing.Literal[False] = False, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the largest element of every window of `(N, C, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
@typing.overload
def max_pool2d(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, dilation: _types.IntOrInts = 1, ceil_mode: builtins.bool = False, *, return_indices: typing.Literal[True], data_format: builtins.str = 'channels_first') -> builtins.tuple[_Tensor, _Tensor]:
    """Return the largest element of every window of `(N, C, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
@typing.overload
def max_pool2d(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, dilation: _types.IntOrInts = 1, ceil_mode: builtins.bool = False, return_indices: builtins.bool = False, data_format: builtins.str = 'channels_first') -> _Tensor | builtins.tuple[_Tensor, _Tensor]:
    """Return the largest element of every window of `(N, C, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
def max_pool2d_with_indices(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, dilation: _types.IntOrInts = 1, ceil_mode: builtins.bool = False, return_indices: builtins.bool = False, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the largest element of every window of `(N, C, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
@typing.overload
def max_pool3d(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, dilation: _types.IntOrInts = 1, ceil_mode: builtins.bool = False, return_indices: typing.Literal[False] = False, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the largest element of every window of `(N, C, D, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
@typing.overload
def max_pool3d(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, dilation: _types.IntOrInts = 1, ceil_mode: builtins.bool = False, *, return_indices: typing.Literal[True], data_format: builtins.str = 'channels_first') -> builtins.tuple[_Tensor, _Tensor]:
    """Return the largest element of every window of `(N, C, D, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
@typing.overload
def max_pool3d(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, dilation: _types.IntOrInts = 1, ceil_mode: builtins.bool = False, return_indices: builtins.bool = False, data_format: builtins.str = 'channels_first') -> _Tensor | builtins.tuple[_Tensor, _Tensor]:
    """Return the largest element of every window of `(N, C, D, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
def max_pool3d_with_indices(input: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, dilation: _types.IntOrInts = 1, ceil_mode: builtins.bool = False, return_indices: builtins.bool = False, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the largest element of every window of `(N, C, D, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.
    """
def max_unpool1d(input: _Tensor, indices: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, output_size: _types.IntOrInts | None = None) -> _Tensor:
    """Return zeros with the pooled values where `max_pool1d` found them.

    Args:
        input: `(N, C, L)` or `(C, L)`.
        indices: the indices of `max_pool1d(..., return_indices=True)`.
        kernel_size: the size of the pooling's window.
        stride: its step; None takes `kernel_size`.
        padding: its padding.
        output_size: the length before the pooling, where several pool to the same.
    """
def max_unpool2d(input: _Tensor, indices: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, output_size: _types.IntOrInts | None = None) -> _Tensor:
    """Return zeros with the pooled values where `max_pool2d` found them.

    Args:
        input: `(N, C, L)` or `(C, L)`.
        indices: the indices of `max_pool1d(..., return_indices=True)`.
        kernel_size: the size of the pooling's window.
        stride: its step; None takes `kernel_size`.
        padding: its padding.
        output_size: the length before the pooling, where several pool to the same.
    """
def max_unpool3d(input: _Tensor, indices: _Tensor, kernel_size: _types.IntOrInts, stride: _types.IntOrInts | None = None, padding: _types.IntOrInts = 0, output_size: _types.IntOrInts | None = None) -> _Tensor:
    """Return zeros with the pooled values where `max_pool3d` found them.

    Args:
        input: `(N, C, L)` or `(C, L)`.
        indices: the indices of `max_pool1d(..., return_indices=True)`.
        kernel_size: the size of the pooling's window.
        stride: its step; None takes `kernel_size`.
        padding: its padding.
        output_size: the length before the pooling, where several pool to the same.
    """
def mish(input: _Tensor, inplace: builtins.bool = False) -> _Tensor:
    """Return input * tanh(softplus(input))."""
def mse_loss(input: _Tensor, target: _Tensor, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean', weight: _Tensor | None = None) -> _Tensor:
    """Return the squared differences, reduced; the mean of weighted ones is over the weights.

    Args:
        input: numbers of any shape.
        target: broadcast to input.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        weight: a factor per element, broadcast, or None.
    """
from sbpjax._core.functions.layers.multihead import multi_head_attention_forward as multi_head_attention_forward
def multi_margin_loss(input: _Tensor, target: _Tensor, p: builtins.float = 1, margin: builtins.float = 1.0, weight: _Tensor | None = None, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return the mean over the other classes of ``max(0, margin - input[target] + input[i]) ** p``, reduced.

    Args:
        input: scores `(C,)` or `(N, C)`.
        target: class numbers `()` or `(N,)`.
        p: 1 or 2.
        margin: the wanted distance.
        weight: `(C,)` or None.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
def multilabel_margin_loss(input: _Tensor, target: _Tensor, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return ``sum over labels j and other classes i of max(0, 1 - input[j] + input[i]) / C``, reduced.

    Args:
        input: scores ``(C,)`` or ``(N, C)``.
        target: of input's shape: each row lists its labels, and ends at the first -1.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
    """
def multilabel_soft_margin_loss(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return the mean over the last dim of the binary cross entropy of logits, reduced.

    Args:
        input: logits ``(N, C)``.
        target: of input's shape, 0 or 1.
        weight: broadcast factor, or None.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
    """
def native_channel_shuffle(input: _Tensor, groups: builtins.int) -> _Tensor:
    """Return input with its channels dealt out to ``groups`` in turn."""
def nll_loss(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, size_average: builtins.bool | None = None, ignore_index: builtins.int = -100, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return ``-weight[t] * input[t]``, reduced; the mean divides by the sum of the weights of targets that count.

    Args:
        input: log-probabilities ``(C,)`` or ``(N, C, ...)``.
        target: class indices, of input's shape without C.
        weight: ``(C,)`` or None.
        ignore_index: a target that does not count.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
    """
def normalize(input: _Tensor, p: builtins.float = 2.0, dim: _types.IntOrInts = 1, eps: builtins.float = 1e-12) -> _Tensor:
    """Return input divided by its p-norm over ``dim``, or by ``eps`` where that is larger.

    Args:
        p: the power of the norm.
        eps: the least that is divided by.
    """
from sbpjax._core.functions.layers.embedding import one_hot as one_hot
def pad(input: _Tensor, pad: builtins.tuple[builtins.int, ...], mode: builtins.str = 'constant', value: builtins.float | None = None) -> _Tensor:
    """Return input widened at both ends of its last dims.

    Args:
        input: any array.
        pad: (front, end) of the last dim, then of the one before, …; negative numbers crop.
        mode: ``"constant"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
        value: for ``"constant"``, 0 by default.
    """
def pairwise_distance(x1: _Tensor, x2: _Tensor, p: builtins.float = 2.0, eps: builtins.float = 1e-06, keepdim: builtins.bool = False) -> _Tensor:
    """Return the p-norm over the last dim of ``x - x2 + eps``."""
def pdist(input: _Tensor, p: builtins.float = 2.0) -> _Tensor:
    """Return the p-norms of the differences of all pairs of rows of ``(N, M)``, the pairs in row-major order."""
def pixel_shuffle(input: _Tensor, upscale_factor: builtins.int | builtins.tuple[builtins.int, builtins.int]) -> _Tensor:
    """Return (..., C * a * b, H, W) as (..., C, H * a, W * b); one factor is both.

    Args:
        upscale_factor: how much higher and wider, a number or two.
    """
def pixel_unshuffle(input: _Tensor, downscale_factor: builtins.int) -> _Tensor:
    """Return (..., C, H * r, W * r) as (..., C * r², H, W)."""
def poisson_nll_loss(input: _Tensor, target: _Tensor, log_input: builtins.bool = True, full: builtins.bool = False, size_average: builtins.bool | None = None, eps: builtins.float = 1e-08, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return the negative log likelihood of counts under a Poisson distribution, reduced.

    Args:
        input: the expected counts, or with `log_input` their logarithms.
        target: the counts.
        log_input: the loss is ``exp(input) - target * input``, otherwise ``x - target * log(input + eps)``.
        full: add Stirling's term for targets above 1.
        eps: keeps the logarithm finite.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
def prelu(input: _Tensor, weight: _Tensor) -> _Tensor:
    """Return input where positive, else weight * input.

    Args:
        input: ``(N, C, ...)``; with one dim or none, the channel dim counts as 1.
        weight: one slope, or one per channel (dim 1).
    """
def quick_gelu(input: _Tensor) -> _Tensor:
    """Return input * sigmoid(1.702 * input)."""
def relu(input: _Tensor, inplace: builtins.bool = False) -> _Tensor:
    """Return max(input, 0), with gradient 0 at 0."""
def relu6(input: _Tensor, inplace: builtins.bool = False) -> _Tensor:
    """Return min(max(input, 0), 6)."""
def relu_(input: _Tensor) -> _Tensor:
    """Write the result of `relu` into the first tensor, which keeps its layout."""
def rms_norm(input: _Tensor, normalized_shape: builtins.int | builtins.tuple[builtins.int, ...], weight: _Tensor | None = None, eps: builtins.float | None = None) -> _Tensor:
    """Return input divided by its root mean square over the last dims, times the weight.

    Args:
        input: ``(..., *normalized_shape)``, floats.
        normalized_shape: sizes of the last dims; by default those of the weight.
        weight: of ``normalized_shape``, or None.
        eps: added to the mean square; by default the smallest step of the computing dtype.
    """
from sbpjax._core.functions.layers.activation import rrelu as rrelu
from sbpjax._core.functions.layers.activation import rrelu_ as rrelu_
from sbpjax._core.functions.layers.attention import scaled_dot_product_attention as scaled_dot_product_attention
def selu(input: _Tensor, inplace: builtins.bool = False) -> _Tensor:
    """Return the self-normalising elu."""
def selu_(input: _Tensor) -> _Tensor:
    """Write the result of `selu` into the first tensor, which keeps its layout."""
def sigmoid(input: _Tensor) -> _Tensor:
    """Return 1 / (1 + e**-input)."""
def silu(input: _Tensor, inplace: builtins.bool = False) -> _Tensor:
    """Return input * sigmoid(input)."""
def smooth_l1_loss(input: _Tensor, target: _Tensor, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean', beta: builtins.float = 1.0) -> _Tensor:
    """Return d² / (2 beta) where the difference d is below beta, else |d| - beta / 2, reduced.

    Args:
        input: numbers of any shape.
        target: a tensor that broadcasts with it.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        beta: where the parabola becomes a line.
    """
def soft_margin_loss(input: _Tensor, target: _Tensor, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return log(1 + e**(-target * input)), reduced."""
def softmax(input: _Tensor, dim: builtins.int | None = None, _stacklevel: builtins.int = 3, dtype: _types.DTypeLike | None = None) -> _Tensor:
    """Return e**input normalised to sum 1 along ``dim``.

    Args:
        input: floats; any sbp.
        dim: the dim of the classes; by default 1, or 0 of tensors with 0, 1 or 3 dims.
    """
def softmin(input: _Tensor, dim: builtins.int | None = None, _stacklevel: builtins.int = 3, dtype: _types.DTypeLike | None = None) -> _Tensor:
    """Return the softmax of -input."""
def softplus(input: _Tensor, beta: builtins.float = 1.0, threshold: builtins.float = 20.0, *, out: _Tensor | None = None) -> _Tensor:
    """Return log(1 + e**(beta * input)) / beta, and input where beta * input is above the threshold.

    Args:
        beta: how sharp the bend is.
        threshold: input itself is returned where beta * input is larger.
    """
def softshrink(input: _Tensor, lambd: builtins.float = 0.5, inplace: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return input moved by lambd towards 0, and 0 where |input| <= lambd."""
def softsign(input: _Tensor, inplace: builtins.bool = False) -> _Tensor:
    """Return input / (1 + |input|)."""
def sparse_softmax_cross_entropy(labels: _Tensor, logits: _Tensor) -> _Tensor:
    """Return ``_C.sparse_softmax_cross_entropy(logits, labels)``."""
def square_relu(input: _Tensor) -> _Tensor:
    """Return max(input, 0)²."""
def tanh(input: _Tensor) -> _Tensor:
    """Return the hyperbolic tangent."""
def tanhshrink(input: _Tensor) -> _Tensor:
    """Return input - tanh(input)."""
def threshold(input: _Tensor, threshold: builtins.float, value: builtins.float, inplace: builtins.bool = False) -> _Tensor:
    """Return input where it is above the threshold, else ``value``."""
def threshold_(input: _Tensor, threshold: builtins.float, value: builtins.float) -> _Tensor:
    """Write the result of `threshold` into the first tensor, which keeps its layout."""
def triplet_margin_loss(anchor: _Tensor, positive: _Tensor, negative: _Tensor, margin: builtins.float = 1.0, p: builtins.float = 2.0, eps: builtins.float = 1e-06, swap: builtins.bool = False, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return max(0, d(anchor, positive) - d(anchor, negative) + margin), reduced.

    Args:
        anchor: `(..., D)`.
        positive: like the anchor.
        negative: like the anchor.
        margin: the wanted difference of distances.
        p: the norm of the distance.
        eps: added to the differences.
        swap: take the smaller of the negative's distances to anchor and positive.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
from sbpjax._core.functions.layers.loss import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
def unfold(input: _Tensor, kernel_size: _types.IntOrInts, dilation: _types.IntOrInts = 1, padding: _types.IntOrInts = 0, stride: _types.IntOrInts = 1, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the patches of images as columns: (N, C, H, W) gives (N, C * kh * kw, number of patches).

    Args:
        kernel_size: size of a patch, a number or one per dim.
        dilation: distance of a patch's cells.
        padding: zeros added on both sides.
        stride: step of the patches.
    """
def upsample(input: _Tensor, size: _types.IntOrInts | None = None, scale_factor: _types.FloatOrFloats | None = None, mode: builtins.str = 'nearest', align_corners: builtins.bool | None = None) -> _Tensor:
    """Return ``nn.functional.interpolate(input, size, scale_factor, mode, align_corners)``."""
def upsample_bilinear(input: _Tensor, size: _types.IntOrInts | None = None, scale_factor: _types.FloatOrFloats | None = None) -> _Tensor:
    """Return ``nn.functional.interpolate(input, size, scale_factor, mode='bilinear', align_corners=True)``."""
def upsample_nearest(input: _Tensor, size: _types.IntOrInts | None = None, scale_factor: _types.FloatOrFloats | None = None) -> _Tensor:
    """Return ``nn.functional.interpolate(input, size, scale_factor)``."""
