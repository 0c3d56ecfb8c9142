"""Legacy tensor types of PyTorch: `FloatTensor` etc. make tensors of one dtype."""

from __future__ import annotations

from ..handle import dtype as dtypes
from ..handle.tensor import Tensor
from .creation import zeros as _zeros
from .from_data import tensor as _tensor


class _Typed(type):
    """The type of `FloatTensor` and its like: called, they make tensors; an instance is any tensor of their dtype."""

    _dtype: dtypes.dtype

    def __call__(cls, *data, **where) -> Tensor:
        if len(data) == 1 and not isinstance(data[0], int):
            return _tensor(data[0], dtype=cls._dtype, **where)
        return _zeros(*data, dtype=cls._dtype, **where)

    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls._dtype


def _make_type(name: str, dtype) -> _Typed:
    doc = f"A {dtype!r} tensor with the given content, or of the given size."
    return _Typed(name, (), {"_dtype": dtype, "__doc__": doc, "__module__": "sbpjax"})


FloatTensor, DoubleTensor, HalfTensor = (
    _make_type(n, d)
    for n, d in (("FloatTensor", dtypes.float32), ("DoubleTensor", dtypes.float64), ("HalfTensor", dtypes.float16))
)
LongTensor, IntTensor, BoolTensor = (
    _make_type(n, d)
    for n, d in (("LongTensor", dtypes.int64), ("IntTensor", dtypes.int32), ("BoolTensor", dtypes.bool_))
)
BFloat16Tensor, ShortTensor = _make_type("BFloat16Tensor", dtypes.bfloat16), _make_type("ShortTensor", dtypes.int16)
ByteTensor, CharTensor = (_make_type(n, d) for n, d in (("ByteTensor", dtypes.uint8), ("CharTensor", dtypes.int8)))
