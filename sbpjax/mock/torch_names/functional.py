"""`torch.nn.functional`: helpers that model libraries borrow from PyTorch's own source."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from sbpjax.functions import nn as F
from sbpjax.tensor import Tensor, like
from sbpjax.tensor import dtype as dtypes

from . import reduction as _numbers
from .modules_utils import _list_with_default as _list_with_default
from .modules_utils import _pair as _pair
from .modules_utils import _single as _single
from .modules_utils import _triple as _triple
from .overrides import handle_torch_function as handle_torch_function
from .overrides import has_torch_function as has_torch_function
from .overrides import has_torch_function_unary as has_torch_function_unary
from .overrides import has_torch_function_variadic as has_torch_function_variadic

_Reduction = SimpleNamespace(
    get_enum=_numbers.get_enum,
    legacy_get_string=_numbers.legacy_get_string,
    legacy_get_enum=_numbers.legacy_get_enum,
)
_threshold = F.threshold
_max_pool1d, _max_pool2d, _max_pool3d = F.max_pool1d, F.max_pool2d, F.max_pool3d
_adaptive_max_pool1d, _adaptive_max_pool2d = F.adaptive_max_pool1d, F.adaptive_max_pool2d
_adaptive_max_pool3d = F.adaptive_max_pool3d
_fractional_max_pool2d, _fractional_max_pool3d = F.fractional_max_pool2d, F.fractional_max_pool3d


class ScalingType(enum.IntEnum):
    """How the numbers of a scaled product share their scales."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """How such scales lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """Return the dim that softmax takes if it is not said."""
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated.", stacklevel=stacklevel)
    return 0 if ndim in (0, 1, 3) else 1


def _verify_batch_size(size: Sequence[int]) -> None:
    """Raise ValueError if there is one value per channel, whose variance means nothing."""
    count = size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _verify_spatial_size(size: Sequence[int]) -> None:
    """Raise ValueError if there is one element per channel and sample."""
    count = 1
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None) -> list[Tensor]:
    """Return the projected queries, keys and values.

    Args:
        q: `(..., E)`.
        k: `(..., E)`.
        v: `(..., E)`.
        w: `(3 E, E)`, the three weights one below the other.
        b: `(3 E,)`, their biases.
    """
    if k is v and q is k:
        return list(F.linear(q, w, b).chunk(3, -1))
    biases = [None] * 3 if b is None else b.chunk(3)
    return [F.linear(x, y, z) for x, y, z in zip((q, k, v), w.chunk(3), biases, strict=True)]


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the projected queries, keys and values, each by a weight of its own."""
    return F.linear(q, w_q, b_q), F.linear(k, w_k, b_k), F.linear(v, w_v, b_v)


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Tensor | None:
    """Return a mask as numbers to add: minus infinity where a mask of bools is True."""
    if mask is None:
        return None
    if mask.dtype != dtypes.bool_ and not mask.dtype.is_floating_point:
        raise RuntimeError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(f"Support for mismatched {mask_name} and {other_name} is deprecated.", stacklevel=2)
    if mask.dtype.is_floating_point:
        return mask
    return like.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _none_or_dtype(input: Tensor | None) -> Any:
    """Return a tensor's dtype, None for None."""
    return None if input is None else input.dtype


def _mha_shape_check(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Return whether attention is given a batch; raise if its inputs disagree about that."""
    batched = query.ndim == 3
    if query.ndim not in (2, 3) or key.ndim != query.ndim or value.ndim != query.ndim:
        seen = f"{query.ndim}-D, {key.ndim}-D and {value.ndim}-D"
        raise AssertionError(f"query, key and value should all be unbatched 2D or batched 3D tensors, got {seen}")
    if key_padding_mask is not None and key_padding_mask.ndim != (2 if batched else 1):
        raise AssertionError(f"key_padding_mask has {key_padding_mask.ndim} dims")
    if attn_mask is not None and attn_mask.ndim not in (2, 3):
        raise AssertionError(f"attn_mask is 2-D or 3-D, not {attn_mask.ndim}-D")
    return batched


def _unpool_output_size(
    input: Tensor, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int], output_size: Any
) -> list[int]:
    """Return the sizes before a pooling: those given, or the smallest that pool to the input's."""
    count = len(kernel_size)
    sizes = zip(input.shape[-count:], kernel_size, stride, padding, strict=True)
    default = [(n - 1) * s + k - 2 * p for n, k, s, p in sizes]
    return default if output_size is None else list(output_size)[-count:]
