"""Names beside the common ones: activations at the top level, complex parts, typed constructors, in-place reshapes."""

from __future__ import annotations

import functools

import numpy as np

from sbpjax.errors import InplaceError, OpError, message
from sbpjax.ops import activation

from . import dispatch, splitting, views
from . import dtype as dtypes
from .argument_names import take_names
from .binding import bind, into_out, publish
from .complex import conj as conj
from .complex import imag as imag
from .complex import real as real
from .convert import numpy as _numpy
from .convert import to_global as _to_global
from .creation import zeros as _zeros
from .from_data import tensor as _tensor
from .functions import repeat as repeat
from .functions import to_dtype
from .inplace import check_writable
from .inplace import inplace as write_into
from .mode import mode
from .oneflow_arguments import take_oneflow
from .op import op_of
from .storage import base_of, steps_of
from .tensor import Tensor, attach
from .views import expand as expand
from .views import view as view

_ACTIVATIONS = "gelu silu mish softplus softsign threshold quick_gelu".split()
gelu, silu, mish, softplus, softsign, threshold, quick_gelu = (
    bind(getattr(activation, name), ("input",)) for name in _ACTIVATIONS
)


def softshrink(input: Tensor, lambd: float = 0.5, inplace: bool = False, *, out=None) -> Tensor:
    """Return x moved by `lambd` towards 0, and 0 where |x| <= lambd; with ``inplace`` written into x."""
    op = op_of(activation.softshrink, (("lambd", float(lambd)),))
    result = write_into(input, op) if inplace else dispatch.run(op, (input,))
    return result if out is None else into_out(out, result)


# --------------------------------------------------------------------------------------------------------------- shapes


def broadcast_shapes(*shapes) -> tuple:
    """Return the common shape of several shapes."""
    from .size import Size

    return Size(np.broadcast_shapes(*[tuple(s) if isinstance(s, (tuple, list)) else (s,) for s in shapes]))


def hsplit(input: Tensor, indices_or_sections) -> tuple:
    """Return `tensor_split` along dim 1, or 0 of a vector."""
    return _even(input, indices_or_sections, 0 if input.ndim == 1 else 1, "hsplit", 1)


def vsplit(input: Tensor, indices_or_sections) -> tuple:
    """Return `tensor_split` along dim 0."""
    return _even(input, indices_or_sections, 0, "vsplit", 2)


def _even(x: Tensor, parts, dim: int, name: str, least: int) -> tuple:
    """Return `tensor_split` along a dim, whose size a number of parts divides."""
    if x.ndim < least:
        rule = f"{name} requires a tensor with at least {least} dimensions"
        raise OpError(message(f"{name}(x, ...)", f"x {list(x.shape)}", rule, "x.tensor_split(..., dim=-1)"))
    if isinstance(parts, int) and (parts < 1 or x.shape[dim] % parts):
        rule = f"the size of dim {dim} is divisible by the number of parts, {parts}"
        raise OpError(message(f"{name}(x, {parts})", f"x {list(x.shape)}", rule, f"x.tensor_split({parts}, {dim})"))
    return splitting.tensor_split(x, parts, dim)


def cast(input: Tensor, dtype) -> Tensor:
    """Return the tensor in another dtype."""
    return to_dtype(input, dtype)


def to_global(input: Tensor, placement=None, sbp=None, **options) -> Tensor:
    """Return `Tensor.to_global` of a tensor."""
    return _to_global(input, placement, sbp, **options)


def _reshape_in_place(function):
    @functools.wraps(function)
    def method(self: Tensor, *args, **options) -> Tensor:
        check_writable(self, f"{function.__name__}_")
        if base_of(self) is not None and (self._edge is None or mode.grad):
            return _follow(self, function(self, *args, **options))
        if self._cell is not None:
            raise InplaceError(
                message(
                    f"{function.__name__}_",
                    "a tensor that shares storage with another one",
                    "only a view, or a tensor that is alone on its storage, changes its shape in place",
                    f"x = x.{function.__name__}(...)",
                )
            )
        out = function(self.detach() if self._edge is None else self.clone(), *args, **options)
        self._hold(out._array, out._layout)
        self._cell = None
        if out._edge is not None:
            self._edge, self._idx = out._edge, out._idx
        self._ver += 1
        return self

    method.__name__ = f"{function.__name__}_"
    method.__doc__ = f"Write `{function.__name__}` into this tensor, which takes the new shape, and return it."
    return method


def _follow(self: Tensor, view: Tensor) -> Tensor:
    """Make a view show what a view of it shows, and return it."""
    if view is not self:
        self._own_meta().steps = steps_of(view)
        self._hold(view._array, view._layout)
        self._edge, self._idx, self._seen, self._ver = view._edge, view._idx, view._seen, view._ver
    return self


# ------------------------------------------------------------------------------------------------------- constructors


class _Typed(type):
    """The type of `FloatTensor` and its like: called, they make tensors; an instance is any tensor of their dtype."""

    _dtype: dtypes.dtype

    def __call__(cls, *data, **where) -> Tensor:
        if len(data) == 1 and not isinstance(data[0], int):
            return _tensor(data[0], dtype=cls._dtype, **where)
        return _zeros(*data, dtype=cls._dtype, **where)

    def __instancecheck__(cls, instance) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls._dtype


def _typed(name: str, dtype) -> _Typed:
    doc = f"A {dtype!r} tensor with the given content, or of the given size."
    return _Typed(name, (), {"_dtype": dtype, "__doc__": doc, "__module__": "sbpjax"})


FloatTensor, DoubleTensor, HalfTensor = (
    _typed(n, d)
    for n, d in (("FloatTensor", dtypes.float32), ("DoubleTensor", dtypes.float64), ("HalfTensor", dtypes.float16))
)
LongTensor, IntTensor, BoolTensor = (
    _typed(n, d) for n, d in (("LongTensor", dtypes.int64), ("IntTensor", dtypes.int32), ("BoolTensor", dtypes.bool_))
)
BFloat16Tensor, ShortTensor = _typed("BFloat16Tensor", dtypes.bfloat16), _typed("ShortTensor", dtypes.int16)
ByteTensor, CharTensor = (_typed(n, d) for n, d in (("ByteTensor", dtypes.uint8), ("CharTensor", dtypes.int8)))


def _attach() -> None:
    for function in (gelu, silu, mish, softplus, softsign, cast, hsplit, vsplit):
        setattr(Tensor, function.__name__, function)
    for function in (views.squeeze, views.unsqueeze, views.transpose, views.t):
        setattr(Tensor, f"{function.__name__}_", _reshape_in_place(function))
    for name in ("swapaxes_", "swapdims_"):
        setattr(Tensor, name, _reshape_in_place(views.transpose))
    attach(global_to_global=_to_global, local_to_global=_to_global)
    attach(to_numpy=_numpy)
    attach(is_view=property(lambda self: views._is_view(self)))
    attach(is_pinned=lambda self: False)
    attach(pin_memory=lambda self: self)
    attach(get_device=lambda self: -1 if self.device.type == "cpu" else self.device.index or 0)


_attach()
publish(globals(), "hsplit vsplit", out=False)
take_names(globals(), "hsplit vsplit", indices="indices_or_sections", sections="indices_or_sections")
take_oneflow(globals())
