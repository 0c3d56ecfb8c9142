"""`torch.utils.data._utils.collate`: a batch of samples by a table from types to functions.

default_collate_fn_map.update({Image: collate_images})       # default_collate then knows Image, too
"""

from __future__ import annotations

import collections.abc
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from sbpjax.data.loading import collate as _collate
from sbpjax.tensor import Tensor
from sbpjax.utils.data import default_convert as default_convert

np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def collate(batch: list, *, collate_fn_map: dict[Any, Callable] | None = None) -> Any:
    """Return the samples of a batch as one, by the function of their type; containers element by element.

    Args:
        batch: the samples.
        collate_fn_map: per type, or tuple of types, a function of a batch.
    """
    first = batch[0]
    for kind, fn in (collate_fn_map or {}).items():
        if isinstance(first, kind):
            return fn(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, collections.abc.Mapping):
        return {key: collate([s[key] for s in batch], collate_fn_map=collate_fn_map) for key in first}
    if isinstance(first, collections.abc.Sequence):
        if len({len(sample) for sample in batch}) > 1:
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(list(column), collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def _plain(batch: list, *, collate_fn_map: Any = None) -> Any:
    """Return tensors and arrays stacked, numbers as a tensor, strings in a list."""
    return _collate.default_collate(batch)


collate_tensor_fn = collate_numpy_array_fn = collate_numpy_scalar_fn = _plain
collate_float_fn = collate_int_fn = collate_str_fn = _plain
default_collate_fn_map: dict[Any, Callable] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: list) -> Any:
    """Return the samples of a batch as one, by `default_collate_fn_map`."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
