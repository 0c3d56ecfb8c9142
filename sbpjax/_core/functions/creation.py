"""Tensor creation from arrays, buffers and ranges, and sampling of a weight's classes."""

from __future__ import annotations

import numpy as np

from sbpjax._core.tensor.creation.convert import fetch_to_host
from sbpjax._core.tensor.creation.creation import arange
from sbpjax._core.tensor.creation.from_data import as_tensor, tensor
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.indexing import with_layout_of
from sbpjax.errors import OpError

from .random import randperm


def asarray(obj, *, dtype=None, device=None, copy: bool | None = None, requires_grad: bool | None = None) -> Tensor:
    """Return a tensor with the content given; a tensor itself, unless ``copy`` or another dtype is given.

    By default the result of a tensor is on the tape as that is; with ``requires_grad=False`` it is detached.
    """
    if isinstance(obj, Tensor):
        found = obj.detach() if copy or requires_grad is False and obj.requires_grad else obj
        found = as_tensor(found.clone() if copy else found, dtype=dtype, device=device)
    else:
        found = tensor(obj, dtype=dtype, device=device) if copy else as_tensor(obj, dtype=dtype, device=device)
    return found.requires_grad_() if requires_grad else found


def scalar_tensor(s: float | complex | Tensor, *, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """Return a 0-d tensor, of the default dtype unless one is given."""
    return tensor(
        s, dtype=dtypes.get_default_dtype() if dtype is None else dtype, device=device, requires_grad=requires_grad
    )


def range_(start=0, end=None, step=1, *, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """Return ``start``, ``start + step``, … up to and including ``end``."""
    start, end = (0, start) if end is None else (start, end)
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    count = int((end - start) / step) + 1
    found = (arange(count, dtype=dtype, device=device) * step + start).to(dtype)
    return found.requires_grad_() if requires_grad else found


def frombuffer(buffer, *, dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Return the bytes of a buffer as a vector, copied."""
    values = np.frombuffer(buffer, dtype=dtypes.as_dtype(dtype).np, count=count, offset=offset)
    return tensor(values.copy(), requires_grad=requires_grad)


def distributed_partial_fc_sample(weight: Tensor, label: Tensor, num_sample: int) -> tuple:
    """Return labels among sampled classes, the classes, and their rows of a weight.

    All classes that occur in ``label`` are taken, and others at random until there are ``num_sample``; the classes come
    sorted, and each label becomes its place among them.

    Args:
        weight: ``(C, D)``, a row per class.
        label: ``(N,)`` class numbers.
        num_sample: how many classes.
    """
    labels = fetch_to_host(label)
    positive = np.unique(labels)
    if len(positive) > num_sample or num_sample > weight.shape[0]:
        rule = f"num_sample is between the {len(positive)} classes that occur and the {weight.shape[0]} that there are"
        raise OpError(f"distributed_partial_fc_sample(num_sample={num_sample})", "labels", rule, "num_sample=...")
    order = fetch_to_host(randperm(weight.shape[0]))
    others = order[~np.isin(order, positive)][: num_sample - len(positive)]
    sampled = np.sort(np.concatenate([positive, others])).astype(labels.dtype)
    mapped = np.searchsorted(sampled, labels).astype(labels.dtype)
    classes = with_layout_of(sampled, label)
    return with_layout_of(mapped, label), classes, weight.index_select(0, classes)


def _corner(row: int, col: int, offset: int, lower: bool, options: dict) -> Tensor:
    if row < 0 or col < 0:
        raise OpError("tril_indices(row, col)", f"({row}, {col})", "no size is negative", "(3, 3)")
    values = np.stack((np.tril_indices if lower else np.triu_indices)(row, offset, col))
    dtype = options.pop("dtype", None)
    options.pop("layout", None)
    options.pop("pin_memory", None)
    return tensor(values.astype((dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)).np), **options)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype=None, device=None, layout=None) -> Tensor:
    """Return the rows and the columns of the lower triangle's elements, as two rows."""
    return _corner(row, col, offset, True, {"dtype": dtype, "device": device})


def triu_indices(row: int, col: int, offset: int = 0, *, dtype=None, device=None, layout=None) -> Tensor:
    """Return the rows and the columns of the upper triangle's elements, as two rows."""
    return _corner(row, col, offset, False, {"dtype": dtype, "device": device})
