"""`Moving`: how a module's tensors are cast, moved, laid out and given memory; part of `Module`."""

from __future__ import annotations

from typing import Any

import sbpjax
from sbpjax.ops.dims import fail
from sbpjax.tensor import Tensor


def _cast(module: Any, dtype: Any) -> Any:
    return module._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)


class Moving:
    """The methods of `Module` that change where and as what its tensors are stored, in place."""

    _apply: Any

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Move or cast all tensors: ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``.

        Only floating-point tensors take a dtype. For placements use `to_global`.
        """
        from sbpjax.tensor.device import device as device_class
        from sbpjax.tensor.dtype import dtype as dtype_class

        if len(args) == 1 and isinstance(args[0], type):
            if issubclass(args[0], Moving):  # what a graph's proxy of a module stands for
                return self
            if hasattr(args[0], "of_module"):  # nn.graph.GraphModule: what graphs keep about this module
                return args[0].of_module(self)
        device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
        kwargs.pop("non_blocking", None)
        kwargs.pop("memory_format", None)
        asked, fix = f"{type(self).__name__}.to(...)", "model.to('cuda'), model.to(sbpjax.bfloat16)"
        if kwargs:
            seen = f"keyword argument {next(iter(kwargs))!r}"
            fail("type", asked, seen, "it takes device=, dtype= and non_blocking=; for placements use to_global", fix)
        for arg in args:
            if isinstance(arg, Tensor):
                device, dtype = arg.device, arg.dtype
            elif isinstance(arg, dtype_class):
                dtype = arg
            elif isinstance(arg, (str, device_class)) and device is None:
                device = arg
            elif not isinstance(arg, bool) and arg is not None:
                rule = "Module.to() takes a device, a dtype or a tensor; for placements use to_global"
                fail("type", asked, f"a {type(arg).__name__}", rule, fix)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            rule = "nn.Module.to only accepts floating point or complex dtypes"
            fail("type", asked, f"dtype={dtype}", rule, fix)

        def convert(tensor: Tensor) -> Tensor:
            if dtype is not None and (tensor.is_floating_point() or tensor.is_complex()):
                tensor = tensor.to(dtype)
            return tensor if device is None else tensor.to(device)

        return self._apply(convert)

    def float(self) -> Any:
        """Cast all floating-point tensors to float32."""
        return _cast(self, sbpjax.float32)

    def double(self) -> Any:
        """Cast all floating-point tensors to float64."""
        return _cast(self, sbpjax.float64)

    def half(self) -> Any:
        """Cast all floating-point tensors to float16."""
        return _cast(self, sbpjax.float16)

    def bfloat16(self) -> Any:
        """Cast all floating-point tensors to bfloat16."""
        return _cast(self, sbpjax.bfloat16)

    def cpu(self) -> Any:
        """Move all local tensors to the CPU."""
        return self.to("cpu")

    def cuda(self, device: int | str | None = None) -> Any:
        """Move all local tensors to a GPU."""
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    def to_global(self, placement: Any = None, sbp: Any = None) -> Any:
        """Lay out all parameters, gradients and buffers, in place.

        Args:
            placement: the devices; None keeps that of tensors which are global already.
            sbp: the layout of every tensor; lay single layers out otherwise with a call of their own afterwards.

        Returns:
            The module itself.

        Example:
            >>> model.to_global(flow.placement.all("cpu"), flow.sbp.broadcast)
        """
        return self._apply(lambda t: t.to_global(placement=placement, sbp=sbp))

    def to_empty(self, *, device: Any = None, placement: Any = None, sbp: Any = None) -> Any:
        """Give memory, with unspecified content, to all tensors, in place; the way out of ``device="meta"``.

        Args:
            device: where local tensors are made; for global ones give ``placement`` or nothing.
            placement: the devices; None keeps each global tensor's own.
            sbp: the layout of every tensor; None keeps each global tensor's own.

        Example:
            >>> with flow.abstract():
            ...     layer = nn.Linear(4, 4)
            >>> layer.to_empty(device="cpu").reset_parameters()
        """

        def empty(t: Tensor) -> Tensor:
            there, layout = (placement, sbp) if device is None else (None, None)
            if t.is_global and device is None:
                there, layout = placement or t.placement, t.sbp if sbp is None else sbp
            where = "cpu" if device is None and there is None else device
            return sbpjax.empty(*t.shape, dtype=t.dtype, device=where, placement=there, sbp=layout)

        return self._apply(empty)

    def to_local(self) -> Any:
        """Make all parameters, gradients and buffers local tensors, in place."""
        return self._apply(lambda t: t.to_local() if t.is_global else t)

    def type(self, dst_type: Any) -> Any:
        """Cast all tensors, integers included, to a dtype or to what a type such as ``"torch.FloatTensor"`` names."""
        return self._apply(lambda t: t.type(dst_type))

    def share_memory(self) -> Any:
        """Return self: arrays of JAX belong to one process; several processes hold shards of one global tensor."""
        return self

    def to_memory_format(self, memory_format: Any) -> Any:
        """Return self: how dims lie in memory is XLA's choice."""
        return self

    def make_contiguous_params_group(self) -> None:
        """Do nothing: a compiled step fuses the updates of parameters without copying them together."""

    def to_consistent(self, *args: Any, **kwargs: Any) -> Any:
        """Raise: the old name of `to_global`."""
        rule = ".to_consistent has been removed, please use .to_global instead"
        fail(
            "shape", f"{type(self).__name__}.to_consistent(...)", "an old name", rule, "model.to_global(placement, sbp)"
        )

    def xpu(self, device: Any = None) -> Any:
        """Move all local tensors to the accelerator."""
        return self.cuda(device)
