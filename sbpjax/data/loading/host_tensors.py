"""`HostTensor`: tensors of a worker process, NumPy arrays with a tensor's methods and dtype rules.

Workers never import JAX, yet a dataset may compute ``sbpjax.rand(3) * sbpjax.tensor(2.0)``. In a worker that makes a
`HostTensor`, which arrives at the training process as a `sbpjax.Tensor`. Plain NumPy arrays arrive as NumPy arrays,
unless the default collation makes a batch of them.

Where NumPy and tensors differ, a `HostTensor` follows tensors: ``int64 / int64`` and ``int64 * 0.5`` are
float32, a 0-d operand does not widen the others, `std` divides by n - 1, ``max(dim)`` also returns indices, ``size()``
is the shape. Functions of tensors are in `sbpjax.data.loading.host_functions`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


class Size(int):
    """The number of elements, as NumPy has it; called, the shape, as tensors have it."""

    def __new__(cls, array: np.ndarray):
        """Make it of an array."""
        made = super().__new__(cls, np.asarray(array).size)
        made.shape = array.shape  # type: ignore[attr-defined]
        return made

    def __call__(self, dim: Any = None) -> Any:
        return self.shape if dim is None else self.shape[dim]  # type: ignore[attr-defined]


class HostTensor(np.ndarray):
    """A NumPy array that becomes a tensor on arrival. Methods are those of `sbpjax.Tensor`, on the host."""

    is_cuda = False
    requires_grad = False
    device = "cpu"

    def __new__(cls, *data: Any):
        """Make a float32 tensor of a size, or of data, as ``sbpjax.Tensor`` does."""
        if len(data) == 1 and not isinstance(data[0], int):
            return np.array(data[0], np.float32).view(cls)
        return np.zeros(data, np.float32).view(cls)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        arrays = weaken_scalars([np.asarray(x) if isinstance(x, (HostTensor, np.generic)) else x for x in inputs])
        if out is not None:
            kwargs["out"] = tuple(np.asarray(o) if isinstance(o, HostTensor) else o for o in out)
            kwargs.setdefault("casting", "same_kind")
        result = getattr(ufunc, method)(*arrays, **kwargs)
        if out is not None:
            return out[0] if len(out) == 1 else out
        return wrap_arrays(_narrow_floats(result, arrays))

    @property
    def size(self) -> Any:  # type: ignore[override]
        """The number of elements; called, the shape."""
        return Size(self)

    def numpy(self) -> np.ndarray:
        """Return the plain array."""
        return np.asarray(self)

    def to(
        self, *wanted: Any, dtype: Any = None, device: Any = None, copy: Any = False, non_blocking: Any = False
    ) -> HostTensor:
        """Return the values in another dtype, or in that of another tensor; devices have no meaning here."""
        for target in wanted:
            target = target.dtype if isinstance(target, np.ndarray) else target
            dtype = target if isinstance(target, (type, np.dtype)) and dtype is None else dtype
        return self if dtype is None else self.type(dtype)

    def type(self, dtype: Any) -> HostTensor:
        """Return the values in another dtype."""
        return np.asarray(self).astype(dtype).view(HostTensor)

    def type_as(self, other: Any) -> HostTensor:
        """Return the values in another tensor's dtype."""
        return self.type(other.dtype)

    def float(self) -> HostTensor:
        """Return the values as float32."""
        return self.type(np.float32)

    def double(self) -> HostTensor:
        """Return the values as float64."""
        return self.type(np.float64)

    def half(self) -> HostTensor:
        """Return the values as float16."""
        return self.type(np.float16)

    def long(self) -> HostTensor:
        """Return the values as int64."""
        return self.type(np.int64)

    def int(self) -> HostTensor:
        """Return the values as int32."""
        return self.type(np.int32)

    def bool(self) -> HostTensor:
        """Return whether values are not 0."""
        return self.type(np.bool_)

    def byte(self) -> HostTensor:
        """Return the values as uint8."""
        return self.type(np.uint8)

    def view(self, *size: Any, **kwargs: Any) -> Any:
        """Return the values in another shape, as `reshape`; with a type or dtype, NumPy's own `view`."""
        if kwargs or not size or isinstance(size[0], (type, np.dtype, str)):
            return super().view(*size, **kwargs)
        return self.reshape(*size)

    def reshape(self, *size: Any, shape: Any = None, **kwargs: Any) -> Any:
        """Return the values in another shape."""
        return super().reshape(*(size if shape is None else (tuple(shape),)), **kwargs)

    def permute(self, *dims: Any, **kwargs: Any) -> HostTensor:
        """Return the dims in another order."""
        return np.asarray(self).transpose(size_of(dims or (kwargs["dims"],))).view(HostTensor)

    def transpose(self, *dims: Any, dim0: Any = None, dim1: Any = None) -> HostTensor:
        """Return two dims exchanged; with another number of dims, NumPy's own `transpose`."""
        dims = dims if dim1 is None else (*dims[:1], *([] if dim0 is None else [dim0]), dim1)
        array = np.asarray(self)
        return (np.swapaxes(array, *dims) if len(dims) == 2 else array.transpose(*dims)).view(HostTensor)

    def t(self) -> HostTensor:
        """Return a matrix transposed."""
        return self.T  # type: ignore[return-value]

    def unsqueeze(self, dim: Any) -> HostTensor:
        """Return a view with one more dim."""
        return np.expand_dims(self, dim)  # type: ignore[return-value]

    def squeeze(self, dim: Any = None, **kwargs: Any) -> HostTensor:
        """Return a view without dims of size 1; a dim of another size stays."""
        dim = kwargs.get("axis", dim)
        if dim is None or self.shape[dim] == 1:
            return super().squeeze(dim)  # type: ignore[return-value]
        return self

    def contiguous(self) -> HostTensor:
        """Return the values in row-major order."""
        return np.ascontiguousarray(self).reshape(self.shape).view(HostTensor)

    def clone(self) -> HostTensor:
        """Return a copy."""
        return self.copy()

    def detach(self) -> HostTensor:
        """Return the tensor: there is no tape here."""
        return self

    def cpu(self) -> HostTensor:
        """Return the tensor: it is there."""
        return self

    def requires_grad_(self, mode: Any = True) -> HostTensor:
        """Return the tensor: there is no tape here."""
        return self

    def dim(self) -> Any:
        """Return the number of dims."""
        return self.ndim

    def numel(self) -> Any:
        """Return the number of elements."""
        return int(np.prod(self.shape))

    def element_size(self) -> Any:
        """Return the bytes of an element."""
        return self.itemsize

    def expand(self, *size: Any) -> HostTensor:
        """Return a view with dims of size 1 repeated; -1 leaves one as it is."""
        wanted = size_of(size)
        behind = len(wanted) - self.ndim
        shape = [self.shape[i - behind] if n == -1 else n for i, n in enumerate(wanted)]
        return np.broadcast_to(np.asarray(self), shape).view(HostTensor)

    def expand_as(self, other: Any) -> HostTensor:
        """Return a view in the shape of another tensor."""
        return self.expand(*other.shape)

    def repeat(self, *times: Any) -> HostTensor:  # type: ignore[override]
        """Return the tensor so many times along each dim."""
        return np.tile(np.asarray(self), size_of(times)).view(HostTensor)

    def fill_(self, value: Any) -> HostTensor:
        """Write a value everywhere."""
        self[...] = value
        return self

    def zero_(self) -> HostTensor:
        """Write 0 everywhere."""
        return self.fill_(0)

    def copy_(self, source: Any) -> HostTensor:
        """Write the values of another tensor."""
        return self.fill_(np.asarray(source))

    def normal_(self, mean: Any = 0.0, std: Any = 1.0) -> HostTensor:
        """Write normal numbers."""
        return self.fill_(np.random.normal(mean, std, self.shape))

    def uniform_(self, low: Any = 0.0, high: Any = 1.0) -> HostTensor:
        """Write numbers uniform in [low, high)."""
        return self.fill_(np.random.uniform(low, high, self.shape))


def wrap_arrays(value: Any) -> Any:
    """Return arrays and NumPy scalars as host tensors, also in tuples; everything else as it is."""
    if isinstance(value, tuple):
        made = [wrap_arrays(v) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value).view(HostTensor)
    return value


def weaken_scalars(arrays: list) -> list:
    """Return operands in which 0-d ones are plain numbers where they do not decide the dtype of the result."""
    whole = [_CATEGORY.get(x.dtype.kind, 0) for x in arrays if isinstance(x, np.ndarray) and x.ndim]
    if not whole:
        return arrays
    highest = max(whole)
    return [
        x.item() if isinstance(x, np.ndarray) and not x.ndim and _CATEGORY.get(x.dtype.kind, 0) <= highest else x
        for x in arrays
    ]


def common_dtype(arrays: list) -> np.dtype:
    """Return the dtype of tensors put together: that of the floats among them, if there are any."""
    highest = max(_CATEGORY.get(a.dtype.kind, 0) for a in arrays)
    return np.result_type(*[a.dtype for a in arrays if _CATEGORY.get(a.dtype.kind, 0) == highest])


def _narrow_floats(value: Any, arrays: list) -> Any:
    """Return float64 that NumPy made of integers, or of float32 with integers, as the floats that tensors make."""
    if isinstance(value, tuple):
        return tuple(_narrow_floats(v, arrays) for v in value)
    if getattr(value, "dtype", None) != np.float64:
        return value
    floats = [x.dtype for x in arrays if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]
    return value.astype(np.result_type(*floats) if floats else np.float32)


def size_of(size: tuple) -> tuple:
    """Return the size that was given as numbers, or as one sequence."""
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], (int, np.integer)) else size


DTYPES = {
    **{name: np.dtype(name) for name in ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")},
    **{"bool": np.dtype("bool"), "short": np.dtype("int16"), "int": np.dtype("int32"), "long": np.dtype("int64")},
    **{"half": np.dtype("float16"), "float": np.dtype("float32"), "double": np.dtype("float64")},
    **{"complex64": np.dtype("complex64"), "complex128": np.dtype("complex128")},
}
