"""Dropout; the mask depends on the element's index in the logical tensor, not on the layout."""

from __future__ import annotations

from typing import Any

from sbpjax._core.ops.randoms import random as ops
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.calls.binding import must_be_tensor
from sbpjax._core.tensor.creation.generator import generator_or_default
from sbpjax._core.tensor.dispatch.dispatch import run
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.storage.inplace import inplace as write_into
from sbpjax.errors import OpValueError


def _element_zeros(x: Any, key: Any, /, p: float) -> Any:
    return ops.dropout(key, x, p=p)


def _channel_zeros(x: Any, key: Any, /, p: float) -> Any:
    return ops.dropout_channels(key, x, p=p)


def _alpha(x: Any, key: Any, /, p: float) -> Any:
    return ops.alpha_dropout(key, x, p=p)


def _alpha_channels(x: Any, key: Any, /, p: float) -> Any:
    return ops.alpha_dropout(key, x, p=p, channels=True)


def drawn_key(p: float, training: bool, generator: Any) -> Any:
    """Return the random key of a dropout; None where nothing is dropped."""
    if not 0 <= p <= 1:
        raise OpValueError("dropout", f"p={p}", "a dropout probability is between 0 and 1", "F.dropout(x, p=0.5)")
    return generator_or_default(generator).key() if training and p > 0 else None


def _drop(fn: Any, input: Tensor, p: float, training: bool, inplace: bool, generator: Any = None) -> Tensor:
    must_be_tensor("dropout", input)
    key = drawn_key(p, training, generator)
    if key is None:
        return input
    op = op_of(fn, (("p", float(p)),))
    return write_into(input, op, (key,)) if inplace else run(op, (input, key))


def dropout(
    input: Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    generator: Any = None,
    *,
    addend: Tensor | None = None,
) -> Tensor:
    """Return x with each element zero with probability p and the others divided by 1 - p.

    Args:
        input: any shape; any sbp: the mask does not depend on it.
        p: the probability of a zero.
        training: if false, return x as it is.
        inplace: write into the input.
        generator: draws the mask; the default one if not given.
        addend: added to the result.

    Returns:
        The shape and the sbp of ``input``.

    Example:
        >>> x = flow.ones(4, 3).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> flow.nn.functional.dropout(x, p=0.5).sbp, flow.nn.functional.dropout(x, training=False)[0].tolist()
        ((sbpjax.sbp.split(dim=0),), [1.0, 1.0, 1.0])
    """
    found = _drop(_element_zeros, input, p, training, inplace, generator)
    return found if addend is None else found + addend


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, generator: Any = None
) -> Tensor:
    """Return `(N, C, L)` with whole channels zero; arguments as in `dropout`."""
    return _drop(_channel_zeros, input, p, training, inplace, generator)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, generator: Any = None
) -> Tensor:
    """Return `(N, C, H, W)` with whole channels zero; arguments as in `dropout`."""
    return _drop(_channel_zeros, input, p, training, inplace, generator)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, generator: Any = None
) -> Tensor:
    """Return `(N, C, D, H, W)` with whole channels zero; arguments as in `dropout`."""
    return _drop(_channel_zeros, input, p, training, inplace, generator)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, generator: Any = None
) -> Tensor:
    """Return x with elements at selu's lower limit with probability p, scaled to keep mean and variance."""
    return _drop(_alpha, input, p, training, inplace, generator)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, generator: Any = None
) -> Tensor:
    """Return `(N, C, ...)` with whole channels at selu's lower limit, scaled to keep mean and variance."""
    return _drop(_alpha_channels, input, p, training, inplace, generator)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple:
    """Return `nn.functional.dropout`, and the mask of kept elements."""
    if not train:
        return input.clone(), input.new_ones(*input.shape).bool()
    kept = dropout(input.detach().new_ones(*input.shape), p) != 0
    return input * kept / (1 - p if p < 1 else 1), kept
