"""What a worker process has in the place of sbpjax: NumPy arrays with a tensor's most used names.

Workers never import JAX. A dataset may still say ``sbpjax.tensor(3)`` or ``sbpjax.from_numpy(image)``: in a worker
these make a `HostTensor`, which arrives at the training process as a `sbpjax.Tensor`. Plain NumPy arrays arrive as
NumPy arrays, unless the default collation makes a batch of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class HostTensor(np.ndarray):
    """A NumPy array that becomes a tensor on arrival."""

    def numpy(self) -> np.ndarray:
        """Return the plain array."""
        return np.asarray(self)

    def to(self, dtype: Any = None, *args: Any, **kwargs: Any) -> HostTensor:
        """Return the values in another dtype; devices have no meaning here."""
        return tensor(self, dtype) if isinstance(dtype, (type, np.dtype)) else self

    def float(self) -> HostTensor:
        """Return the values as float32."""
        return tensor(self, np.float32)

    def double(self) -> HostTensor:
        """Return the values as float64."""
        return tensor(self, np.float64)

    def long(self) -> HostTensor:
        """Return the values as int64."""
        return tensor(self, np.int64)

    def int(self) -> HostTensor:
        """Return the values as int32."""
        return tensor(self, np.int32)

    def permute(self, *dims: Any) -> HostTensor:
        """Return the dims in another order."""
        return np.transpose(self, dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims)  # type: ignore

    def unsqueeze(self, dim: Any) -> HostTensor:
        """Return a view with one more dim."""
        return np.expand_dims(self, dim)  # type: ignore[return-value]

    def contiguous(self) -> HostTensor:
        """Return the values in row-major order."""
        return np.ascontiguousarray(self).view(HostTensor)

    def clone(self) -> HostTensor:
        """Return a copy."""
        return self.copy()

    def dim(self) -> Any:
        """Return the number of dims."""
        return self.ndim


def tensor(data: Any, dtype: Any = None, **_: Any) -> HostTensor:
    """Return a copy of data, of float32 for Python floats."""
    array = np.array(data, dtype)
    if dtype is None and not hasattr(data, "dtype") and array.dtype == np.float64 and not _has_arrays(data):
        array = array.astype(np.float32)
    return array.view(HostTensor)


def _has_arrays(data: Any) -> bool:
    return isinstance(data, (list, tuple)) and any(hasattr(x, "dtype") or _has_arrays(x) for x in data)


def from_numpy(array: np.ndarray) -> HostTensor:
    """Return an array as a tensor, sharing its memory."""
    return np.asarray(array).view(HostTensor)


def as_tensor(data: Any, dtype: Any = None, **_: Any) -> HostTensor:
    """Return data as a tensor, without a copy where that is possible."""
    return tensor(data, dtype) if dtype is not None or not isinstance(data, np.ndarray) else from_numpy(data)


def stack(tensors: Any, dim: int = 0) -> HostTensor:
    """Return tensors along a new dim."""
    return np.stack([np.asarray(t) for t in tensors], dim).view(HostTensor)


def cat(tensors: Any, dim: int = 0) -> HostTensor:
    """Return tensors one after the other."""
    return np.concatenate([np.asarray(t) for t in tensors], dim).view(HostTensor)


def zeros(*size: Any, dtype: Any = np.float32, **_: Any) -> HostTensor:
    """Return zeros."""
    return np.zeros(_size(size), dtype).view(HostTensor)


def ones(*size: Any, dtype: Any = np.float32, **_: Any) -> HostTensor:
    """Return ones."""
    return np.ones(_size(size), dtype).view(HostTensor)


def arange(*args: Any, dtype: Any = None, **_: Any) -> HostTensor:
    """Return a range of numbers."""
    return tensor(np.arange(*args), dtype) if dtype is not None else np.arange(*args).view(HostTensor)


def is_tensor(value: Any) -> bool:
    """Return whether a value arrives as a tensor."""
    return isinstance(value, HostTensor)


def _size(size: tuple) -> tuple:
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size


FUNCTIONS = (tensor, from_numpy, as_tensor, stack, cat, zeros, ones, arange, is_tensor)
DTYPES = {
    **{name: np.dtype(name) for name in ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")},
    **{"bool": np.dtype("bool"), "short": np.dtype("int16"), "int": np.dtype("int32"), "long": np.dtype("int64")},
    **{"half": np.dtype("float16"), "float": np.dtype("float32"), "double": np.dtype("float64")},
}
