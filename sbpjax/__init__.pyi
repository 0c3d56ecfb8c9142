"""Written by `make stubs` from the live package; do not edit."""
# sbpjax: OneFlow's global tensors on JAX.

import builtins
import collections.abc
import contextlib
import os
import typing
import sbpjax._core.tensor.handle.types as _types
from sbpjax._core.tensor.handle.attached import ATau as _ATau
from sbpjax.graph.program.compile import Compiled as _Compiled
from sbpjax._core.inspect.plan_table import Explanation as _Explanation
from sbpjax._core.tensor.creation.generator import Generator as _Generator
from sbpjax._core.tensor.handle.attached import HistogramEdges as _HistogramEdges
from sbpjax._core.tensor.handle.attached import MantissaExponent as _MantissaExponent
from sbpjax._core.tensor.handle.attached import MinMax as _MinMax
from sbpjax.nn.module import Module as _Module
from sbpjax._core.tensor.handle.attached import NativeBatchNorm as _NativeBatchNorm
from sbpjax._core.tensor.handle.attached import NativeLayerNorm as _NativeLayerNorm
from sbpjax._core.tensor.handle.attached import PLU as _PLU
from sbpjax._core.tensor.handle.attached import QR as _QR
from sbpjax._core.tensor.handle.attached import SVD as _SVD
from sbpjax._core.tensor.handle.attached import SignLogabsdet as _SignLogabsdet
from sbpjax._core.tensor.handle.size import Size as _Size
from sbpjax._core.tensor.handle.attached import SolutionCoefficient as _SolutionCoefficient
from sbpjax._core.inspect.summary import Summary as _Summary
from sbpjax._core.tensor.handle.tensor import Tensor as _Tensor
from sbpjax._core.tensor.handle.attached import ValuesIndices as _ValuesIndices
from sbpjax._core.tracing.wrap_jax import Wrapped as _Wrapped
from sbpjax._core.functions.settings import _NoDtype as __NoDtype
from sbpjax._core.functions.settings import _strided as __strided
from sbpjax._core.tensor.handle.device import device as _device
from sbpjax._core.tensor.handle.dtype import dtype as _dtype
from sbpjax._core.functions.settings import layout as _layout
from sbpjax._core.functions.settings import memory_format as _memory_format
from sbpjax.sbp.placement import placement as _placement

from sbpjax import BFloat16Tensor as BFloat16Tensor
from sbpjax import BoolTensor as BoolTensor
from sbpjax import ByteTensor as ByteTensor
from sbpjax import CharTensor as CharTensor
from sbpjax import DoubleTensor as DoubleTensor
from sbpjax import FloatTensor as FloatTensor
from sbpjax._core.tensor.creation.generator import Generator as Generator
from sbpjax.optim.grad_scaler import GradScaler as GradScaler
from sbpjax import HalfTensor as HalfTensor
from sbpjax import IntTensor as IntTensor
from sbpjax import LongTensor as LongTensor
from sbpjax import ShortTensor as ShortTensor
from sbpjax._core.tensor.handle.size import Size as Size
from sbpjax._core.tensor.handle.tensor import Tensor as Tensor
from sbpjax import _C as _C
__version__: builtins.str
def abs(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the absolute value; its gradient at 0 and NaN is 0 (that of ``lax.abs`` is 1 and NaN)."""
def abs_(input: _Tensor) -> _Tensor:
    """Write the result of `abs` into the first tensor, which keeps its layout."""
def absolute(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the absolute value; its gradient at 0 and NaN is 0 (that of ``lax.abs`` is 1 and NaN)."""
def absolute_(input: _Tensor) -> _Tensor:
    """Write the result of `abs` into the first tensor, which keeps its layout."""
from sbpjax._core.tensor.dispatch.abstract import abstract as abstract
def acos(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse cosine."""
def acos_(input: _Tensor) -> _Tensor:
    """Write the result of `acos` into the first tensor, which keeps its layout."""
def acosh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse hyperbolic cosine."""
def acosh_(input: _Tensor) -> _Tensor:
    """Write the result of `acosh` into the first tensor, which keeps its layout."""
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
def add(input: _Tensor | None = None, other: _types.TensorLike | None = None, *more: builtins.object, alpha: builtins.float = 1, inplace: builtins.bool = False, out: _Tensor | None = None, inputs: collections.abc.Sequence[_Tensor] | None = None) -> _Tensor:
    """Return ``input + alpha * other``, or the sum of several tensors, given one by one or as a list, as one op.

    Args:
        input: a tensor or a number; or a list of tensors.
        more: further tensors.
        alpha: factor of `other`.
        inplace: write the sum into `input`.
        out: a tensor to write the sum into.
        inputs: the list of tensors by OneFlow's name.
    """
def add_(input: _Tensor, other: _types.TensorLike, alpha: _types.TensorLike = 1) -> _Tensor:
    """Write the result of `add` into the first tensor, which keeps its layout."""
def addbmm(input: _Tensor, batch1: _Tensor, batch2: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
    """Return beta * input + alpha * the sum over the stack of batch1 @ batch2."""
def addcdiv(input: _Tensor, tensor1: _Tensor, tensor2: _Tensor, *, value: _types.TensorLike = 1, out: _Tensor | None = None) -> _Tensor:
    """Return input + value * tensor1 / tensor2.

    Args:
        value: factor of the quotient.
    """
def addcmul(input: _Tensor, tensor1: _Tensor, tensor2: _Tensor, *, value: _types.TensorLike = 1, out: _Tensor | None = None) -> _Tensor:
    """Return input + value * tensor1 * tensor2.

    Args:
        value: factor of the product.
    """
def addmm(input: _Tensor, mat1: _Tensor, mat2: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
    """Return beta * input + alpha * (mat1 @ mat2), with input broadcast.

    Args:
        beta: factor of ``input``.
        alpha: factor of the product.
    """
def addmv(input: _Tensor, mat: _Tensor, vec: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
    """Return beta * input + alpha * (mat @ vec), a matrix times a vector."""
def addmv_(input: _Tensor, mat: _Tensor, vec: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1) -> _Tensor:
    """Write the result of `addmv` into the first tensor, which keeps its layout."""
def addr(input: _Tensor, vec1: _Tensor, vec2: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
    """Return beta * input + alpha * outer(vec1, vec2)."""
from sbpjax._core.tensor.storage.views import adjoint as adjoint
def affine_grid_generator(theta: _Tensor, size: collections.abc.Sequence[builtins.int], align_corners: builtins.bool) -> _Tensor:
    """Return the places ``(N, [D,] H, W, n)`` that affine maps send the points of a regular grid to.

    Args:
        theta: ``(N, n, n + 1)``, n is 2 or 3.
        size: ``(N, C, [D,] H, W)`` of the image that will be made.
        align_corners: -1 and 1 are the centres of the corner pixels rather than their edges.
    """
def alias_copy(input: _Tensor, *args: builtins.object, out: _Tensor | None = None, **options: builtins.object) -> _Tensor:
    """Return a copy of what `alias` shows."""
def all(input: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return whether all elements are nonzero; bool, or uint8 for uint8."""
from sbpjax._core.functions.elementwise import allclose as allclose
def alpha_dropout(input: _Tensor, p: builtins.float = 0.5, training: builtins.bool = False, inplace: builtins.bool = False, generator: _Generator | None = None) -> _Tensor:
    """Return x with elements at selu's lower limit with probability p, scaled to keep mean and variance."""
def alpha_dropout_(input: _Tensor, p: builtins.float = 0.5, training: builtins.bool = False, generator: _Generator | None = None) -> _Tensor:
    """Return x with elements at selu's lower limit with probability p, scaled to keep mean and variance."""
def amax(input: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return the maximum over ``dim``; ties share the gradient evenly, NaN wins."""
def amin(input: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return the minimum over ``dim``; ties share the gradient evenly, NaN wins."""
def aminmax(input: _Tensor, *, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, out: _Tensor | None = None) -> _MinMax:
    """Return the pair of `amin` and `amax`."""
from sbpjax import amp as amp
def angle(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the angle to the positive real axis: of real numbers 0 or π, and NaN of NaN."""
def any(input: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return whether any element is nonzero; bool, or uint8 for uint8."""
def arange(start: builtins.float | None = None, end: _types.TensorLike | None = None, step: builtins.float = 1, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``start, start + step, …`` below ``end``; int64 if all are integers.

    Args:
        start: the first value; 0 if only one number is given.
        end: the values stay below.
        step: their distance.
    """
def arccos(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse cosine."""
def arccos_(input: _Tensor) -> _Tensor:
    """Write the result of `acos` into the first tensor, which keeps its layout."""
def arccosh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse hyperbolic cosine."""
def arccosh_(input: _Tensor) -> _Tensor:
    """Write the result of `acosh` into the first tensor, which keeps its layout."""
def arcsin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse sine."""
def arcsin_(input: _Tensor) -> _Tensor:
    """Write the result of `asin` into the first tensor, which keeps its layout."""
def arcsinh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse hyperbolic sine."""
def arcsinh_(input: _Tensor) -> _Tensor:
    """Write the result of `asinh` into the first tensor, which keeps its layout."""
def arctan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse tangent."""
def arctan2(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the angle of the point (other, input)."""
def arctan_(input: _Tensor) -> _Tensor:
    """Write the result of `atan` into the first tensor, which keeps its layout."""
def arctanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse hyperbolic tangent."""
def arctanh_(input: _Tensor) -> _Tensor:
    """Write the result of `atanh` into the first tensor, which keeps its layout."""
from sbpjax._core.functions.settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
def argmax(input: _Tensor, dim: builtins.int | None = None, keepdim: builtins.bool = False, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the index of the first maximum along ``dim`` or in the flattened input; int64 by default; NaN is largest.

    Args:
        dim: the dim, or None for the flattened tensor.
        dtype: an integer dtype of the result.
    """
def argmin(input: _Tensor, dim: builtins.int | None = None, keepdim: builtins.bool = False, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the index of the first minimum along ``dim`` or in the flattened input; int64 by default; NaN is least.

    Args:
        dim: the dim, or None for the flattened tensor.
        dtype: an integer dtype of the result.
    """
def argsort(input: _Tensor, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False) -> _Tensor:
    """Return the int64 indices that sort input along ``dim``; always stable.

    Args:
        descending: from the largest on.
        stable: accepted; sorting is stable always.
    """
def argwhere(input: _Tensor, dtype: _types.DTypeLike | None = None) -> _Tensor:
    """Return the indices of the elements that are not zero, one row each; dtypes as in `unique`."""
from sbpjax._core.functions.strides import as_strided as as_strided
def as_strided_(input: _Tensor, size: _types.IntOrInts, stride: _types.IntOrInts, storage_offset: builtins.int | None = None) -> _Tensor:
    """Make this tensor show its storage with the sizes, strides and offset given."""
from sbpjax._core.functions.strides import as_strided_copy as as_strided_copy
from sbpjax._core.functions.strides import as_strided_scatter as as_strided_scatter
def as_tensor(data: _types.ArrayLike, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None) -> _Tensor:
    """Return ``data`` as a tensor; a tensor that fits is returned itself.

    Args:
        data: numbers, nested lists of them, a NumPy array, or a tensor.
        dtype: the dtype; the data's if None.
        device: the device.
    """
def asarray(obj: _types.ArrayLike, *, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, copy: builtins.bool | None = None, requires_grad: builtins.bool | None = None) -> _Tensor:
    """Return a tensor with the content given; a tensor itself, unless ``copy`` or another dtype is given.

    By default the result of a tensor is on the tape as that is; with ``requires_grad=False`` it is detached.
    """
def asin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse sine."""
def asin_(input: _Tensor) -> _Tensor:
    """Write the result of `asin` into the first tensor, which keeps its layout."""
def asinh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse hyperbolic sine."""
def asinh_(input: _Tensor) -> _Tensor:
    """Write the result of `asinh` into the first tensor, which keeps its layout."""
from sbpjax import asyncs as asyncs
def atan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse tangent."""
def atan2(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the angle of the point (other, input)."""
def atan_(input: _Tensor) -> _Tensor:
    """Write the result of `atan` into the first tensor, which keeps its layout."""
def atanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse hyperbolic tangent."""
def atanh_(input: _Tensor) -> _Tensor:
    """Write the result of `atanh` into the first tensor, which keeps its layout."""
@typing.overload
def atleast_1d(input: _Tensor) -> _Tensor:
    """Return tensors with at least 1 dims."""
@typing.overload
def atleast_1d(*tensors: _Tensor | collections.abc.Sequence[_Tensor]) -> builtins.tuple[_Tensor, ...]:
    """Return tensors with at least 1 dims."""
@typing.overload
def atleast_2d(input: _Tensor) -> _Tensor:
    """Return tensors with at least 2 dims."""
@typing.overload
def atleast_2d(*tensors: _Tensor | collections.abc.Sequence[_Tensor]) -> builtins.tuple[_Tensor, ...]:
    """Return tensors with at least 2 dims."""
@typing.overload
def atleast_3d(input: _Tensor) -> _Tensor:
    """Return tensors with at least 3 dims."""
@typing.overload
def atleast_3d(*tensors: _Tensor | collections.abc.Sequence[_Tensor]) -> builtins.tuple[_Tensor, ...]:
    """Return tensors with at least 3 dims."""
from sbpjax import auto as auto
from sbpjax._core.tensor.amp.autocast import autocast as autocast
from sbpjax import autograd as autograd
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
from sbpjax import backends as backends
def baddbmm(input: _Tensor, batch1: _Tensor, batch2: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
    """Return beta * input + alpha * (batch1 @ batch2) for stacks of matrices, with input broadcast.

    Args:
        beta: factor of ``input``.
        alpha: factor of the product.
    """
def bartlett_window(window_length: builtins.int, periodic: builtins.bool = True, *, dtype: _types.DTypeLike | None = None, layout: _layout | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False) -> _Tensor:
    """Return a triangle from 0 to 1 and back."""
def batch_gather(input: _Tensor, indices: _Tensor) -> _Tensor:
    """Return ``x[b, index[b, m]]``: rows by an index per leading dims."""
from sbpjax._core.functions.layers.norm import batch_norm as batch_norm
def bernoulli(input: _Tensor, p: builtins.float | None = None, *, generator: _Generator | None = None, dtype: _types.DTypeLike | None = None, inplace: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return 1 with the probabilities in ``input`` (or with ``p``), else 0; in a dtype, or written into ``input``.

    Args:
        input: probabilities.
        p: one probability for all instead.
    """
bfloat16: _dtype
def bilinear(input1: _Tensor, input2: _Tensor, weight: _Tensor, bias: _Tensor | None = None) -> _Tensor:
    """Return x1 A x2 + b.

    Args:
        input1: `(..., in1)`.
        input2: `(..., in2)`.
        weight: `(out, in1, in2)`.
        bias: `(out,)`.
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
from sbpjax._core.functions.selection import bincount as bincount
def binomial(count: _Tensor, prob: _Tensor, generator: _Generator | None = None) -> _Tensor:
    """Return binomial counts of successes in ``count`` trials of probability ``prob``."""
def bitwise_and(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the bitwise conjunction of integers or bools."""
def bitwise_left_shift(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return input << other."""
def bitwise_not(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the bits of an integer or bool flipped."""
def bitwise_or(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the bitwise disjunction of integers or bools."""
def bitwise_right_shift(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return input >> other, keeping the sign."""
def bitwise_xor(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the bitwise exclusive disjunction of integers or bools."""
def blackman_window(window_length: builtins.int, periodic: builtins.bool = True, *, dtype: _types.DTypeLike | None = None, layout: _layout | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False) -> _Tensor:
    """Return Blackman's window."""
def block_diag(*tensors: _Tensor | collections.abc.Sequence[_Tensor]) -> _Tensor:
    """Return the matrices along the diagonal of a larger one; vectors are rows."""
def bmm(input: _Tensor, mat2: _Tensor, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False, alpha: builtins.float = 1.0, *, out: _Tensor | None = None) -> _Tensor:
    """Return the products of two stacks of matrices, ``(B, M, K)`` and ``(B, K, N)``.

    Args:
        transpose_a: swap the last two dims of ``input`` first.
        transpose_b: swap the last two dims of ``mat2`` first.
        alpha: factor of the product.
    """
bool: _dtype
from sbpjax import boxing as boxing
from sbpjax.sbp.policy import boxing_policy as boxing_policy
from sbpjax._core.functions.oneflow.kernels import broadcast_like as broadcast_like
def broadcast_shapes(*shapes: collections.abc.Sequence[builtins.int]) -> _Size:
    """Return the common shape of several shapes."""
def broadcast_tensors(*tensors: _Tensor | collections.abc.Sequence[_Tensor]) -> builtins.tuple[_Tensor, ...]:
    """Return the tensors as views of their common shape."""
def broadcast_to(input: _Tensor, size: _types.IntOrInts) -> _Tensor:
    """Return `expand` to a size."""
def bucketize(input: _Tensor, boundaries: _Tensor, *, out_int32: builtins.bool = False, right: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return the index of the bucket that each value falls in."""
byte: _dtype
def can_cast(from_: _types.DTypeLike, to: _types.DTypeLike) -> builtins.bool:
    """Return whether a dtype may be cast to another: not to a lower kind."""
def cartesian_prod(*tensors: _Tensor | collections.abc.Sequence[_Tensor]) -> _Tensor:
    """Return all tuples of elements of vectors, as rows; of one vector itself."""
def cast(input: _Tensor, dtype: _types.DTypeLike) -> _Tensor:
    """Return the tensor in another dtype; itself if it has that dtype."""
def cat(tensors: collections.abc.Sequence[_Tensor], dim: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Return the arrays put together along a dim, in their common dtype.

    Args:
        tensors: at least one; equal sizes but for ``dim`` (an empty 1-D one is skipped, as in torch).
        dim: any dim that they have.
    """
def cdist(x1: _Tensor, x2: _Tensor, p: builtins.float = 2.0, compute_mode: builtins.str = 'use_mm_for_euclid_dist_if_necessary') -> _Tensor:
    """Return the p-norm distances of all pairs of ``(..., P, M)`` and ``(..., R, M)`` vectors: ``(..., P, R)``."""
cdouble: _dtype
def ceil(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the smallest integer value not below input; integers stay."""
def ceil_(input: _Tensor) -> _Tensor:
    """Write the result of `ceil` into the first tensor, which keeps its layout."""
def celu(input: _Tensor, alpha: builtins.float = 1.0, *, out: _Tensor | None = None) -> _Tensor:
    """Return max(input, 0) + min(0, alpha * (e**(input / alpha) - 1))."""
def celu_(input: _Tensor, alpha: builtins.float = 1.0) -> _Tensor:
    """Write the result of `celu` into the first tensor, which keeps its layout."""
cfloat: _dtype
def chain_matmul(*matrices: _Tensor | collections.abc.Sequence[_Tensor], out: _Tensor | None = None) -> _Tensor:
    """Return the product of several matrices in the cheapest order; the first and the last may be vectors."""
def channel_shuffle(input: _Tensor, groups: builtins.int) -> _Tensor:
    """Return input with its channels dealt out to ``groups`` in turn."""
channels_last: _memory_format
channels_last_3d: _memory_format
char: _dtype
from sbpjax import checkpoint as checkpoint
def cholesky(input: _Tensor, upper: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``linalg.cholesky(input, upper=upper)``."""
def cholesky_inverse(L: _Tensor, upper: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse of the matrix whose Cholesky factor is given."""
def cholesky_solve(input: _Tensor, input2: _Tensor, upper: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return x with ``A x = input``, where ``input2`` is the Cholesky factor of A."""
def chunk(input: _Tensor, chunks: builtins.int, dim: builtins.int = 0) -> builtins.tuple[_Tensor, ...]:
    """Return at most ``chunks`` views of equal parts of a dim; the last may be shorter.

    Args:
        chunks: how many at most.
    """
def clamp(input: _Tensor, min: _types.TensorLike | None = None, max: _types.TensorLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return input limited to [min, max]; at a bound the whole gradient goes to input, and a NaN has none.

    Args:
        input: array of any dtype but bool.
        min: number, array or None.
        max: number, array or None; wins where it is below ``min``.
    """
def clamp_(input: _Tensor, min: _types.TensorLike | None = None, max: _types.TensorLike | None = None) -> _Tensor:
    """Write the result of `clamp` into the first tensor, which keeps its layout."""
def clamp_max(input: _Tensor, max: _types.TensorLike, *, out: _Tensor | None = None) -> _Tensor:
    """Return input limited from above."""
def clamp_max_(input: _Tensor, max: _types.TensorLike) -> _Tensor:
    """Write the result of `clamp_max` into the first tensor, which keeps its layout."""
def clamp_min(input: _Tensor, min: _types.TensorLike, *, out: _Tensor | None = None) -> _Tensor:
    """Return input limited from below."""
def clamp_min_(input: _Tensor, min: _types.TensorLike) -> _Tensor:
    """Write the result of `clamp_min` into the first tensor, which keeps its layout."""
def clip(input: _Tensor, min: _types.TensorLike | None = None, max: _types.TensorLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return input limited to [min, max]; at a bound the whole gradient goes to input, and a NaN has none.

    Args:
        input: array of any dtype but bool.
        min: number, array or None.
        max: number, array or None; wins where it is below ``min``.
    """
def clip_(input: _Tensor, min: _types.TensorLike | None = None, max: _types.TensorLike | None = None) -> _Tensor:
    """Write the result of `clamp` into the first tensor, which keeps its layout."""
def clone(input: _Tensor, *, memory_format: _memory_format | None = None) -> _Tensor:
    """Return a copy, on the tape."""
def column_stack(tensors: collections.abc.Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """Return the arrays side by side; vectors are columns."""
def combinations(input: _Tensor, r: builtins.int = 2, with_replacement: builtins.bool = False) -> _Tensor:
    """Return all ``r``-element subsets of a vector, as rows."""
from sbpjax import comm as comm
@typing.overload
def compile(fn: None = None, *, state: builtins.object = (), lowering: builtins.str = 'spmd') -> typing.Callable[[typing.Callable[..., builtins.object]], _Compiled]:
    """Return ``fn`` as a function that runs as one compiled program.

    Args:
        fn: a function of tensors (nested lists, tuples, dicts of them) and static Python values.
        state: modules, optimizers and tensors that it changes in place.
        lowering: ``"spmd"`` (explicit collectives) or ``"gspmd"`` (sharding constraints, collectives left to XLA).
    """
@typing.overload
def compile(fn: typing.Callable[..., builtins.object], *, state: builtins.object = (), lowering: builtins.str = 'spmd') -> _Compiled:
    """Return ``fn`` as a function that runs as one compiled program.

    Args:
        fn: a function of tensors (nested lists, tuples, dicts of them) and static Python values.
        state: modules, optimizers and tensors that it changes in place.
        lowering: ``"spmd"`` (explicit collectives) or ``"gspmd"`` (sharding constraints, collectives left to XLA).
    """
def complex(real: _Tensor, imag: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return real + i imag; both are float32 or float64."""
complex128: _dtype
complex64: _dtype
def concat(tensors: collections.abc.Sequence[_Tensor], dim: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Return the arrays put together along a dim, in their common dtype.

    Args:
        tensors: at least one; equal sizes but for ``dim`` (an empty 1-D one is skipped, as in torch).
        dim: any dim that they have.
    """
def concatenate(tensors: collections.abc.Sequence[_Tensor], dim: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Return the arrays put together along a dim, in their common dtype.

    Args:
        tensors: at least one; equal sizes but for ``dim`` (an empty 1-D one is skipped, as in torch).
        dim: any dim that they have.
    """
def cond(pred: _Tensor | builtins.bool, true_fn: typing.Any, false_fn: typing.Any, *operands: typing.Any) -> typing.Any:
    """Return ``true_fn(*operands)`` if a condition holds, else ``false_fn(*operands)``.

    Args:
        pred: a bool, or a tensor of one element.
        true_fn: a function of the operands that returns a tensor or a tuple of tensors, and writes nothing in place.
        false_fn: the same, with results of the same shapes and dtypes.
        *operands: tensors and other values, passed on.
    """
from sbpjax._core.functions.complex_numbers import conj as conj
def conj_physical(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the complex conjugate; real numbers stay."""
def constant_pad_nd(input: _Tensor, pad: builtins.tuple[builtins.int, ...], value: builtins.float | None = 0) -> _Tensor:
    """Return input widened at both ends of its last dims.

    Args:
        input: any array.
        pad: (front, end) of the last dim, then of the one before, …; negative numbers crop.
        value: for ``"constant"``, 0 by default.
    """
def contiguous(input: _Tensor, memory_format: _memory_format | None = None) -> _Tensor:
    """Return the tensor itself if it is contiguous, else a copy."""
contiguous_format: _memory_format
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
from sbpjax._core.functions.settings import convert_oneflow_dtype_to_numpy_dtype as convert_oneflow_dtype_to_numpy_dtype
def copysign(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the size of input with the sign of other (also of -0.0)."""
def corrcoef(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the correlations of variables in the rows of input."""
def cos(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the cosine."""
def cos_(input: _Tensor) -> _Tensor:
    """Write the result of `cos` into the first tensor, which keeps its layout."""
def cosh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the hyperbolic cosine."""
def cosh_(input: _Tensor) -> _Tensor:
    """Write the result of `cosh` into the first tensor, which keeps its layout."""
def cosine_embedding_loss(input1: _Tensor, input2: _Tensor, target: _Tensor, margin: builtins.float = 0.0, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return 1 - cos(input1, input2) where the target is 1, max(0, cos(input1, input2) - margin) where it is -1, else 0, reduced."""
def cosine_similarity(x1: _Tensor, x2: _Tensor, dim: builtins.int = 1, eps: builtins.float = 1e-08) -> _Tensor:
    """Return the cosine of the angle between x1 and x2 along ``dim``; each norm counts as at least ``eps``.

    Args:
        eps: the least that a norm counts.
    """
def count_nonzero(input: _Tensor, dim: _types.IntOrInts | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the int64 number of nonzero elements over ``dim``."""
def cov(input: _Tensor, *, correction: builtins.int = 1, fweights: _Tensor | None = None, aweights: _Tensor | None = None) -> _Tensor:
    """Return the covariances ``(V, V)`` of V variables in the rows of input, their samples in its columns.

    Args:
        input: ``(V, N)``, or ``(N,)`` for one variable; that of one variable is 0-d.
        correction: taken off the number of samples.
        fweights: how often each sample counts: integers ``(N,)``.
        aweights: how much each sample counts: floats ``(N,)``.
    """
from sbpjax._core.functions.elementwise import cross as cross
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
from sbpjax import cuda as cuda
def cummax(input: _Tensor, dim: builtins.int, *, out: _Tensor | None = None) -> _ValuesIndices:
    """Return the running maximum along ``dim`` and the int64 place of its last occurrence; NaN is the largest."""
def cummin(input: _Tensor, dim: builtins.int, *, out: _Tensor | None = None) -> _ValuesIndices:
    """Return the running minimum along ``dim`` and the int64 place of its last occurrence; NaN is the smallest."""
def cumprod(input: _Tensor, dim: builtins.int, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the running product along ``dim``; integers and bools multiply in int64.

    Args:
        dtype: cast to it first; by default integers and bools go to int64.
    """
def cumsum(input: _Tensor, dim: builtins.int, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the running sum along ``dim``; integers and bools add up in int64.

    Args:
        dtype: cast to it first; by default integers and bools go to int64.
    """
def cumulative_trapezoid(y: _Tensor, x: _Tensor | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1) -> _Tensor:
    """Return the running integral along a dim by trapezoids."""
default_generator: _Generator
def deg2rad(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return degrees as radians."""
def deg2rad_(input: _Tensor) -> _Tensor:
    """Write the result of `deg2rad` into the first tensor, which keeps its layout."""
def det(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the determinants of square matrices; the gradient at a singular one is 0, as torch's."""
from sbpjax._core.tensor.storage.storage import detach as detach
from sbpjax._core.tensor.storage.storage import detach_ as detach_
def detach_copy(input: _Tensor) -> _Tensor:
    """Return a tensor over the same storage that is a leaf without grad."""
from sbpjax._core.tensor.handle.device import device as device
def diag(input: _Tensor, diagonal: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Return the diagonal of a matrix, or the matrix with a vector as its diagonal.

    Args:
        diagonal: the number of the diagonal; positive ones are above the main one.
    """
def diag_embed(input: _Tensor, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1, *, out: _Tensor | None = None) -> _Tensor:
    """Return matrices over two new dims, with the last dim of input on their diagonal."""
def diagflat(input: _Tensor, offset: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Return the matrix with the elements of input on a diagonal."""
from sbpjax._core.tensor.storage.views import diagonal as diagonal
def diagonal_copy(input: _Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> _Tensor:
    """Return a view of a diagonal of two dims, as a new last dim."""
def diagonal_scatter(input: _Tensor, src: _Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1, *, out: _Tensor | None = None) -> _Tensor:
    """Return input with src on a diagonal of two dims."""
def diff(input: _Tensor, n: builtins.int = 1, dim: builtins.int = -1, prepend: _Tensor | None = None, append: _Tensor | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the differences of neighbours along a dim, n times over; of the tensor between two others, if given.

    No difference (``n=0``) is the tensor itself, without the others.
    """
def digamma(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the derivative of lgamma; at 0 it is infinite, with the sign opposite to the zero's."""
def dist(input: _Tensor, other: _Tensor, p: builtins.float = 2.0, *, out: _Tensor | None = None) -> _Tensor:
    """Return the p-norm of input - other, over all elements."""
from sbpjax import distributed as distributed
def distributed_partial_fc_sample(weight: _Tensor, label: _Tensor, num_sample: builtins.int) -> builtins.tuple[_Tensor, _Tensor, _Tensor]:
    """Return labels among sampled classes, the classes, and their rows of a weight.

    All classes that occur in ``label`` are taken, and others at random until there are ``num_sample``; the classes come
    sorted, and each label becomes its place among them.

    Args:
        weight: ``(C, D)``, a row per class.
        label: ``(N,)`` class numbers.
        num_sample: how many classes.
    """
from sbpjax import distributions as distributions
def div(input: _Tensor, other: _types.TensorLike, *, rounding_mode: builtins.str | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return input / other.

    Args:
        input: any array or number.
        other: any array or number, broadcast with ``input``.
        rounding_mode: None divides truly (integers become float32); ``"trunc"`` rounds towards zero and ``"floor"``
            down, both keep an integer dtype and have gradient zero.
    """
def div_(input: _Tensor, other: _types.TensorLike, rounding_mode: builtins.str | None = None) -> _Tensor:
    """Write the result of `div` into the first tensor, which keeps its layout."""
def divide(input: _Tensor, other: _types.TensorLike, *, rounding_mode: builtins.str | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return input / other.

    Args:
        input: any array or number.
        other: any array or number, broadcast with ``input``.
        rounding_mode: None divides truly (integers become float32); ``"trunc"`` rounds towards zero and ``"floor"``
            down, both keep an integer dtype and have gradient zero.
    """
def divide_(input: _Tensor, other: _types.TensorLike, rounding_mode: builtins.str | None = None) -> _Tensor:
    """Write the result of `div` into the first tensor, which keeps its layout."""
def dot(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the inner product of two vectors."""
double: _dtype
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
def dropout_(input: _Tensor, p: builtins.float = 0.5, training: builtins.bool = True, generator: _Generator | None = None, *, addend: _Tensor | None = None) -> _Tensor:
    """Return x with each element zero with probability p and the others divided by 1 - p.

    Args:
        input: any shape; any sbp: the mask does not depend on it.
        p: the probability of a zero.
        training: if false, return x as it is.
        inplace: write into the input.
        generator: draws the mask; the default one if not given.
        addend: added to the result.
    """
def dsplit(input: _Tensor, indices_or_sections: _types.IntOrInts) -> builtins.tuple[_Tensor, ...]:
    """Return `tensor_split` along dim 2."""
def dstack(tensors: collections.abc.Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """Return the arrays along dim 2."""
from sbpjax._core.tensor.handle.dtype import dtype as dtype
def dtypes() -> builtins.list[_dtype]:
    """Return every element type."""
e: builtins.float
def einsum(equation: builtins.str, *operands: _Tensor | collections.abc.Sequence[_Tensor]) -> _Tensor:
    """Return the sum of products that an equation such as ``"bij,bjk->bik"`` names.

    ``einsum(x, [0, 1], y, [1, 2], [0, 2])`` is the same as ``einsum("ab,bc->ac", x, y)``; ``...`` may be in both.

    Args:
        equation: letters for the dims of every tensor, and of the result after ``->``.
        operands: the tensors.
    """
from sbpjax._core.functions.layers.embedding import embedding_bag as embedding_bag
def empty(*size: _types.IntOrInts, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return a tensor whose content is not specified (zeros, in fact); arguments as `zeros`."""
def empty_like(x: _Tensor, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, *, memory_format: _memory_format | None = None) -> _Tensor:
    """Return an unspecified tensor of the shape, dtype and layout of ``x``, unless others are given."""
def empty_permuted(size: _types.IntOrInts, physical_layout: _types.IntOrInts, *, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
    """Return an uninitialised tensor whose dims are in memory in the order given."""
def empty_strided(size: _types.IntOrInts, stride: _types.IntOrInts, *, dtype: _types.DTypeLike | None = None, layout: _layout | None = None, device: _types.DeviceLike | None = None, requires_grad: builtins.bool = False, pin_memory: builtins.bool = False) -> _Tensor:
    """Return an uninitialised tensor with the sizes and strides given."""
from sbpjax._core.tensor.tape.grad_mode import enable_grad as enable_grad
def eq(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where input == other."""
from sbpjax._core.functions.elementwise import equal as equal
def erf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the error function."""
def erf_(input: _Tensor) -> _Tensor:
    """Write the result of `erf` into the first tensor, which keeps its layout."""
def erfc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return 1 - erf(input)."""
def erfc_(input: _Tensor) -> _Tensor:
    """Write the result of `erfc` into the first tensor, which keeps its layout."""
def erfinv(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse of erf."""
def erfinv_(input: _Tensor) -> _Tensor:
    """Write the result of `erfinv` into the first tensor, which keeps its layout."""
from sbpjax import errors as errors
def exp(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return e**input."""
def exp2(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return 2**input."""
def exp2_(input: _Tensor) -> _Tensor:
    """Write the result of `exp2` into the first tensor, which keeps its layout."""
def exp_(input: _Tensor) -> _Tensor:
    """Write the result of `exp` into the first tensor, which keeps its layout."""
def expand(input: _Tensor, *sizes: _types.IntOrInts) -> _Tensor:
    """Return a view with dims of size 1 repeated, and new leading dims; -1 keeps a size.

    Args:
        sizes: the sizes, as numbers or one tuple.
    """
def expand_copy(input: _Tensor, *sizes: _types.IntOrInts) -> _Tensor:
    """Return a view with dims of size 1 repeated, and new leading dims; -1 keeps a size.

    Args:
        sizes: the sizes, as numbers or one tuple.
    """
def explain(fn: typing.Callable[..., builtins.object], *args: builtins.object, state: builtins.object = (), **kwargs: builtins.object) -> _Explanation:
    """Return the plan of a function of global tensors: a strategy per equation, and every boxing with its bytes.

    Nothing runs. The function is planned as one program, as `compile` would.

    Args:
        fn: a function of tensors, an op such as ``sbpjax.matmul``, or a compiled function.
        *args: its arguments.
        state: modules, optimizers and tensors that it changes; a compiled function knows its own.
        **kwargs: its keyword arguments.
    """
def expm1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return e**input - 1, exact near 0."""
def expm1_(input: _Tensor) -> _Tensor:
    """Write the result of `expm1` into the first tensor, which keeps its layout."""
def eye(n: builtins.int, m: builtins.int | None = None, *, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return an ``n`` × ``m`` tensor with ones on the diagonal.

    Args:
        n: the rows.
        m: the columns; as many as rows if None.
    """
def feature_alpha_dropout(input: _Tensor, p: builtins.float = 0.5, training: builtins.bool = False, inplace: builtins.bool = False, generator: _Generator | None = None) -> _Tensor:
    """Return `(N, C, ...)` with whole channels at selu's lower limit, scaled to keep mean and variance."""
def feature_alpha_dropout_(input: _Tensor, p: builtins.float = 0.5, training: builtins.bool = False, generator: _Generator | None = None) -> _Tensor:
    """Return `(N, C, ...)` with whole channels at selu's lower limit, scaled to keep mean and variance."""
from sbpjax import fft as fft
def fill(input: _Tensor, value: _types.TensorLike) -> _Tensor:
    """Return ``input.clone().fill_(value)``."""
def fill_(input: _Tensor, value: _types.TensorLike) -> _Tensor:
    """Write one number into every element.

    Args:
        value: a number, or a tensor of one element.
    """
from sbpjax._core.tensor.handle.dtype import finfo as finfo
def fix(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input rounded towards zero; integers stay."""
def fix_(input: _Tensor) -> _Tensor:
    """Write the result of `trunc` into the first tensor, which keeps its layout."""
from sbpjax._core.tensor.storage.reshaping import flatten as flatten
def flip(input: _Tensor, *dims: _types.IntOrInts) -> _Tensor:
    """Return input with the given dims reversed.

    Args:
        dims: one or several.
    """
def fliplr(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input with dim 1 reversed."""
def flipud(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input with dim 0 reversed."""
float: _dtype
float16: _dtype
float32: _dtype
float64: _dtype
float8_e4m3fn: _dtype
float8_e5m2: _dtype
def float_power(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return input ** other computed in float64, or complex128 where one is complex."""
def floor(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the largest integer value not above input; integers stay."""
def floor_(input: _Tensor) -> _Tensor:
    """Write the result of `floor` into the first tensor, which keeps its layout."""
def floor_divide(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return input / other rounded down, in the promoted dtype."""
def fmax(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the larger element; a NaN counts as missing."""
def fmin(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the smaller element; a NaN counts as missing."""
def fmod(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the remainder of input / other with the sign of input (C's ``fmod``)."""
def fork_rng(devices: _types.DeviceLike | None = None, enabled: builtins.bool = True, **_: builtins.object) -> contextlib.AbstractContextManager[None]:
    """Restore the default generator's state after the block.

    Args:
        devices: accepted; there is one stream for all devices.
        enabled: whether to do so.
    """
def frac(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the fractional part, input - trunc(input)."""
def frac_(input: _Tensor) -> _Tensor:
    """Write the result of `frac` into the first tensor, which keeps its layout."""
def frexp(input: _Tensor, *, out: _Tensor | None = None) -> _MantissaExponent:
    """Return mantissas, 0.5 or more and less than 1 in size, and int32 exponents."""
def frobenius_norm(input: _Tensor, dim: _types.IntOrInts, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return the root of the sum of squares over dims."""
def from_dlpack(ext_tensor: builtins.object, *, device: _types.DeviceLike | None = None, copy: builtins.bool | None = None) -> _Tensor:
    """Return a tensor over the memory of an array of another library, without a copy where JAX can read it in place.

    Args:
        ext_tensor: the array, or the capsule of one, e.g. from `torch.utils.dlpack.to_dlpack`; it is used up.
        device: the target device; unchanged by default.
        copy: whether to copy; by default only where JAX cannot read the memory in place.

    The memory is never written here: a write in place makes a new array.
    """
def from_jax(array: _types.ArrayLike) -> _Tensor:
    """Return a tensor over a `jax.Array`: local if it is on one device, else global in the layout of its sharding."""
from sbpjax._core.tensor.creation.from_data import from_numpy as from_numpy
def frombuffer(buffer: builtins.object, *, dtype: _types.DTypeLike, count: builtins.int = -1, offset: builtins.int = 0, requires_grad: builtins.bool = False) -> _Tensor:
    """Return the bytes of a buffer as a vector, copied."""
def full(size: _types.IntOrInts, fill_value: _types.TensorLike, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return a tensor of one value; without ``dtype`` the value's own kind decides it.

    Args:
        fill_value: the value.
    """
def full_like(x: _Tensor, fill_value: _types.TensorLike, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
    """Return one value in the shape, dtype and layout of ``x``, unless others are given.

    Args:
        fill_value: the value.
    """
from sbpjax import func as func
def gather(input: _Tensor, dim: builtins.int, index: _Tensor, sparse_grad: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``out[i][j] = input[index[i][j]][j]`` for dim 0, and so on for other dims; the shape of the index.

    Args:
        index: integers, of as many dims.
    """
def gather_nd(input: _Tensor, index: _Tensor) -> _Tensor:
    """Return ``x[index[..., 0], index[..., 1], …]``: the index's last dim names the leading dims of input."""
def gcd(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the greatest common divisors, never negative."""
def gcd_(input: _Tensor, other: _Tensor) -> _Tensor:
    """Write the result of `gcd` into the first tensor, which keeps its layout."""
def ge(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where input >= other."""
def gelu(input: _Tensor, approximate: builtins.str = 'none', *, out: _Tensor | None = None) -> _Tensor:
    """Return input * Φ(input), with Φ the normal distribution function.

    Args:
        input: floats of any shape.
        approximate: ``"none"`` uses erf, ``"tanh"`` the tanh formula.
    """
def gen_tensor_buffer(*args: builtins.object, **options: builtins.object) -> builtins.object:
    """Raise: tensors of tensors of several shapes do not exist here."""
def geqrf(input: _Tensor, *, out: _Tensor | None = None) -> _ATau:
    """Return the Householder reflections of a QR factorisation with its upper triangle, as LAPACK's ``geqrf``."""
def ger(input: _Tensor, vec2: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the products of all pairs of two vectors' elements."""
from sbpjax._core.tensor.amp.autocast import get_autocast_dtype as get_autocast_dtype
def get_default_device() -> _device:
    """Return the default device of new tensors."""
from sbpjax._core.tensor.handle.dtype import get_default_dtype as get_default_dtype
from sbpjax._core.functions.conversions import get_device as get_device
from sbpjax._core.functions.settings import get_float32_matmul_precision as get_float32_matmul_precision
from sbpjax._core.functions.settings import get_num_interop_threads as get_num_interop_threads
from sbpjax._core.functions.settings import get_num_threads as get_num_threads
def get_rng_state() -> _Tensor:
    """Return the default generator's state."""
def gradient(input: _Tensor, *, spacing: builtins.int = 1, dim: _types.IntOrInts | None = None, edge_order: builtins.int = 1) -> builtins.tuple[_Tensor, ...]:
    """Return the estimated derivatives along dims (all by default).

    Args:
        input: samples.
        spacing: their distance: a number (1 if None), one for each dim, or for each dim a vector of places.
        dim: the dims.
        edge_order: 1 or 2, the order of the estimate at the ends.
    """
from sbpjax import graph as graph
def greater(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where input > other."""
def greater_(input: _Tensor, other: _types.TensorLike) -> _Tensor:
    """Write the result of `gt` into the first tensor, which keeps its layout."""
def greater_equal(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where input >= other."""
def grid_sampler(input: _Tensor, grid: _Tensor, interpolation_mode: builtins.int, padding_mode: builtins.int, align_corners: builtins.bool) -> _Tensor:
    """Return `nn.functional.grid_sample` with modes by number."""
def grid_sampler_2d(input: _Tensor, grid: _Tensor, interpolation_mode: builtins.int, padding_mode: builtins.int, align_corners: builtins.bool) -> _Tensor:
    """Return `nn.functional.grid_sample` with modes by number."""
def grid_sampler_3d(input: _Tensor, grid: _Tensor, interpolation_mode: builtins.int, padding_mode: builtins.int, align_corners: builtins.bool) -> _Tensor:
    """Return `nn.functional.grid_sample` with modes by number."""
def group_norm(input: _Tensor, num_groups: builtins.int, weight: _Tensor | None = None, bias: _Tensor | None = None, eps: builtins.float = 1e-05) -> _Tensor:
    """Return input normalised over groups of channels and all other dims but the batch.

    Args:
        input: ``(N, C, ...)``, floats.
        num_groups: divides C.
        weight: ``(C,)`` or None.
        bias: ``(C,)`` or None.
        eps: added to the variance.
    """
def gt(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where input > other."""
def gt_(input: _Tensor, other: _types.TensorLike) -> _Tensor:
    """Write the result of `gt` into the first tensor, which keeps its layout."""
half: _dtype
def hamming_window(window_length: builtins.int, periodic: builtins.bool = True, alpha: builtins.float = 0.54, beta: builtins.float = 0.46, *, dtype: _types.DTypeLike | None = None, layout: _layout | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False) -> _Tensor:
    """Return ``alpha - beta cos``, one period long."""
def hann_window(window_length: builtins.int, periodic: builtins.bool = True, *, dtype: _types.DTypeLike | None = None, layout: _layout | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False) -> _Tensor:
    """Return ``0.5 - 0.5 cos``, one period long, without its last point unless ``periodic`` is False."""
def hardshrink(input: _Tensor, lambd: builtins.float = 0.5, inplace: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return input, and 0 where |input| <= lambd."""
def hash_tensor(input: _Tensor, dim: _types.IntOrInts = (), *, keepdim: builtins.bool = False, mode: builtins.int = 0, out: _Tensor | None = None) -> _Tensor:
    """Return the exclusive or of the bits of the elements, as float64 or int64, over ``dim``; uint64.

    Args:
        dim: dim or dims; () for all.
        mode: 0, the exclusive or.
    """
def heaviside(input: _Tensor, values: _types.TensorLike, *, out: _Tensor | None = None) -> _Tensor:
    """Return 0 where input < 0, 1 where input > 0, and values where input is 0."""
def hinge_embedding_loss(input: _Tensor, target: _Tensor, margin: builtins.float = 1.0, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return input where the target is 1, max(0, margin - input) where it is -1, reduced; input and target broadcast."""
from sbpjax._core.functions.selection import histc as histc
def histogram(input: _Tensor, bins: builtins.int | _Tensor, *, range: builtins.tuple[builtins.float, builtins.float] | None = None, weight: _Tensor | None = None, density: builtins.bool = False, out: _Tensor | None = None) -> _HistogramEdges:
    """Return the number (or the weight) of elements in each bin, and the edges of the bins."""
def histogramdd(input: _Tensor, bins: _types.IntOrInts, *, range: collections.abc.Sequence[builtins.float] | None = None, weight: _Tensor | None = None, density: builtins.bool = False) -> _HistogramEdges:
    """Return the histogram of points in the rows of the last dim, in as many dims, and the edges per dim."""
def hsplit(input: _Tensor, indices_or_sections: _types.IntOrInts) -> builtins.tuple[_Tensor, ...]:
    """Return `tensor_split` along dim 1, or 0 of a vector."""
def hstack(tensors: collections.abc.Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """Return the arrays side by side: along dim 1, or along dim 0 for vectors."""
from sbpjax import hub as hub
def hypot(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return sqrt(x² + y²), without overflow; infinite where one of them is."""
def i0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the modified Bessel function of the first kind of order 0."""
def i0_(input: _Tensor) -> _Tensor:
    """Write the result of `i0` into the first tensor, which keeps its layout."""
def igamma(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the lower regularized incomplete gamma function; the gradient is that of other."""
def igammac(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the upper regularized incomplete gamma function; the gradient is that of other."""
from sbpjax._core.tensor.handle.dtype import iinfo as iinfo
from sbpjax._core.functions.complex_numbers import imag as imag
def in_top_k(targets: _Tensor, predictions: _Tensor, k: builtins.int) -> _Tensor:
    """Return for each row whether fewer than k classes are predicted above the target's class."""
def index_add(input: _Tensor, dim: builtins.int, index: _Tensor, source: _Tensor, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
    """Return input with ``alpha * source`` added to the slices that a vector names.

    Args:
        index: a vector of integers.
        source: the dtype of ``input``, with the index's size in the dim.
        alpha: factor of the source.
    """
def index_add_(input: _Tensor, dim: builtins.int, index: _Tensor, source: _Tensor, alpha: builtins.complex = 1) -> _Tensor:
    """Write the result of `index_add` into the first tensor, which keeps its layout."""
def index_copy(input: _Tensor, dim: builtins.int, index: _Tensor, source: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input with the slices that a vector names replaced by those of ``source``."""
def index_fill(input: _Tensor, dim: builtins.int, index: _Tensor, value: _Tensor) -> _Tensor:
    """Return input with the slices that a vector names, also from the end, filled with a number (or 0-d array)."""
def index_put(input: _Tensor, indices: collections.abc.Sequence[_Tensor | None], values: _types.TensorLike, accumulate: builtins.bool = False) -> _Tensor:
    """Return a copy with values written (or added) to the elements that a tuple of index tensors names."""
def index_put_(input: _Tensor, indices: collections.abc.Sequence[_Tensor | None], values: _types.TensorLike, accumulate: builtins.bool = False) -> _Tensor:
    """Write (or add) values to the elements that a tuple of index tensors names."""
def index_reduce(input: _Tensor, dim: builtins.int, index: _Tensor, source: _Tensor, reduce: builtins.str, *, include_self: builtins.bool = True, out: _Tensor | None = None) -> _Tensor:
    """Return input with slices of source reduced into the slices of a dim that index names."""
def index_select(input: _Tensor, dim: builtins.int, index: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the slices of input along ``dim`` that a vector names.

    Args:
        index: a vector of integers.
    """
inf: builtins.float
from sbpjax._core.tensor.tape.grad_mode import inference_mode as inference_mode
from sbpjax._core.tensor.creation.generator import initial_seed as initial_seed
def inner(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the inner products over the last dims: ``(..., K)`` and ``(___, K)`` give ``(..., ___)``."""
from sbpjax._core.functions.layers.norm import instance_norm as instance_norm
int: _dtype
int16: _dtype
int32: _dtype
int64: _dtype
int8: _dtype
def inverse(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverses of matrices."""
from sbpjax._core.tensor.amp.autocast import is_autocast_enabled as is_autocast_enabled
from sbpjax._core.functions.elementwise import is_complex as is_complex
from sbpjax._core.functions.complex_numbers import is_conj as is_conj
from sbpjax._core.functions.settings import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from sbpjax._core.functions.torch_methods import is_distributed as is_distributed
from sbpjax._core.functions.elementwise import is_floating_point as is_floating_point
from sbpjax._core.tensor.tape.grad_mode import is_grad_enabled as is_grad_enabled
from sbpjax._core.functions.torch_methods import is_inference as is_inference
from sbpjax._core.tensor.tape.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from sbpjax._core.functions.complex_numbers import is_neg as is_neg
from sbpjax._core.functions.elementwise import is_nonzero as is_nonzero
from sbpjax._core.functions.torch_methods import is_same_size as is_same_size
from sbpjax._core.functions.conversions import is_signed as is_signed
def is_storage(obj: _types.ArrayLike) -> builtins.bool:
    """Return whether an object is the memory of a tensor."""
def is_tensor(obj: _types.ArrayLike) -> builtins.bool:
    """Return whether an object is a `Tensor`."""
def isclose(input: _Tensor, other: _types.TensorLike, rtol: builtins.float = 1e-05, atol: builtins.float = 1e-08, equal_nan: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return where |input - other| <= atol + rtol * |other|; equal infinities are close."""
def isfinite(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return where input is neither infinite nor NaN."""
def isin(elements: _Tensor, test_elements: _types.TensorLike, *, assume_unique: builtins.bool = False, invert: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return for every element whether it is among the test elements."""
def isinf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return where input is infinite; of a complex number, where either part is."""
def isnan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return where input is NaN."""
def isneginf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return where input is -inf."""
def isposinf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return where input is +inf."""
def isreal(input: _Tensor) -> _Tensor:
    """Return where the imaginary part is 0."""
from sbpjax._core.functions.signal import istft as istft
def kaiser_window(window_length: builtins.int, periodic: builtins.bool = True, beta: builtins.float = 12.0, *, dtype: _types.DTypeLike | None = None, layout: _layout | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, pin_memory: builtins.bool = False, requires_grad: builtins.bool = False) -> _Tensor:
    """Return Kaiser's window with shape parameter ``beta``."""
def kl_div(input: _Tensor, target: _Tensor, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean', log_target: builtins.bool = False) -> _Tensor:
    """Return ``target * (log(target) - input)`` reduced; ``"batchmean"`` divides by the first dim's size.

    Args:
        input: log-probabilities.
        target: probabilities, or log-probabilities with ``log_target``.
        reduction: ``"none"``, ``"mean"``, ``"sum"`` or ``"batchmean"``.
        log_target: whether the target is given as logarithms.
    """
def kron(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the Kronecker product."""
def kthvalue(input: _Tensor, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _ValuesIndices:
    """Return the k-th smallest element along ``dim`` (k from 1) and its int64 index."""
def layer_norm(input: _Tensor, normalized_shape: builtins.int | builtins.tuple[builtins.int, ...], weight: _Tensor | None = None, bias: _Tensor | None = None, eps: builtins.float = 1e-05) -> _Tensor:
    """Return input with mean 0 and variance 1 over its last dims, scaled and shifted.

    Args:
        input: ``(..., *normalized_shape)``, floats; a split of any other dim needs no communication.
        normalized_shape: sizes of the last dims; by default those of the weight.
        weight: of ``normalized_shape``, or None.
        bias: of ``normalized_shape``, or None.
        eps: added to the variance.
    """
from sbpjax._core.functions.settings import layout as layout
def lcm(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the least common multiples, never negative."""
def lcm_(input: _Tensor, other: _Tensor) -> _Tensor:
    """Write the result of `lcm` into the first tensor, which keeps its layout."""
def ldexp(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return ``x * 2**other``; integers other do not change the dtype of floats input."""
def ldexp_(input: _Tensor, other: _Tensor) -> _Tensor:
    """Write the result of `ldexp` into the first tensor, which keeps its layout."""
def le(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where input <= other."""
def lerp(input: _Tensor, end: _types.TensorLike, weight: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input + weight * (end - input), computed from the nearer end as torch does.

    Args:
        weight: a number or a tensor; 0 gives ``input``, 1 gives ``end``.
    """
def lerp_(input: _Tensor, end: _types.TensorLike, weight: _Tensor) -> _Tensor:
    """Write the result of `lerp` into the first tensor, which keeps its layout."""
def less(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where input < other."""
def less_equal(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where input <= other."""
def lgamma(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return log|Γ(input)|."""
from sbpjax import linalg as linalg
def linspace(start: builtins.float, end: _types.TensorLike, steps: builtins.int, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``steps`` evenly spaced values from ``start`` to ``end``, both included.

    Args:
        start: the first value, a number or a 0-d tensor.
        end: the last value, likewise.
        steps: how many.
    """
def load(path: builtins.str | os.PathLike, global_src_rank: builtins.int | None = None, map_location: builtins.object = None, *, support_pytorch_format: builtins.bool = True, weights_only: builtins.bool | None = None) -> typing.Any:
    """Return the saved object; tensors come back as local ones unless a placement or a rank is given.

    A file named ``*.safetensors`` is read as one, any other file as one of ``torch.save`` with a plain state in it
    (``.pth``, ``.pt``, ``.bin``), a directory with OneFlow's ``pickled_data`` as one of ``oneflow.save``: no code in
    them runs, unless ``weights_only=False`` allows it.

    In a job of several processes, each process that calls this without a placement reads by itself; with one, all
    processes call it.

    Args:
        path: the directory, or the file.
        global_src_rank: a rank: then every tensor is global on that rank alone, of the CPU or of the type of the device
            in ``map_location``. `load_state_dict` and `to_global` bring it from there to any placement and sbp, so no
            other device ever holds the whole value. Every process reads files itself, so beside a placement it changes
            nothing.
        map_location: a device for local tensors, or a placement: then every tensor is global there, in broadcast. It
            may be the second argument, as in PyTorch.
        support_pytorch_format: read PyTorch's files.
        weights_only: False lets a file of PyTorch's name anything, which runs any code its author put there: only for
            files that you made. Directories hold no code.
    """
from sbpjax.graph.export.loaded import load_graph as load_graph
def load_ipython_extension(shell: typing.Any) -> None:
    """Give a notebook the cell magic ``%%ranks``: ``%load_ext sbpjax`` calls this.

    Args:
        shell: IPython's shell.
    """
def lobpcg(A: _Tensor, k: builtins.int | None = None, B: _Tensor | None = None, X: _Tensor | None = None, n: builtins.int | None = None, iK: _Tensor | None = None, niter: builtins.int | None = None, tol: builtins.float | None = None, largest: builtins.bool | None = None, method: builtins.str | None = None, tracker: builtins.object = None, ortho_iparams: typing.Any = None, ortho_fparams: typing.Any = None, ortho_bparams: typing.Any = None) -> builtins.tuple[_Tensor, _Tensor]:
    """Return a few of the largest (or smallest) eigenvalues of ``A x = λ B x`` and their vectors as columns.

    Where A requires grad the whole problem is solved by `linalg.eigh`, whose gradient reaches A.

    Args:
        A: ``(..., M, M)``, symmetric.
        k: how many; by default the columns of X, or 1.
        B: ``(..., M, M)``, symmetric positive definite; by default the identity.
        X: ``(..., M, n)``, where to begin.
        n: how many columns the approximation has, if there is no X; by default k.
        iK: a preconditioner, near the inverse of A.
        niter: the most rounds; by default until they converge, 1000 at most, and negative for no bound.
        tol: the bound of ``|A x - λ B x| / (|x| (|A| + |B| λ))``; by default the square root of the dtype's eps.
        largest: the largest eigenvalues rather than the smallest (the default).
        method: ``"ortho"`` or ``"basic"``; both take the orthogonal basis.
        tracker: not called.
        ortho_iparams: without effect, as are the following.
        ortho_fparams: see above.
        ortho_bparams: see above.
    """
def log(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the natural logarithm."""
def log10(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the logarithm to base 10."""
def log10_(input: _Tensor) -> _Tensor:
    """Write the result of `log10` into the first tensor, which keeps its layout."""
def log1p(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return log(1 + input), exact near 0."""
def log1p_(input: _Tensor) -> _Tensor:
    """Write the result of `log1p` into the first tensor, which keeps its layout."""
def log2(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the logarithm to base 2."""
def log2_(input: _Tensor) -> _Tensor:
    """Write the result of `log2` into the first tensor, which keeps its layout."""
def log_(input: _Tensor) -> _Tensor:
    """Write the result of `log` into the first tensor, which keeps its layout."""
def log_softmax(input: _Tensor, dim: builtins.int | None = None, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the logarithm of the softmax along ``dim``, computed without its underflow."""
def logaddexp(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return log(e**input + e**other) without overflow."""
def logaddexp2(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return ``log2(2**input + 2**other)`` without overflow."""
def logcumsumexp(input: _Tensor, dim: builtins.int, *, out: _Tensor | None = None) -> _Tensor:
    """Return the logarithm of the running sum of exponentials along ``dim``."""
def logdet(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the logarithm of determinants; NaN for a negative one."""
def logical_and(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where both are nonzero."""
def logical_not(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return where input is zero."""
def logical_or(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where at least one is nonzero."""
def logical_xor(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where exactly one is nonzero."""
def logit(input: _Tensor, eps: builtins.float | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return log(input / (1 - input)), with input clamped to [eps, 1 - eps] if ``eps`` is given."""
def logit_(input: _Tensor, eps: builtins.float | None = None) -> _Tensor:
    """Write the result of `logit` into the first tensor, which keeps its layout."""
def logspace(start: builtins.float, end: _types.TensorLike, steps: builtins.int, base: builtins.float = 10.0, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``base`` to the power of `linspace`."""
def logsumexp(input: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return log(sum(e**input)) over ``dim`` without overflow; integers become float32."""
long: _dtype
def lt(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where input < other."""
def lu(A: _Tensor, pivot: builtins.bool = True, get_infos: builtins.bool = False, *, out: _Tensor | None = None) -> builtins.tuple[_Tensor, _Tensor] | builtins.tuple[_Tensor, _Tensor, _Tensor]:
    """Return ``tuple(linalg.lu_factor_ex(A, pivot=pivot))[:3 if get_infos else 2]``."""
def lu_solve(b: _Tensor, LU_data: _Tensor, LU_pivots: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``linalg.lu_solve(LU_data, LU_pivots, b)``."""
def lu_unpack(LU_data: _Tensor, LU_pivots: _Tensor, unpack_data: builtins.bool = True, unpack_pivots: builtins.bool = True, *, out: _Tensor | None = None) -> _PLU:
    """Return P, L and U of a result of `lu_factor`; empty ones if not requested."""
from sbpjax._core.tensor.creation.generator import manual_seed as manual_seed
def margin_ranking_loss(input1: _Tensor, input2: _Tensor, target: _Tensor, margin: builtins.float = 0.0, size_average: builtins.bool | None = None, reduce: builtins.bool | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return max(0, margin - target * (input1 - input2)), reduced."""
def masked_fill(input: _Tensor, mask: _Tensor, value: _Tensor) -> _Tensor:
    """Return input with ``value`` (number or 0-d array, cast to input's dtype) where the mask holds; input and mask broadcast.

    Args:
        mask: bools, or integers, of which all but 0 count; broadcast to ``input``.
        value: a number, or a tensor of one element.
    """
def masked_fill_(input: _Tensor, mask: _Tensor, value: _Tensor) -> _Tensor:
    """Write the result of `masked_fill` into the first tensor, which keeps its layout."""
def masked_scatter(input: _Tensor, mask: _Tensor, source: _Tensor) -> _Tensor:
    """Return input with the elements of ``source``, in order, at the places where the mask holds."""
from sbpjax._core.functions.selection import masked_select as masked_select
def matmul(input: _Tensor, other: _Tensor, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False, alpha: builtins.float = 1.0, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``alpha`` times the matrix product, with PyTorch's rules for 1-d inputs and batch dims.

    Args:
        input: a vector, a matrix, or a stack of them.
        other: likewise.
        transpose_a: swap the last two dims of `input` first; it keeps its layout.
        transpose_b: swap the last two dims of `other` first; it keeps its layout.
        alpha: factor of the product.
        out: a tensor to write it into.
    """
def matrix_exp(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the exponentials of square matrices: the series of ``x / 2**s``, squared s times."""
def matrix_power(input: _Tensor, n: builtins.int, *, out: _Tensor | None = None) -> _Tensor:
    """Return the n-th power of square matrices; a negative one is that of the inverse."""
@typing.overload
def max(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the largest element; along ``dim`` with the indices; with another tensor the elementwise maximum.

    Args:
        dim: the dim, or None for all elements; or the other tensor.
        other: a tensor to compare with, element by element.
    """
@typing.overload
def max(input: _Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: collections.abc.Sequence[_Tensor] | None = None) -> _ValuesIndices:
    """Return the largest element; along ``dim`` with the indices; with another tensor the elementwise maximum.

    Args:
        dim: the dim, or None for all elements; or the other tensor.
        other: a tensor to compare with, element by element.
    """
@typing.overload
def max(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the largest element; along ``dim`` with the indices; with another tensor the elementwise maximum.

    Args:
        dim: the dim, or None for all elements; or the other tensor.
        other: a tensor to compare with, element by element.
    """
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
def maximum(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the larger element; NaN if either is NaN; a tie gives half of the gradient to each, NaN all of it."""
def mean(input: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the mean over ``dim``; the input or ``dtype`` is floating point."""
@typing.overload
def median(input: _Tensor) -> _Tensor:
    """Return the lower median; along ``dim`` with its index."""
@typing.overload
def median(input: _Tensor, dim: builtins.int, keepdim: builtins.bool = False) -> _ValuesIndices:
    """Return the lower median; along ``dim`` with its index."""
from sbpjax._core.functions.settings import memory_format as memory_format
def meshgrid(*tensors: _Tensor | collections.abc.Sequence[_Tensor], indexing: builtins.str = 'ij') -> builtins.tuple[_Tensor, ...]:
    """Return the coordinate grids of vectors.

    Args:
        tensors: vectors of one dtype.
        indexing: ``"ij"``, or ``"xy"``, which swaps the first two dims.
    """
@typing.overload
def min(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the smallest element; along ``dim`` with the indices; with another tensor the elementwise minimum.

    Args:
        dim: the dim, or None for all elements; or the other tensor.
        other: a tensor to compare with, element by element.
    """
@typing.overload
def min(input: _Tensor, dim: builtins.int, keepdim: builtins.bool = False, *, out: collections.abc.Sequence[_Tensor] | None = None) -> _ValuesIndices:
    """Return the smallest element; along ``dim`` with the indices; with another tensor the elementwise minimum.

    Args:
        dim: the dim, or None for all elements; or the other tensor.
        other: a tensor to compare with, element by element.
    """
@typing.overload
def min(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the smallest element; along ``dim`` with the indices; with another tensor the elementwise minimum.

    Args:
        dim: the dim, or None for all elements; or the other tensor.
        other: a tensor to compare with, element by element.
    """
def minimum(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the smaller element; NaN if either is NaN; a tie gives half of the gradient to each, NaN all of it."""
def mish(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input * tanh(softplus(input))."""
def mm(input: _Tensor, mat2: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the product of two matrices."""
from sbpjax import mock_oneflow as mock_oneflow
from sbpjax import mock_torch as mock_torch
def mode(input: _Tensor, dim: builtins.int = -1, keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _ValuesIndices:
    """Return the most frequent element along ``dim`` (the smallest of equally frequent ones) and its last index."""
from sbpjax import models as models
def moveaxis(input: _Tensor, source: _types.IntOrInts, destination: _types.IntOrInts) -> _Tensor:
    """Return a view with dims moved to other positions.

    Args:
        source: a dim, or several.
        destination: where they go.
    """
def movedim(input: _Tensor, source: _types.IntOrInts, destination: _types.IntOrInts) -> _Tensor:
    """Return a view with dims moved to other positions.

    Args:
        source: a dim, or several.
        destination: where they go.
    """
def msort(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input sorted along dim 0."""
def mul(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return input * other; of bools, their conjunction."""
def mul_(input: _Tensor, other: _types.TensorLike) -> _Tensor:
    """Write the result of `mul` into the first tensor, which keeps its layout."""
def multinomial(input: _Tensor, num_samples: builtins.int, replacement: builtins.bool = False, generator: _Generator | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return indices drawn by the weights in ``input``.

    Args:
        input: weights ``(C,)`` or ``(N, C)``.
        num_samples: how many are drawn.
        replacement: whether one may be drawn again.
    """
def multiply(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return input * other; of bools, their conjunction."""
def multiply_(input: _Tensor, other: _types.TensorLike) -> _Tensor:
    """Write the result of `mul` into the first tensor, which keeps its layout."""
def mv(input: _Tensor, vec: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the product of a matrix and a vector."""
def mvlgamma(input: _Tensor, p: builtins.int, *, out: _Tensor | None = None) -> _Tensor:
    """Return the logarithm of the multivariate gamma function of dimension ``p``; NaN below its domain."""
nan: builtins.float
def nan_to_num(input: _Tensor, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return input with NaN and infinities replaced; the infinities by default by the dtype's extreme values."""
def nan_to_num_(input: _Tensor, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None) -> _Tensor:
    """Write the result of `nan_to_num` into the first tensor, which keeps its layout."""
def nanmean(input: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the mean over ``dim`` of the elements that are not NaN."""
@typing.overload
def nanmedian(input: _Tensor) -> _Tensor:
    """Return the lower median, ignoring NaN; along ``dim`` with its index."""
@typing.overload
def nanmedian(input: _Tensor, dim: builtins.int, keepdim: builtins.bool = False) -> _ValuesIndices:
    """Return the lower median, ignoring NaN; along ``dim`` with its index."""
def nanquantile(input: _Tensor, q: _types.TensorLike, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: builtins.str = 'linear', out: _Tensor | None = None) -> _Tensor:
    """Return the `quantile` of the elements that are not NaN; arguments, result and errors as there."""
def nansum(input: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the sum over ``dim`` with NaN counted as 0."""
def narrow(input: _Tensor, dim: builtins.int, start: builtins.float, length: builtins.int) -> _Tensor:
    """Return ``length`` indices of a dim from ``start`` on.

    Args:
        start: the first index.
        length: how many.
    """
from sbpjax._core.functions.slicing import narrow_copy as narrow_copy
def native_batch_norm(input: _Tensor, weight: _Tensor, bias: _Tensor | None, running_mean: typing.Any, running_var: typing.Any, training: builtins.bool, momentum: builtins.float, eps: builtins.float) -> _NativeBatchNorm:
    """Return `nn.functional.batch_norm`, the batch's means and reciprocal deviations; these are empty in evaluation."""
def native_dropout(input: _Tensor, p: builtins.float, train: builtins.bool | None) -> builtins.tuple[_Tensor, _Tensor]:
    """Return `nn.functional.dropout`, and the mask of kept elements."""
def native_group_norm(input: _Tensor, weight: _Tensor, bias: _Tensor | None, N: builtins.int, C: builtins.int, HxW: builtins.int, group: builtins.int, eps: builtins.float) -> _NativeLayerNorm:
    """Return `nn.functional.group_norm` of `(N, C, ...)`, means and reciprocal deviations, both `(N, group)`."""
def native_layer_norm(input: _Tensor, normalized_shape: _types.IntOrInts, weight: _Tensor, bias: _Tensor | None, eps: builtins.float) -> _NativeLayerNorm:
    """Return `nn.functional.layer_norm`, the means and the reciprocal deviations."""
def ne(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where input != other."""
def neg(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return -input; not for bool."""
def neg_(input: _Tensor) -> _Tensor:
    """Write the result of `neg` into the first tensor, which keeps its layout."""
def negative(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return -input; not for bool."""
def negative_(input: _Tensor) -> _Tensor:
    """Write the result of `neg` into the first tensor, which keeps its layout."""
def new_empty(input: _Tensor, *size: _types.IntOrInts, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
    """Return `empty` of a size, with the dtype and layout of this tensor unless told otherwise."""
def new_full(input: _Tensor, size: collections.abc.Sequence[builtins.int], fill_value: _types.TensorLike, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
    """Return `full` of a size, with the dtype and layout of this tensor unless others are given."""
def new_ones(input: _Tensor, *size: _types.IntOrInts, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
    """Return `ones` of a size, with the dtype and layout of this tensor unless told otherwise."""
def new_tensor(input: _Tensor, data: _types.ArrayLike, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, requires_grad: builtins.bool = False, placement: _placement | None = None, sbp: _types.SbpLike | None = None) -> _Tensor:
    """Return `tensor` of data with this tensor's dtype unless one is given; on its device if that is local."""
def new_zeros(input: _Tensor, *size: _types.IntOrInts, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
    """Return `zeros` of a size, with the dtype and layout of this tensor unless told otherwise."""
newaxis: None
def nextafter(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the floats next to input in the direction of other; the gradient is that of input alone."""
from sbpjax._core.functions.boxes import nms as nms
from sbpjax import nn as nn
from sbpjax._core.tensor.tape.grad_mode import no_grad as no_grad
@typing.overload
def nonzero(input: _Tensor, as_tuple: typing.Literal[False] = False) -> _Tensor:
    """Return the indices of the elements that are not zero: one row each, or as one vector per dim.

    Args:
        as_tuple: one vector per dim instead.
    """
@typing.overload
def nonzero(input: _Tensor, as_tuple: typing.Literal[True]) -> builtins.tuple[_Tensor, ...]:
    """Return the indices of the elements that are not zero: one row each, or as one vector per dim.

    Args:
        as_tuple: one vector per dim instead.
    """
def nonzero_static(input: _Tensor, *, size: builtins.int, fill_value: builtins.int = -1, out: _Tensor | None = None) -> _Tensor:
    """Return ``size`` rows of `nonzero`, those beyond the number of nonzero elements filled with a number."""
def norm(input: _Tensor, p: builtins.float | builtins.str | None = 'fro', dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the p-norm over some dims; ``"fro"`` is the 2-norm, ``"nuc"`` the sum of a matrix's singular values.

    Args:
        p: a number, inf, -inf, ``"fro"`` or ``"nuc"``.
    """
from sbpjax._core.functions.statistics import norm_except_dim as norm_except_dim
def normal(mean: builtins.float = 0.0, std: builtins.float = 1.0, size: _types.IntOrInts | None = None, *, generator: _Generator | None = None, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return normal floats, of a size with numbers for mean and std, or of the shape of tensors given for them.

    Args:
        mean: a number, or a tensor.
        std: a number, or a tensor.
        size: the shape, where both are numbers.
    """
def normal_(input: _Tensor, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: _Generator | None = None) -> _Tensor:
    """Write normal floats.

    Args:
        mean: their mean.
        std: their deviation.
    """
def not_equal(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return where input != other."""
def nuclear_norm(input: _Tensor, dim: _types.IntOrInts = (-2, -1), keepdim: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return the sum of the singular values."""
from sbpjax._core.functions.elementwise import numel as numel
from sbpjax import one_embedding as one_embedding
def ones(*size: _types.IntOrInts, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return a tensor of ones; arguments as `zeros`."""
def ones_like(x: _Tensor, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, *, memory_format: _memory_format | None = None) -> _Tensor:
    """Return ones of the shape, dtype and layout of ``x``, unless others are given."""
from sbpjax import optim as optim
def orgqr(input: _Tensor, input2: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the first N columns of the product of Householder reflections, as LAPACK's ``orgqr``."""
def ormqr(input: _Tensor, tau: _Tensor, other: _Tensor, left: builtins.bool = True, transpose: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return the product of ``other`` with all columns of a product of Householder reflections, as LAPACK's ``ormqr``.

    Args:
        input: ``(..., M, K)``, the reflections below the diagonal, as `geqrf` returns them.
        tau: ``(..., K)``.
        other: ``(..., M, N)``, or ``(..., N, M)`` from the right.
        left: multiply from the left.
        transpose: multiply by the conjugate transpose.
    """
def outer(input: _Tensor, vec2: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the products of all pairs of two vectors' elements."""
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
def pca_lowrank(A: _Tensor, q: builtins.int | None = None, center: builtins.bool = True, niter: builtins.int = 2) -> _SVD:
    """Return `svd_lowrank` of A with the mean of every column taken off."""
def pdist(input: _Tensor, p: builtins.float = 2.0) -> _Tensor:
    """Return the p-norms of the differences of all pairs of rows of ``(N, M)``, the pairs in row-major order."""
def permute(input: _Tensor, *dims: _types.IntOrInts) -> _Tensor:
    """Return a view with the dims in another order.

    Args:
        dims: all dims in their new order.
    """
def permute_copy(input: _Tensor, *dims: _types.IntOrInts) -> _Tensor:
    """Return a view with the dims in another order.

    Args:
        dims: all dims in their new order.
    """
pi: builtins.float
def pinverse(A: _Tensor, rcond: builtins.float | None = None, hermitian: builtins.bool = False, *, atol: builtins.float | None = None, rtol: builtins.float | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the pseudoinverses; singular values up to ``max(atol, rtol * the largest)`` count as 0."""
from sbpjax import pipeline as pipeline
def pixel_shuffle(input: _Tensor, upscale_factor: builtins.int | builtins.tuple[builtins.int, builtins.int]) -> _Tensor:
    """Return (..., C * a * b, H, W) as (..., C, H * a, W * b); one factor is both.

    Args:
        upscale_factor: how much higher and wider, a number or two.
    """
def pixel_unshuffle(input: _Tensor, downscale_factor: builtins.int) -> _Tensor:
    """Return (..., C, H * r, W * r) as (..., C * r², H, W)."""
from sbpjax.sbp.placement import placement as placement
def poisson(input: _Tensor, *, generator: _Generator | None = None) -> _Tensor:
    """Return Poisson counts with the rates in ``input``."""
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
def polar(abs: _Tensor, angle: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return abs * e^(i angle); both are float32 or float64.

    The gradient of ``abs`` is along the result's direction, as in torch: 0 at 0, NaN at infinity.
    """
def polygamma(n: builtins.int, input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the n-th derivative of digamma."""
def positive(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input; not for bool."""
def pow(input: _Tensor, exponent: _types.TensorLike, *, inplace: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return ``input ** exponent``; either may be a number; with ``inplace=True`` written into ``input``."""
def prelu(input: _Tensor, weight: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input where positive, else weight * input.

    Args:
        input: ``(N, C, ...)``; with one dim or none, the channel dim counts as 1.
        weight: one slope, or one per channel (dim 1).
    """
preserve_format: _memory_format
def prod(input: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the product over ``dim``; its gradient is right with zeros too.

    Args:
        dtype: cast to it first; by default integers and bools go to int64.
    """
from sbpjax import profiler as profiler
def promote_types(type1: _types.DTypeLike, type2: _types.DTypeLike) -> _dtype:
    """Return the smallest dtype that holds both."""
def put(input: _Tensor, index: _Tensor, source: _Tensor, accumulate: builtins.bool = False) -> _Tensor:
    """Return input with elements of source written (or added) where a flat index names, counted from the end if < 0."""
def qr(input: _Tensor, some: builtins.bool = True, *, out: _Tensor | None = None) -> _QR:
    """Return ``linalg.qr(input, 'reduced' if some else 'complete')``."""
def quantile(input: _Tensor, q: _types.TensorLike, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: builtins.str = 'linear', out: _Tensor | None = None) -> _Tensor:
    """Return the q-quantiles along a dim, or of all elements; NaN where there is any NaN.

    Args:
        input: float32 or float64.
        q: a number in [0, 1], or several as a sequence or a vector, which make a new first dim. Of a tensor there is a
            gradient with ``"linear"``.
        dim: the dim, or None.
        keepdim: keep the dim with size 1.
        interpolation: between neighbours: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"`` or ``"nearest"``.
    """
def quick_gelu(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input * sigmoid(1.702 * input)."""
def rad2deg(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return radians as degrees."""
def rad2deg_(input: _Tensor) -> _Tensor:
    """Write the result of `rad2deg` into the first tensor, which keeps its layout."""
def rand(*size: _types.IntOrInts, generator: _Generator | None = None, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return uniform floats in [0, 1); arguments as `sbpjax.zeros`, and a `generator`."""
def rand_like(input: _Tensor, *, generator: _Generator | None = None, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
    """Return `rand` in the shape, dtype and layout of ``input``, unless told otherwise."""
def randint(low: builtins.float | None = None, high: builtins.float | None = None, size: _types.IntOrInts | None = None, *, generator: _Generator | None = None, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return integers in [low, high); ``randint(high, size)`` starts at 0.

    Args:
        low: the least value; 0 if only one number is given.
        high: the values stay below.
        size: the shape.
    """
def randint_like(input: _Tensor, low: builtins.int, high: builtins.int | None = None, *, generator: _Generator | None = None, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
    """Return `randint` in the shape, dtype and layout of ``input``, unless others are given."""
def randn(*size: _types.IntOrInts, generator: _Generator | None = None, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return floats of the standard normal distribution; arguments as `sbpjax.zeros`, and a `generator`."""
def randn_like(input: _Tensor, *, generator: _Generator | None = None, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
    """Return `randn` in the shape, dtype and layout of ``input``, unless told otherwise."""
def randperm(n: builtins.int, *, generator: _Generator | None = None, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return the integers below ``n`` in random order.

    Args:
        n: how many.
    """
def range(start: builtins.float = 0, end: _types.TensorLike | None = None, step: builtins.float = 1, *, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return ``start``, ``start + step``, … up to and including ``end``."""
from sbpjax._core.tensor.storage.reshaping import ravel as ravel
from sbpjax._core.functions.complex_numbers import real as real
def reciprocal(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return 1 / input."""
def reciprocal_(input: _Tensor) -> _Tensor:
    """Write the result of `reciprocal` into the first tensor, which keeps its layout."""
record: __NoDtype
def relu(input: _Tensor, inplace: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return max(input, 0), with gradient 0 at 0."""
def relu_(input: _Tensor) -> _Tensor:
    """Write the result of `relu` into the first tensor, which keeps its layout."""
def remainder(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the remainder of input / other with the sign of other (Python's ``%``)."""
def renorm(input: _Tensor, p: builtins.float, dim: builtins.int, maxnorm: builtins.float, *, out: _Tensor | None = None) -> _Tensor:
    """Return input with the slices of a dim scaled down to a p-norm of at most ``maxnorm``."""
def repeat(input: _Tensor, *repeats: _types.IntOrInts) -> _Tensor:
    """Return input repeated that often along each dim; surplus entries are new dims in front.

    Args:
        repeats: a number per dim, at least as many as dims.
    """
def repeat_interleave(input: _Tensor, repeats: _types.IntOrInts | None = None, dim: builtins.int | None = None, output_size: builtins.int | None = None) -> _Tensor:
    """Return each element (along a dim) repeated; ``repeats`` is a number, or one number per index.

    Alone, ``input`` is taken for the repeats of 0, 1, 2, …

    Args:
        repeats: a number, or a tensor of one per index.
        dim: the dim; None for the flattened tensor.
        output_size: the size of the result in the dim, if it is known.
    """
def reshape(input: _Tensor, *shape: _types.IntOrInts) -> _Tensor:
    """Return the elements in another shape: a view where strides allow it, else a copy.

    Args:
        shape: the sizes, as numbers or one tuple; one may be -1.
    """
def resize_as_(input: _Tensor, other: _Tensor, memory_format: _memory_format | None = None) -> _Tensor:
    """Give this tensor the size of another one."""
from sbpjax._core.functions.complex_numbers import resolve_conj as resolve_conj
from sbpjax._core.functions.complex_numbers import resolve_neg as resolve_neg
def result_type(tensor: _types.ArrayLike, other: _types.TensorLike) -> _dtype:
    """Return the dtype of an arithmetic op on two tensors or numbers."""
def rms_norm(input: _Tensor, normalized_shape: builtins.int | builtins.tuple[builtins.int, ...], weight: _Tensor | None = None, eps: builtins.float | None = None) -> _Tensor:
    """Return input divided by its root mean square over the last dims, times the weight.

    Args:
        input: ``(..., *normalized_shape)``, floats.
        normalized_shape: sizes of the last dims; by default those of the weight.
        weight: of ``normalized_shape``, or None.
        eps: added to the mean square; by default the smallest step of the computing dtype.
    """
from sbpjax._core.functions.oneflow.kernels import roc_auc_score as roc_auc_score
from sbpjax._core.functions.boxes import roi_align as roi_align
def roll(input: _Tensor, shifts: _types.IntOrInts, dims: _types.IntOrInts | None = None) -> _Tensor:
    """Return input with its elements moved along dims, those beyond the end coming in at the front.

    Args:
        shifts: how far, a number or one per dim.
        dims: one or several; by default the flattened tensor is rolled.
    """
def rot90(input: _Tensor, k: builtins.int = 1, dims: _types.IntOrInts = (0, 1), *, out: _Tensor | None = None) -> _Tensor:
    """Return input turned by k quarter turns in the plane of two dims."""
def round(input: _Tensor, decimals: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Return input rounded half to even at ``decimals`` digits; integers stay.

    Args:
        decimals: how many decimals are kept; negative ones round to tens, hundreds, …
    """
def round_(input: _Tensor, decimals: builtins.int = 0) -> _Tensor:
    """Write the result of `round` into the first tensor, which keeps its layout."""
def row_stack(tensors: collections.abc.Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """Return the arrays one below the other; vectors are rows."""
from sbpjax._core.functions.layers.activation import rrelu as rrelu
from sbpjax._core.functions.layers.activation import rrelu_ as rrelu_
def rsqrt(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return 1 / sqrt(input)."""
def rsqrt_(input: _Tensor) -> _Tensor:
    """Write the result of `rsqrt` into the first tensor, which keeps its layout."""
def rsub(input: _Tensor, other: _types.TensorLike, *, alpha: _types.TensorLike = 1) -> _Tensor:
    """Return other - alpha * input."""
from sbpjax import run as run
def save(obj: _types.ArrayLike, path: builtins.str | os.PathLike, global_dst_rank: builtins.int | None = None) -> None:
    """Write an object as the directory `path`; an older one there is replaced at the end.

    In a job of several processes, a state without global tensors is written by each process that calls this, and none
    waits for another: ``if rank == 0: save(model.state_dict(), path)``. A state whose global tensors are all on devices
    of one process is written by that one. Any other state is written by all processes together, which all call this.
    `sbpjax.checkpoint.save` is always called by all processes.

    Args:
        obj: tensors, NumPy arrays, containers and plain values (`sbpjax.checkpoint.save` lists them); modules and
            optimizers are saved by their state.
        path: the directory.
        global_dst_rank: the rank that writes global tensors, as OneFlow has it; here every process writes its own
            shards, so the number is only checked.
    """
from sbpjax import sbp as sbp
def scalar_tensor(s: builtins.float | builtins.complex | _Tensor, *, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
    """Return a 0-d tensor, of the default dtype unless one is given."""
def scatter(input: _Tensor, dim: builtins.int, index: _Tensor, src: _Tensor, *, reduce: builtins.str | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return input with ``out[index[i][j]][j] = src[i][j]`` for dim 0, and so on for other dims.

    Args:
        input: array.
        dim: the dim that is indexed.
        index: integers, of as many dims, in no other dim larger than ``input``.
        src: a tensor at least as large as the index, or a number.
        reduce: None writes, ``"add"`` and ``"multiply"`` combine with the value of ``input``.
    """
def scatter_add(input: _Tensor, dim: builtins.int, index: _Tensor, src: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input with ``out[index[i][j]][j] += src[i][j]`` for dim 0, and so on for other dims.

    Args:
        index: integers, of as many dims.
        src: the dtype of ``input``, at least as large as the index.
    """
def scatter_nd(index: _Tensor, update: _Tensor, shape: _types.IntOrInts) -> _Tensor:
    """Return zeros of ``shape`` with the updates added at the places of an nd-index."""
def scatter_reduce(input: _Tensor, dim: builtins.int, index: _Tensor, src: _Tensor, reduce: builtins.str, *, include_self: builtins.bool = True, out: _Tensor | None = None) -> _Tensor:
    """Return input with the elements of src that meet at one place reduced there.

    Args:
        input: array.
        dim: the dim that is indexed.
        index: as for `scatter`.
        src: array of input's dtype.
        reduce: ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``; at equal extremes the gradient is shared.
        include_self: whether the element of input takes part.
    """
def searchsorted(sorted_sequence: _Tensor, values: _types.TensorLike, out_int32: builtins.bool = False, right: builtins.bool = False, *, side: builtins.str | None = None, sorter: _Tensor | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return where each value would be inserted to keep a sequence sorted.

    Args:
        sorted_sequence: ``(..., N)``, sorted along its last dim; in any order with ``sorter``.
        values: the values to insert.
        out_int32: give int32 indices.
        right: insert after equal elements.
        side: ``"right"`` is ``right=True``.
        sorter: ``(..., N)`` indices that sort the sequence.
    """
from sbpjax._core.tensor.creation.generator import seed as seed
from sbpjax._core.tensor.storage.views import select as select
def select_copy(input: _Tensor, dim: builtins.int, index: builtins.int) -> _Tensor:
    """Return one index of a dim; the dim goes away."""
def select_scatter(input: _Tensor, src: _Tensor, dim: builtins.int, index: builtins.int, *, out: _Tensor | None = None) -> _Tensor:
    """Return input with src at one index of a dim."""
def selu(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the self-normalising elu."""
def selu_(input: _Tensor) -> _Tensor:
    """Write the result of `selu` into the first tensor, which keeps its layout."""
from sbpjax import serving as serving
def set_default_device(device: _types.DeviceLike) -> None:
    """Set the default device of new tensors; None goes back to JAX's own choice."""
def set_default_dtype(d: builtins.int) -> None:
    """Set the dtype that Python floats become."""
def set_default_tensor_type(tensor_type: builtins.type | builtins.str) -> None:
    """Set the default dtype by a tensor type, ``sbpjax.DoubleTensor`` or ``"torch.DoubleTensor"``."""
from sbpjax._core.functions.settings import set_float32_matmul_precision as set_float32_matmul_precision
from sbpjax._core.functions.settings import set_flush_denormal as set_flush_denormal
from sbpjax._core.tensor.tape.grad_mode import set_grad_enabled as set_grad_enabled
from sbpjax._core.functions.settings import set_num_interop_threads as set_num_interop_threads
from sbpjax._core.functions.settings import set_num_threads as set_num_threads
def set_printoptions(precision: builtins.int | None = None, threshold: builtins.int | None = None, edgeitems: builtins.int | None = None, linewidth: builtins.int | None = None, profile: builtins.str | None = None, sci_mode: builtins.bool | None = None) -> None:
    """Set how tensors print; ``profile`` is ``"default"``, ``"short"`` or ``"full"``."""
def set_rng_state(state: builtins.object) -> None:
    """Set the default generator's state."""
def sgn(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input / |input|, 0 at 0; of real numbers the sign."""
short: _dtype
def sigmoid(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return 1 / (1 + e**-input)."""
def sigmoid_(input: _Tensor) -> _Tensor:
    """Write the result of `sigmoid` into the first tensor, which keeps its layout."""
def sign(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return -1, 0 or 1 by the sign of input; NaN gives 0."""
def signbit(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return where the sign is minus, that of -0.0 too."""
def silu(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input * sigmoid(input)."""
def simulate(ranks: builtins.int) -> builtins.object:
    """Return a decorator that runs a function once per rank, each in a thread, and returns the list of results.

    Args:
        ranks: the number of ranks; as many devices are needed.
    """
def sin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the sine."""
def sin_(input: _Tensor) -> _Tensor:
    """Write the result of `sin` into the first tensor, which keeps its layout."""
def sinc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return sin(πinput) / (πinput), and 1 at 0."""
def sinc_(input: _Tensor) -> _Tensor:
    """Write the result of `sinc` into the first tensor, which keeps its layout."""
def sinh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the hyperbolic sine."""
def sinh_(input: _Tensor) -> _Tensor:
    """Write the result of `sinh` into the first tensor, which keeps its layout."""
def slice(input: _Tensor, slice_tup_list: collections.abc.Sequence[collections.abc.Sequence[builtins.int]]) -> _Tensor:
    """Return the part that one ``(start, stop, step)`` per dim names; None is the default of each."""
def slice_scatter(input: _Tensor, src: _Tensor, dim: builtins.int = 0, start: builtins.int | None = None, end: builtins.int | None = None, step: builtins.int = 1, *, out: _Tensor | None = None) -> _Tensor:
    """Return input with src in a slice of a dim."""
def slice_update(input: _Tensor, update: _Tensor, slice_tup_list: collections.abc.Sequence[collections.abc.Sequence[builtins.int]]) -> _Tensor:
    """Write a tensor into the part that one ``(start, stop, step)`` per dim names, and return the whole."""
def slogdet(A: _Tensor, *, out: _Tensor | None = None) -> _SignLogabsdet:
    """Return the sign (a unit complex number) and the logarithm of the absolute value of determinants."""
def softmax(input: _Tensor, dim: builtins.int | None = None, dtype: _types.DTypeLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return e**input normalised to sum 1 along ``dim``.

    Args:
        input: floats; any sbp.
        dim: the dim of the classes; by default 1, or 0 of tensors with 0, 1 or 3 dims.
    """
def softplus(input: _Tensor, beta: builtins.float = 1.0, threshold: builtins.float = 20.0, *, out: _Tensor | None = None) -> _Tensor:
    """Return log(1 + e**(beta * input)) / beta, and input where beta * input is above the threshold.

    Args:
        beta: how sharp the bend is.
        threshold: input itself is returned where beta * input is larger.
    """
def softshrink(input: _Tensor, lambd: builtins.float = 0.5, inplace: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return input moved by lambd towards 0, and 0 where |input| <= lambd."""
def softsign(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input / (1 + |input|)."""
def sort(input: _Tensor, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False, *, out: _Tensor | None = None) -> _ValuesIndices:
    """Return input sorted along ``dim`` and the int64 indices of its elements; always stable.

    Args:
        descending: from the largest on.
        stable: accepted; sorting is stable always.
    """
sparse_coo: _layout
sparse_csr: _layout
from sbpjax import special as special
def split(input: _Tensor, split_size_or_sections: _types.IntOrInts | None = None, dim: builtins.int = 0, *, split_size: builtins.int | None = None) -> builtins.tuple[_Tensor, ...]:
    """Return views of consecutive parts of a dim: of one size (the last may be shorter), or of the sizes listed.

    Args:
        split_size_or_sections: one size, or a list of sizes.
        split_size: the size, by OneFlow's name.
    """
def split_copy(input: _Tensor, split_size_or_sections: _types.IntOrInts | None = None, dim: builtins.int = 0, *, split_size: builtins.int | None = None) -> builtins.tuple[_Tensor, ...]:
    """Return views of consecutive parts of a dim: of one size (the last may be shorter), or of the sizes listed.

    Args:
        split_size_or_sections: one size, or a list of sizes.
        split_size: the size, by OneFlow's name.
    """
def split_with_sizes(input: _Tensor, split_sizes: collections.abc.Sequence[builtins.int], dim: builtins.int = 0) -> builtins.tuple[_Tensor, ...]:
    """Return views of parts of a dim of the sizes listed."""
def split_with_sizes_copy(input: _Tensor, split_sizes: collections.abc.Sequence[builtins.int], dim: builtins.int = 0) -> builtins.tuple[_Tensor, ...]:
    """Return views of parts of a dim of the sizes listed."""
def sqrt(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the square root."""
def sqrt_(input: _Tensor) -> _Tensor:
    """Write the result of `sqrt` into the first tensor, which keeps its layout."""
def square(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input * input."""
def square_(input: _Tensor) -> _Tensor:
    """Write the result of `square` into the first tensor, which keeps its layout."""
def square_relu(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return max(input, 0)²."""
def squeeze(input: _Tensor, dim: _types.IntOrInts | None = None) -> _Tensor:
    """Return a view without dims of size 1: all of them, or those named."""
def squeeze_copy(input: _Tensor, dim: _types.IntOrInts | None = None) -> _Tensor:
    """Return a view without dims of size 1: all of them, or those named."""
def stack(tensors: collections.abc.Sequence[_Tensor], dim: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Return arrays of one shape along a new dim.

    Args:
        dim: where the new dim is in the result.
    """
from sbpjax._core.inspect.stages import stages as stages
def std(input: _Tensor, dim: _types.IntOrInts | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: builtins.int = 1, out: _Tensor | None = None) -> _Tensor:
    """Return the standard deviation, over ``n - correction``.

    Args:
        unbiased: the older form of ``correction``: 1 if true, 0 if not.
        correction: subtracted from the number of elements.
    """
def std_mean(input: _Tensor, dim: _types.IntOrInts | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: builtins.int = 1) -> builtins.tuple[_Tensor, _Tensor]:
    """Return standard deviation and mean."""
from sbpjax._core.functions.signal import stft as stft
strided: __strided
def sub(input: _Tensor, other: _types.TensorLike, *, alpha: _types.TensorLike = 1, inplace: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return input - alpha * other; not for bools.

    Args:
        alpha: factor of ``other``; a float only if the result is one.
    """
def sub_(input: _Tensor, other: _types.TensorLike, alpha: _types.TensorLike = 1) -> _Tensor:
    """Write the result of `sub` into the first tensor, which keeps its layout."""
def subtract(input: _Tensor, other: _types.TensorLike, *, alpha: _types.TensorLike = 1, inplace: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return input - alpha * other; not for bools.

    Args:
        alpha: factor of ``other``; a float only if the result is one.
    """
def subtract_(input: _Tensor, other: _types.TensorLike, alpha: _types.TensorLike = 1) -> _Tensor:
    """Write the result of `sub` into the first tensor, which keeps its layout."""
def sum(input: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the sum over ``dim`` (None or () for all).

    Args:
        input: any dtype.
        dim: dim, dims or None.
        dtype: cast to it before summing; by default integers and bools go to int64.
    """
def summary(model: _Module, *args: builtins.object, **kwargs: builtins.object) -> _Summary:
    """Return the modules of a model with their results, parameters, sbp and bytes per device; nothing runs.

    The forward is called on tensors without data, in evaluation mode, and leaves the model as it was.

    Args:
        model: the model, its tensors local, global, or without data.
        *args: example arguments of its forward: tensors, `TensorSpec`, `jax.ShapeDtypeStruct`, other values; without
            any the results are left out.
        **kwargs: the same by name.
    """
def svd(input: _Tensor, some: builtins.bool = True, compute_uv: builtins.bool = True, *, out: _Tensor | None = None) -> _SVD:
    """Return U, S and V with ``input = U diag(S) V^H``."""
def svd_lowrank(A: _Tensor, q: builtins.int | None = 6, niter: builtins.int | None = 2, M: _Tensor | None = None) -> _SVD:
    """Return U, S, V with about ``A - M = U diag(S) V^H`` of rank ``q``, by random projections.

    Args:
        A: ``(..., M, N)``.
        q: the rank, a little more than is expected.
        niter: rounds of subspace iteration.
        M: taken off A first.
    """
def swapaxes(input: _Tensor, dim0: builtins.int = 0, dim1: builtins.int | None = None, *, perm: _types.IntOrInts | None = None) -> _Tensor:
    """Return a view with two dims exchanged; or, as in OneFlow, all in the order of ``perm``.

    Args:
        dim0: one dim.
        dim1: the other.
        perm: all dims in their new order.
    """
def swapdims(input: _Tensor, dim0: builtins.int = 0, dim1: builtins.int | None = None, *, perm: _types.IntOrInts | None = None) -> _Tensor:
    """Return a view with two dims exchanged; or, as in OneFlow, all in the order of ``perm``.

    Args:
        dim0: one dim.
        dim1: the other.
        perm: all dims in their new order.
    """
from sbpjax._core.tensor.storage.views import t as t
def t_copy(input: _Tensor) -> _Tensor:
    """Return the transpose of a matrix; fewer dims stay."""
def take(input: _Tensor, index: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return elements of the flattened input; negative indices count from the end."""
def take_along_dim(input: _Tensor, indices: _Tensor, dim: builtins.int | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return `gather` with input and index broadcast against each other, also from the end; without ``dim`` both flat.

    Args:
        indices: integers, which broadcast with ``input`` but for the dim.
        dim: the dim; None for the flattened tensor.
    """
def tan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the tangent."""
def tan_(input: _Tensor) -> _Tensor:
    """Write the result of `tan` into the first tensor, which keeps its layout."""
def tanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the hyperbolic tangent."""
def tanh_(input: _Tensor) -> _Tensor:
    """Write the result of `tanh` into the first tensor, which keeps its layout."""
def tensor(data: _types.ArrayLike, *, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False) -> _Tensor:
    """Return a tensor with a copy of ``data``.

    Args:
        data: numbers, nested lists of them, a NumPy array, or a tensor.
        dtype: the dtype; by default the data's (Python floats: the default dtype, integers: int64).
        device: the device of a local tensor.
        placement: the placement of a global tensor; comes with ``sbp``.
        sbp: the nd-sbp of a global tensor; ``data`` is the logical value.
    """
tensor_buffer: __NoDtype
def tensor_buffer_to_tensor(*args: builtins.object, **options: builtins.object) -> builtins.object:
    """Raise: tensors of tensors of several shapes do not exist here."""
def tensor_scatter_nd_update(tensor: _Tensor, indices: _Tensor, updates: _Tensor) -> _Tensor:
    """Return tensor with the updates written at the places of an nd-index."""
def tensor_split(input: _Tensor, indices_or_sections: _types.IntOrInts | None = None, dim: builtins.int = 0, *, indices: _types.IntOrInts | None = None, sections: typing.Any = None) -> builtins.tuple[_Tensor, ...]:
    """Return views of parts of a dim: a number of nearly equal ones, or cut at the indices."""
def tensor_to_tensor_buffer(*args: builtins.object, **options: builtins.object) -> builtins.object:
    """Raise: tensors of tensors of several shapes do not exist here."""
def tensordot(a: _Tensor, b: _Tensor, dims: _types.IntOrInts = 2, out: _Tensor | None = None) -> _Tensor:
    """Return the contraction of the last ``dims`` dims of ``a`` with the first of ``b``, or of the dims listed.

    A contracted dim of size 1 broadcasts to the other's size.
    """
from sbpjax import testing as testing
def threshold(input: _Tensor, threshold: builtins.float, value: builtins.float, *, out: _Tensor | None = None) -> _Tensor:
    """Return input where it is above the threshold, else ``value``."""
def threshold_(input: _Tensor, threshold: builtins.float, value: builtins.float) -> _Tensor:
    """Write the result of `threshold` into the first tensor, which keeps its layout."""
def tile(input: _Tensor, *dims: _types.IntOrInts) -> _Tensor:
    """Return input repeated along its last dims; fewer numbers than dims leave the first dims alone.

    Args:
        dims: a number per dim.
    """
def to_dlpack(tensor: _Tensor) -> builtins.object:
    """Return the DLPack capsule of a tensor."""
def to_global(input: _Tensor, placement: _placement | None = None, sbp: _types.SbpLike | None = None, *, grad_sbp: _types.SbpLike | None = None, check_meta: builtins.bool = True, check_values: builtins.bool | None = None, copy: builtins.bool = False) -> _Tensor:
    """Return this tensor as a global tensor on ``placement`` in ``sbp``.

    In a job of several processes every process's local tensor is one part: under split the parts are joined, under
    partial_sum added, under broadcast they are equal. To divide a whole that every process holds, make it broadcast
    first: ``x.to_global(placement, broadcast).to_global(sbp=split(0))``.

    Args:
        self: a local or global tensor.
        placement: the target placement; a global tensor's own by default.
        sbp: the target nd-sbp; a global tensor's own by default.
        grad_sbp: the nd-sbp of the gradient on the way back; by default the source's.
        check_meta: whether processes compare shape and dtype of their local tensors first; without it they are taken to
            be equal.
        check_values: processes compare the values of local tensors that become broadcast, by a digest of them (about
            1 ms per MB). Where they differ, the first rank's are taken with a warning; True raises instead, and False
            does not compare. Nothing is compared under ``check_meta=False`` or ``SBPJAX_CHECK=off``.
        copy: return a new tensor even if nothing changes.
    """
from sbpjax._core.tensor.creation.convert import to_local as to_local
def topk(input: _Tensor, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True, *, out: _Tensor | None = None) -> _ValuesIndices:
    """Return the k largest (or smallest) elements along ``dim``, in order, and their int64 indices.

    Args:
        k: how many.
        largest: whether the largest, not the smallest.
        sorted: accepted; they are in order always.
    """
def trace(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the sum of the main diagonal of a matrix; integers add up in int64."""
from sbpjax import train as train
def transpose(input: _Tensor, dim0: builtins.int = 0, dim1: builtins.int | None = None, *, perm: _types.IntOrInts | None = None) -> _Tensor:
    """Return a view with two dims exchanged; or, as in OneFlow, all in the order of ``perm``.

    Args:
        dim0: one dim.
        dim1: the other.
        perm: all dims in their new order.
    """
def transpose_copy(input: _Tensor, dim0: builtins.int = 0, dim1: builtins.int | None = None, *, perm: _types.IntOrInts | None = None) -> _Tensor:
    """Return a view with two dims exchanged; or, as in OneFlow, all in the order of ``perm``.

    Args:
        dim0: one dim.
        dim1: the other.
        perm: all dims in their new order.
    """
def trapezoid(y: _Tensor, x: _Tensor | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1) -> _Tensor:
    """Return the integral along a dim by trapezoids, between samples ``dx`` apart or at x."""
def trapz(y: _Tensor, x: _Tensor | None = None, *, dx: builtins.float = 1.0, dim: builtins.int = -1) -> _Tensor:
    """Return the integral along a dim by trapezoids, between samples ``dx`` apart or at x."""
def triangular_solve(b: _Tensor, A: _Tensor, upper: builtins.bool = True, transpose: builtins.bool = False, unitriangular: builtins.bool = False, *, out: _Tensor | None = None) -> _SolutionCoefficient:
    """Return ``(linalg.solve_triangular(A.mT if transpose else A, b, upper=upper != transpose, unitriangular=unitriangular), A.clone())``."""
def tril(input: _Tensor, diagonal: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Return the lower triangle of the last two dims, up to ``diagonal``; the rest is 0.

    Args:
        diagonal: the last one that is kept; 0 is the main one, positive ones are above it.
    """
def tril_indices(row: builtins.int, col: builtins.int, offset: builtins.int = 0, *, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, layout: _layout | None = None) -> _Tensor:
    """Return the rows and the columns of the lower triangle's elements, as two rows."""
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
def triu(input: _Tensor, diagonal: builtins.int = 0, *, out: _Tensor | None = None) -> _Tensor:
    """Return the upper triangle of the last two dims, from ``diagonal`` on; the rest is 0.

    Args:
        diagonal: the first one that is kept; 0 is the main one, positive ones are above it.
    """
def triu_indices(row: builtins.int, col: builtins.int, offset: builtins.int = 0, *, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, layout: _layout | None = None) -> _Tensor:
    """Return the rows and the columns of the upper triangle's elements, as two rows."""
def true_divide(input: _Tensor, other: _types.TensorLike, *, rounding_mode: builtins.str | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return input / other.

    Args:
        input: any array or number.
        other: any array or number, broadcast with ``input``.
        rounding_mode: None divides truly (integers become float32); ``"trunc"`` rounds towards zero and ``"floor"``
            down, both keep an integer dtype and have gradient zero.
    """
def true_divide_(input: _Tensor, other: _types.TensorLike, rounding_mode: builtins.str | None = None) -> _Tensor:
    """Write the result of `div` into the first tensor, which keeps its layout."""
def trunc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return input rounded towards zero; integers stay."""
def trunc_(input: _Tensor) -> _Tensor:
    """Write the result of `trunc` into the first tensor, which keeps its layout."""
def typename(obj: _types.ArrayLike) -> builtins.str:
    """Return the name of an object's type; of a tensor as PyTorch writes it."""
uint16: _dtype
uint32: _dtype
uint64: _dtype
uint8: _dtype
def unbind(input: _Tensor, dim: builtins.int = 0) -> builtins.tuple[_Tensor, ...]:
    """Return a view of every index of a dim."""
def unbind_copy(input: _Tensor, dim: builtins.int = 0) -> builtins.tuple[_Tensor, ...]:
    """Return a view of every index of a dim."""
def unflatten(input: _Tensor, dim: builtins.int, sizes: collections.abc.Sequence[builtins.int]) -> _Tensor:
    """Return one dim as several."""
def unfold_copy(input: _Tensor, dimension: builtins.int, size: builtins.int, step: builtins.int) -> _Tensor:
    """Return a view of all windows of ``size`` along a dim, every ``step``; the window is a new last dim."""
@typing.overload
def unique(input: _Tensor, sorted: builtins.bool = True, *, dim: builtins.int | None = None, dtype: _types.DTypeLike | None = None) -> _Tensor:
    """Return the distinct elements (or slices of a dim), sorted; optionally each element's index in them, and counts.

    Indices and counts are of int64 (int32 under OneFlow's name, as there), or of the given dtype.

    Args:
        sorted: accepted; elements are sorted always.
        return_inverse: return also where each element is among them.
        return_counts: return also how often each occurs.
        dim: the dim whose slices are compared; None for single elements.
        dtype: the dtype of indices and counts.
    """
@typing.overload
def unique(input: _Tensor, sorted: builtins.bool = True, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int | None = None, *, dtype: _types.DTypeLike | None = None) -> builtins.tuple[_Tensor, ...]:
    """Return the distinct elements (or slices of a dim), sorted; optionally each element's index in them, and counts.

    Indices and counts are of int64 (int32 under OneFlow's name, as there), or of the given dtype.

    Args:
        sorted: accepted; elements are sorted always.
        return_inverse: return also where each element is among them.
        return_counts: return also how often each occurs.
        dim: the dim whose slices are compared; None for single elements.
        dtype: the dtype of indices and counts.
    """
@typing.overload
def unique_consecutive(input: _Tensor, *, dim: builtins.int | None = None) -> _Tensor:
    """Return the elements (along a dim, the slices) that differ from their predecessor."""
@typing.overload
def unique_consecutive(input: _Tensor, return_inverse: builtins.bool = False, return_counts: builtins.bool = False, dim: builtins.int | None = None) -> builtins.tuple[_Tensor, ...]:
    """Return the elements (along a dim, the slices) that differ from their predecessor."""
from sbpjax import unittest as unittest
def unravel_index(indices: _Tensor, shape: _types.IntOrInts) -> builtins.tuple[_Tensor, ...]:
    """Return flat indices as one index per dim of a shape."""
def unsafe_chunk(input: _Tensor, chunks: builtins.int, dim: builtins.int = 0) -> builtins.tuple[_Tensor, ...]:
    """Return at most ``chunks`` views of equal parts of a dim; the last may be shorter.

    Args:
        chunks: how many at most.
    """
def unsafe_split(input: _Tensor, split_size: builtins.int, dim: builtins.int = 0) -> builtins.tuple[_Tensor, ...]:
    """Return `split` into parts of one size."""
from sbpjax._core.tensor.storage.views import unsqueeze as unsqueeze
def unsqueeze_copy(input: _Tensor, dim: builtins.int) -> _Tensor:
    """Return a view with a new dim of size 1.

    Args:
        dim: where the new dim is in the result.
    """
from sbpjax._core.functions.settings import use_deterministic_algorithms as use_deterministic_algorithms
from sbpjax import utils as utils
def vander(x: _Tensor, N: builtins.int | None = None, increasing: builtins.bool = False) -> _Tensor:
    """Return the powers 0 to N - 1 of the last dim's elements along a new last dim; those of integers are int64."""
def var(input: _Tensor, dim: _types.IntOrInts | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: _types.IntOrInts = 1, out: _Tensor | None = None) -> _Tensor:
    """Return the variance, over ``n - correction``.

    Args:
        unbiased: the older form of ``correction``: 1 if true, 0 if not.
        correction: subtracted from the number of elements.
    """
def var_mean(input: _Tensor, dim: _types.IntOrInts | None = None, unbiased: builtins.bool | None = None, keepdim: builtins.bool = False, *, correction: builtins.int = 1) -> builtins.tuple[_Tensor, _Tensor]:
    """Return variance and mean."""
def vdot(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return the dot product of two vectors, the first conjugated."""
def view(input: _Tensor, *shape: _types.IntOrInts) -> _Tensor:
    """Return the same elements in another shape, sharing storage; with a dtype, the same bytes read as that dtype.

    Args:
        shape: the sizes, as numbers or one tuple; one may be -1. Or a dtype.
    """
from sbpjax._core.functions.complex_numbers import view_as_complex as view_as_complex
def view_as_complex_copy(input: _Tensor) -> _Tensor:
    """Return a view of a real tensor, whose last dim of size 2 holds real and imaginary parts, as complex numbers."""
from sbpjax._core.functions.complex_numbers import view_as_real as view_as_real
def view_as_real_copy(input: _Tensor) -> _Tensor:
    """Return a view of a complex tensor with real and imaginary parts along a new last dim."""
def view_copy(input: _Tensor, *shape: _types.IntOrInts) -> _Tensor:
    """Return the same elements in another shape, sharing storage; with a dtype, the same bytes read as that dtype.

    Args:
        shape: the sizes, as numbers or one tuple; one may be -1. Or a dtype.
    """
from sbpjax import vision as vision
from sbpjax._core.inspect.explain import visualize as visualize
def vmap(func: typing.Any, in_dims: builtins.int = 0, out_dims: builtins.int = 0, randomness: builtins.str = 'error', *, chunk_size: builtins.int | None = None) -> collections.abc.Callable:
    """Return a function that runs ``func`` once per example of a batch, as one program.

    Args:
        func: a function of tensors that returns tensors, nested as it likes.
        in_dims: which dim of each input counts the examples: an int, or a structure like the inputs with ints and None
            (an input that all examples share).
        out_dims: where that dim goes in each output.
        randomness: ``"error"`` refuses random ops, ``"same"`` draws the same numbers for every example,
            ``"different"`` draws anew for each.
        chunk_size: run so many examples at a time.
    """
def vsplit(input: _Tensor, indices_or_sections: _types.IntOrInts) -> builtins.tuple[_Tensor, ...]:
    """Return `tensor_split` along dim 0."""
def vstack(tensors: collections.abc.Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """Return the arrays one below the other; vectors are rows."""
@typing.overload
def where(condition: _Tensor) -> builtins.tuple[_Tensor, ...]:
    """Return ``input`` where the condition holds, else ``other``; alone, the indices where it holds.

    Args:
        condition: bools, or integers that hold if they are not 0.
    """
@typing.overload
def where(condition: _Tensor, input: _types.TensorLike, other: _types.TensorLike, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``input`` where the condition holds, else ``other``; alone, the indices where it holds.

    Args:
        condition: bools, or integers that hold if they are not 0.
    """
def wrap_jax(fn: typing.Callable[..., builtins.object], sbp_rule: builtins.str | collections.abc.Sequence[builtins.str] | None = None, *, backward: typing.Any = None, backward_rule: builtins.str | collections.abc.Sequence[builtins.str] | None = None, name: builtins.str | None = None) -> _Wrapped:
    """Return a function of JAX arrays as an op on tensors.

    Args:
        fn: a function of arrays, nested as it likes; arguments that are no arrays are static.
        sbp_rule: how it may be divided: signatures on one mesh axis such as ``"S0, B -> S0"``. Dims that are split must
            divide evenly. None plans the primitives that it is made of.
        backward: its gradient, if JAX's own is not wanted or does not exist: takes the inputs and the cotangents of the
            outputs and returns the cotangents of the inputs.
        backward_rule: how that may be divided: one sbp per input, then per cotangent.
        name: its name in plans and messages.
    """
def xlogy(input: _Tensor, other: _types.TensorLike, *, out: _Tensor | None = None, inplace: builtins.bool = False) -> _Tensor:
    """Return input * log(other), and 0 where input is 0 and other is not NaN."""
def xlogy_(input: _Tensor, other: _types.TensorLike) -> _Tensor:
    """Write the result of `xlogy` into the first tensor, which keeps its layout."""
from sbpjax._core.tensor.storage.inplace import zero_ as zero_
def zeros(*size: _types.IntOrInts, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return a tensor of zeros.

    Args:
        dtype: the dtype; the default dtype if None.
        device: the device of a local tensor.
        placement: the placement of a global tensor; comes with ``sbp``.
        sbp: the nd-sbp of a global tensor.
    """
def zeros_like(x: _Tensor, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, *, memory_format: _memory_format | None = None) -> _Tensor:
    """Return zeros of the shape, dtype and layout of ``x``, unless others are given."""
