"""Collation of samples into a batch: `default_collate` and `default_convert`.

``[(image0, 3), (image1, 5)]`` becomes ``[images, labels]`` with ``images`` of one more dim. In a worker the tensors are
`HostTensor`; `sbpjax` there is the worker's own (`sbpjax.data.loading.host_tensors`).
"""

from __future__ import annotations

import collections.abc
import sys
from typing import Any

import numpy as np

from sbpjax.errors import DataTypeError


def _sbpjax() -> Any:
    return sys.modules["sbpjax"]


def is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor, here or in a worker."""
    return isinstance(value, _sbpjax().Tensor)


def _is_array(value: Any) -> bool:
    """Return whether a value is an array of NumPy's, PyTorch's or JAX's own."""
    if isinstance(value, (np.ndarray, np.generic)):
        return True
    return type(value).__module__.partition(".")[0] in ("torch", "jax", "jaxlib") and hasattr(value, "__array__")


def default_convert(data: Any) -> Any:
    """Return data with the NumPy arrays in it, nested in dicts, lists and tuples, made tensors."""
    if is_tensor(data):
        return data
    if _is_array(data):
        array = np.asarray(data)
        return data if array.dtype.kind in "USO" else _sbpjax().as_tensor(array)
    if isinstance(data, collections.abc.Mapping):
        return _restore_type(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _restore_type(data, [default_convert(value) for value in data])
    return data


def default_collate(batch: list) -> Any:
    """Return the samples of a batch as one: tensors and arrays stacked, numbers as a tensor, strings in a list.

    Raises:
        TypeError: samples of a type that cannot be put together.
        RuntimeError: samples of different sizes.
    """
    first = batch[0]
    if is_tensor(first):
        _check_alike([tuple(sample.shape) for sample in batch])
        return _sbpjax().stack(list(batch), 0)
    if _is_array(first):
        arrays = [np.asarray(sample) for sample in batch]
        if arrays[0].dtype.kind in "USO":
            raise _unknown_type_error(first)
        return _sbpjax().from_numpy(_stack_arrays(arrays))
    if isinstance(first, bool):
        return _sbpjax().tensor(batch)
    if isinstance(first, float):
        return _sbpjax().from_numpy(np.array(batch, np.float64))
    if isinstance(first, int):
        return _sbpjax().from_numpy(np.array(batch, np.int64))
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, collections.abc.Mapping):
        return _restore_type(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(list(samples)) for samples in zip(*batch)))
    if isinstance(first, collections.abc.Sequence):
        if len({len(sample) for sample in batch}) > 1:
            rule = "each element in list of batch should be of equal size"
            seen = f"sizes {[len(sample) for sample in batch]}"
            raise _Unequal("default_collate(batch)", seen, rule, "DataLoader(..., collate_fn=...) that pads")
        columns = [default_collate(list(samples)) for samples in zip(*batch)]
        return columns if isinstance(first, tuple) else _restore_type(first, columns)
    raise _unknown_type_error(first)


class _Unequal(DataTypeError, RuntimeError):
    pass


def _stack_arrays(arrays: list[np.ndarray]) -> np.ndarray:
    _check_alike([a.shape for a in arrays])
    return np.stack(arrays)


def _check_alike(shapes: list[tuple[int, ...]]) -> None:
    if any(shape != shapes[0] for shape in shapes):
        rule = "stack expects each tensor to be equal size"
        fix = "Resize((height, width)) or a crop for images; else DataLoader(..., collate_fn=...) that pads"
        raise _Unequal("default_collate(batch)", f"shapes {[list(shape) for shape in shapes]}", rule, fix)


def _restore_type(given: Any, made: Any) -> Any:
    """Return a mapping or sequence of the given one's own type, or a plain one where that cannot be made."""
    try:
        return made if type(given) in (dict, list) else type(given)(made)
    except TypeError:
        return made


def _unknown_type_error(sample: Any) -> DataTypeError:
    seen = f"a {type(sample).__module__}.{type(sample).__name__}"
    rule = f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {seen[2:]}"
    return DataTypeError("default_collate(batch)", seen, rule, "DataLoader(..., collate_fn=...)")
