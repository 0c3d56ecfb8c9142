"""Written by `make stubs` from the live package; do not edit."""
# OneFlow's op-level functions, under the names its own programs call: ``flow._C.matmul(a, b, transpose_b=True)``.

import __future__
import builtins
import collections.abc
import sbpjax.tensor.types as _types
from sbpjax.tensor.mode import Mode as _Mode
from sbpjax.tensor.tensor import Tensor as _Tensor
from sbpjax.sbp.placement import placement as _placement

from sbpjax.errors import OpError as OpError
from sbpjax.tensor.tensor import Tensor as Tensor
def amp_black_identity(x: _Tensor) -> _Tensor:
    """Return ``x``, in float32 under `autocast`."""
def amp_white_identity(x: _Tensor) -> _Tensor:
    """Return ``x``, in the lower precision under `autocast`."""
annotations: __future__._Feature
def bias_add(x: _Tensor, bias: _Tensor, axis: builtins.int = 1) -> _Tensor:
    """Return ``x`` with a vector added along dim ``axis``."""
def binary_cross_entropy_loss(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return `nn.functional.binary_cross_entropy`."""
def binary_cross_entropy_with_logits_loss(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, pos_weight: _Tensor | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return `nn.functional.binary_cross_entropy_with_logits`."""
def broadcast_like(x: _Tensor, like: _Tensor, broadcast_axes: collections.abc.Sequence[builtins.int] = ()) -> _Tensor:
    """Return ``x`` expanded to the shape of ``like``.

    Args:
        x: the tensor.
        like: gives the shape, not the layout.
        broadcast_axes: the dims of the result that ``x`` does not have; by default ``x``'s dims are the last ones.
    """
def cross_entropy(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, ignore_index: builtins.int = -100, reduction: builtins.str = 'mean', label_smoothing: builtins.float = 0.0) -> _Tensor:
    """Return `nn.functional.cross_entropy`."""
def gather(x: _Tensor, indices: _Tensor, axis: builtins.int = 0) -> _Tensor:
    """Return slices of ``x`` along dim ``axis``; the dims of ``indices`` replace that dim."""
def global_arange(start: builtins.float, end: _types.TensorLike | None = None, step: builtins.float = 1, *, dtype: _types.DTypeLike | None = None, placement: _placement, sbp: _types.SbpLike) -> _Tensor:
    """Return `sbpjax.arange` on a placement."""
def identity(x: _Tensor) -> _Tensor:
    """Return a tensor with the value and the layout of ``x``, on the tape."""
def l1_loss(input: _Tensor, target: _Tensor, reduction: builtins.str = 'mean') -> _Tensor:
    """Return `nn.functional.l1_loss`."""
def layer_norm(x: _Tensor, begin_norm_axis: builtins.int, begin_params_axis: builtins.int, epsilon: builtins.float) -> _Tensor:
    """Return ``x`` normalised over its dims from ``begin_norm_axis`` on."""
def layer_norm_affine(x: _Tensor, gamma: _Tensor, beta: _Tensor, begin_norm_axis: builtins.int, begin_params_axis: builtins.int, epsilon: builtins.float) -> _Tensor:
    """Return ``x`` normalised over its dims from ``begin_norm_axis`` on, times gamma plus beta."""
from sbpjax.errors import message as message
mode: _Mode
def mse_loss(input: _Tensor, target: _Tensor, reduction: builtins.str = 'mean') -> _Tensor:
    """Return `nn.functional.mse_loss`."""
def normalization(x: _Tensor, moving_mean: _Tensor | None = None, moving_variance: _Tensor | None = None, gamma: _Tensor | None = None, beta: _Tensor | None = None, axis: builtins.int = 1, epsilon: builtins.float = 1e-05, momentum: builtins.float = 0.1, is_training: builtins.bool = False) -> _Tensor:
    """Return ``x`` normalised per channel; if training by its own statistics, which move the given ones."""
def rms_norm(x: _Tensor, weight: _Tensor | None = None, normalized_shape: _types.IntOrInts | None = None, epsilon: builtins.float = 1e-06) -> _Tensor:
    """Return ``x`` over the root of the mean of its squares over the last dims, times a weight."""
def sparse_softmax_cross_entropy(logits: _Tensor, label: _Tensor, depth: builtins.int | None = None) -> _Tensor:
    """Return the cross entropy of each row: logits ``(..., C)`` with class indices ``(...)``."""
