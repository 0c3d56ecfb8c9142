"""Lazy layers: their number of input channels is inferred from the first input.

    layer = nn.LazyLinear(8)         # weight: an UninitializedParameter
    layer(x)                         # x (N, 5): now a Linear(5, 8), and of that class

Parameters keep their identity, so an optimizer made before the first call has the right ones.
"""

from __future__ import annotations

from typing import Any

from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import creation
from sbpjax._core.tensor.storage.payload import put_from, share_storage_of
from sbpjax.nn.layers.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _BatchNorm
from sbpjax.nn.layers.conv import Conv1d, Conv2d, Conv3d
from sbpjax.nn.layers.conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from sbpjax.nn.layers.instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, _InstanceNorm
from sbpjax.nn.layers.linear import Linear
from sbpjax.nn.parameter import Parameter


class UninitializedTensorMixin:
    """Base of parameters and buffers without a shape."""

    __slots__ = ()
    _becomes: type = Tensor

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Allocate the tensor with a shape, and give it the class of an ordinary one.

        Args:
            shape: the sizes.
            device: where it is made; None is the device that it was declared for.
            dtype: its dtype; None is the declared one.
        """
        this: Any = self
        where = Tensor.device.__get__(this) if device is None else device
        kind = Tensor.dtype.__get__(this) if dtype is None else dtype
        this.__class__ = self._becomes
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        made = creation.empty(*sizes, device=where, dtype=kind)
        put_from(this, made)

    @property
    def shape(self) -> Any:
        """Raise: there is none yet."""
        rule = (
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one."
        )
        fail("shape", f"{type(self).__name__}.shape", "no shape yet", rule, "call the module once first")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict) -> Any:
        this: Any = self
        made = type(self)(device=Tensor.device.__get__(this), dtype=Tensor.dtype.__get__(this))
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        this: Any = self
        return _make_module, (type(self), str(Tensor.device.__get__(this)), Tensor.dtype.__get__(this))


def _make_module(kind: Any, device: str, dtype: Any) -> Any:
    return kind(device=device, dtype=dtype)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """Parameter without a shape yet.

    Args:
        requires_grad: whether it gets a gradient.
        device: where it will be made.
        dtype: its dtype.
    """

    __slots__ = ()
    _becomes = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None):
        return super().__new__(cls, creation.empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """Buffer without a shape yet.

    Args:
        requires_grad: accepted for compatibility.
        device: where it will be made.
        dtype: its dtype.
    """

    __slots__ = ()

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None):
        made = Tensor.__new__(cls)
        share_storage_of(made, creation.empty(0, device=device, dtype=dtype))
        return made

    def __init__(self, requires_grad: bool = False, device: Any = None, dtype: Any = None):
        pass


def is_lazy(x: Any) -> bool:
    """Return whether a tensor has no shape yet."""
    return isinstance(x, UninitializedTensorMixin)


class LazyModuleMixin:
    """Base of layers that wait for their first input; list it before the layer that they become."""

    cls_to_become: Any = None
    _size = "in_channels"
    _channel = 1

    def _declare(self, *args: Any, **options: Any) -> None:
        """Create the layer for one channel, then replace its channel-dependent tensors by ones without a shape."""
        self_: Any = self
        where = {"device": options.get("device"), "dtype": options.get("dtype")}
        size = options.get("groups", 1) if self._size == "in_channels" else 1
        self.cls_to_become.__init__(self, size, *args, **options)
        self_.__dict__["_lazy_options"] = (args, options)
        setattr(self, self._size, 0)
        for name, tensor in list(self_._parameters.items()):
            if tensor is not None:
                setattr(self, name, UninitializedParameter(**where))
        for name, tensor in list(self_._buffers.items()):
            if tensor is not None and tensor.ndim:
                setattr(self, name, UninitializedBuffer(**where))
        self_.__dict__["_lazy_hook"] = self_.register_forward_pre_hook(_infer)

    def has_uninitialized_params(self) -> bool:
        """Return whether any tensor waits for its shape."""
        self_: Any = self
        return any(is_lazy(t) for t in (*self_._parameters.values(), *self_._buffers.values()))

    def initialize_parameters(self, input: Any, *args: Any) -> None:
        """Give every tensor its shape and first values, from the first input."""
        if self.has_uninitialized_params():
            self._materialize(int(input.shape[self._place(input)]))

    def _place(self, input: Any) -> int:
        """Return the index of the channel dim."""
        return self._channel

    def _materialize(self, channels: int) -> None:
        self_: Any = self
        args, options = self_._lazy_options
        fresh = self.cls_to_become(channels, *args, **options)
        for table in ("_parameters", "_buffers"):
            for name, tensor in self_.__dict__[table].items():
                if is_lazy(tensor):
                    made = fresh.__dict__[table][name]
                    tensor.materialize(made.shape)
                    put_from(tensor, made)
        setattr(self, self._size, channels)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, if they have a shape."""
        if "_parameters" in self.__dict__ and not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *rest: Any) -> None:
        """Adopt the shapes of the loaded tensors."""
        self_: Any = self
        for table in ("_parameters", "_buffers"):
            for name, tensor in self_.__dict__[table].items():
                value = state_dict.get(prefix + name)
                if is_lazy(tensor) and isinstance(value, Tensor) and not is_lazy(value):
                    tensor.materialize(value.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)  # type: ignore[misc]


def _infer(module: Any, args: tuple) -> None:
    """Convert a lazy layer to an ordinary one before its first forward."""
    module.initialize_parameters(*args)
    weight = module._parameters.get("weight")
    if weight is not None and getattr(module, module._size) == 0:  # loaded before the first call
        transposed = isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
        place = 0 if transposed or weight.ndim == 1 else 1
        setattr(module, module._size, weight.shape[place] * (1 if place == 0 else getattr(module, "groups", 1)))
    module.__dict__.pop("_lazy_hook").remove()
    module.__dict__.pop("_lazy_options")
    module.__class__ = module.cls_to_become


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` whose `in_features` come from the first input.

    Args:
        out_features: the features of the output.
        bias: whether a bias is added.
        device: where the parameters are made.
        dtype: their dtype.
    """

    cls_to_become, _size, _channel = Linear, "in_features", -1

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        self._declare(out_features, bias=bias, device=device, dtype=dtype)


class _LazyConvXdMixin(LazyModuleMixin):
    """Base of lazy convolutions: defines the dim of the channels."""

    def _place(self, input: Any) -> int:
        self_: Any = self
        return input.ndim - self_._spatial - 1


class _LazyConv(_LazyConvXdMixin):
    """A convolution whose `in_channels` come from the first input; the other arguments are those of the convolution."""

    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "bias": bias}
        self._declare(out_channels, kernel_size, **options, padding_mode=padding_mode, device=device, dtype=dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    """A transposed convolution whose `in_channels` come from the first input; the rest as of the convolution."""

    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        options = {"stride": stride, "padding": padding, "output_padding": output_padding, "groups": groups}
        options |= {"bias": bias, "dilation": dilation, "padding_mode": padding_mode}
        self._declare(out_channels, kernel_size, **options, device=device, dtype=dtype)


class _LazyNorm(LazyModuleMixin):
    """A norm whose `num_features` come from the first input; the rest as of the norm."""

    _size = "num_features"

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        self._declare(eps, momentum, affine, track_running_stats, device=device, dtype=dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A `Conv1d` whose `in_channels` come from the first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A `Conv2d` whose `in_channels` come from the first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A `Conv3d` whose `in_channels` come from the first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` whose `in_channels` come from the first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` whose `in_channels` come from the first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` whose `in_channels` come from the first input."""

    cls_to_become = ConvTranspose3d


class LazyBatchNorm1d(_LazyNorm, _BatchNorm):
    """A `BatchNorm1d` whose `num_features` come from the first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, _BatchNorm):
    """A `BatchNorm2d` whose `num_features` come from the first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, _BatchNorm):
    """A `BatchNorm3d` whose `num_features` come from the first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, _InstanceNorm):
    """An `InstanceNorm1d` whose `num_features` come from the first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, _InstanceNorm):
    """An `InstanceNorm2d` whose `num_features` come from the first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, _InstanceNorm):
    """An `InstanceNorm3d` whose `num_features` come from the first input."""

    cls_to_become = InstanceNorm3d
