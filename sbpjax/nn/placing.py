"""`PlacementMethods`: the methods of `Module` that cast, move, distribute and allocate its tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from jax.core import Tracer

from sbpjax._core.ops.dims import fail
from sbpjax._core.runtime import collective_trace, processes
from sbpjax._core.runtime.ranks_text import ranks_text
from sbpjax._core.runtime.user_line import warn
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import creation
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.device import device as device_class
from sbpjax._core.tensor.handle.dtype import dtype as dtype_class
from sbpjax._core.tensor.storage.payload import payload
from sbpjax.errors import MixedTensorError, SbpError, message
from sbpjax.sbp import algebra, process_local
from sbpjax.sbp.placement import placement as Placement

if TYPE_CHECKING:
    from sbpjax._core.tensor.handle.types import DeviceLike, DTypeLike, SbpLike

_SAID_PARTS = "Module.to_global of equal parts"


def _cast(module: Any, dtype: Any) -> Any:
    return module._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)


def warn_of_equal_parts(module: Any, placement: Any, sbp: Any) -> None:
    """Warn, once in a run, if the parts that a layout joins are equal on every process.

    OneFlow joins them silently; the warning explains how to divide the whole instead.
    """
    world = processes.current()
    if world.size < 2 or collective_trace.mode() == "off" or _SAID_PARTS in world.agreed:
        return
    if sbp is None or not isinstance(placement, Placement) or not placement.is_present:
        return
    named = [(name, parameter) for name, parameter in module.named_parameters() if _has_own_value(parameter)]
    if not named:
        return
    operation = f"{type(module).__name__}.to_global({placement!r}, {sbp!r})"
    ranks = process_local.ranks_of_equal_parts(operation, [payload(p) for _, p in named], placement, sbp, world)
    if not ranks:
        return
    world.agreed.add(_SAID_PARTS)
    if world.rank != ranks[0]:
        return
    name, first = named[0]
    rule = "in a job of several processes every process's tensor is one part: split joins parts, partial_sum adds them"
    fix = "first module.to_global(placement, sbpjax.sbp.broadcast), then module.to_global(sbp=...) divides the whole"
    like = f"{name}, local {first.dtype.name}{list(first.shape)} on each"
    seen = f"ranks {ranks_text(ranks)} hold equal parameters, such as {like}"
    warn(message(operation, seen, rule, fix))


def _has_own_value(parameter: Tensor) -> bool:
    if parameter.is_global or parameter.is_meta:
        return False
    array = payload(parameter)
    return not isinstance(array, Tracer) and array.size > 0  # lazy ones have no elements yet


def check_layouts(module: Any, placement: Any, sbp: Any) -> None:
    """Raise, before any tensor is laid out, for a layout that one of a module's tensors cannot have, by its name.

    Raises:
        SbpError: the sbp does not fit a tensor.
        MixedTensorError: a local tensor without both ``placement`` and ``sbp``.
    """
    operation = f"{type(module).__name__}.to_global(placement, sbp={sbp!r})"
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        label = f"{name}, {'global' if tensor.is_global else 'local'} {tensor.dtype.name}{list(tensor.shape)}"
        if tensor.is_local and (placement is None or sbp is None):
            missing = "placement" if placement is None else "sbp"
            rule = "a local tensor needs a placement and an sbp to become global"
            raise MixedTensorError(operation, f"{label}, and no {missing}", rule, "module.to_global(placement, sbp)")
        place = tensor.placement if placement is None else placement
        if sbp is None or not isinstance(place, Placement):
            continue
        algebra.parse(sbp, place, allow_free=True)
        try:
            algebra.parse(sbp, place, len(tensor.shape), allow_free=True)
        except SbpError as error:
            rule = f"every tensor of the module takes the sbp, and none is laid out if one cannot: {_rule_of(error)}"
            whole = "module.to_global(placement, sbpjax.sbp.broadcast)"
            single = "then lay out single layers"
            if not any(True for _ in module.children()):
                single = "then module.weight = nn.Parameter(module.weight.to_global(sbp=…)), tensor by tensor"
            raise SbpError(operation, label, rule, f"{whole}, {single}; {name} has {len(tensor.shape)} dims") from None


def _rule_of(error: SbpError) -> str:
    return next((line[8:] for line in str(error).splitlines() if line.startswith("  rule: ")), str(error))


class PlacementMethods:
    """Methods of `Module` that change the device, layout and dtype of its tensors, in place."""

    _apply: Any

    def to(self, *args: DeviceLike | DTypeLike | Tensor | bool | None, **kwargs: DeviceLike | DTypeLike | bool) -> Self:
        """Move or cast all tensors: ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``.

        Only floating-point tensors take a dtype. For placements use `to_global`.
        """
        if len(args) == 1 and isinstance(args[0], type):
            if issubclass(args[0], PlacementMethods):  # the module of a graph's proxy
                return self
            if hasattr(args[0], "of_module"):  # nn.graph.GraphModule: the graph's settings of this module
                return args[0].of_module(self)
        device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
        kwargs.pop("non_blocking", None)
        kwargs.pop("memory_format", None)
        operation, fix = f"{type(self).__name__}.to(...)", "model.to('cuda'), model.to(sbpjax.bfloat16)"
        if kwargs:
            seen = f"keyword argument {next(iter(kwargs))!r}"
            fail(
                "type", operation, seen, "it takes device=, dtype= and non_blocking=; for placements use to_global", fix
            )
        for arg in args:
            if isinstance(arg, Tensor):
                device, dtype = arg.device, arg.dtype
            elif isinstance(arg, dtype_class):
                dtype = arg
            elif isinstance(arg, (str, int, device_class)) and not isinstance(arg, bool) and device is None:
                device = arg
            elif not isinstance(arg, bool) and arg is not None:
                rule = "Module.to() takes a device, a dtype or a tensor; for placements use to_global"
                fail("type", operation, f"a {type(arg).__name__}", rule, fix)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            rule = "nn.Module.to only accepts floating point or complex dtypes"
            fail("type", operation, f"dtype={dtype}", rule, fix)

        def convert(tensor: Tensor) -> Tensor:
            if dtype is not None and (tensor.is_floating_point() or tensor.is_complex()):
                tensor = tensor.to(dtype)
            return tensor if device is None else tensor.to(device)

        return self._apply(convert)

    def float(self) -> Self:
        """Cast all floating-point tensors to float32."""
        return _cast(self, dtypes.float32)

    def double(self) -> Self:
        """Cast all floating-point tensors to float64."""
        return _cast(self, dtypes.float64)

    def half(self) -> Self:
        """Cast all floating-point tensors to float16."""
        return _cast(self, dtypes.float16)

    def bfloat16(self) -> Self:
        """Cast all floating-point tensors to bfloat16."""
        return _cast(self, dtypes.bfloat16)

    def cpu(self) -> Self:
        """Move all local tensors to the CPU."""
        return self.to("cpu")

    def cuda(self, device: int | str | None = None) -> Self:
        """Move all local tensors to a GPU."""
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    def to_global(self, placement: Placement | None = None, sbp: SbpLike | None = None) -> Self:
        """Distribute all parameters, gradients and buffers, in place.

        In a job of several processes every process's tensor is one part, as of `Tensor.to_global`. A module that all
        processes build alike is complete on each, so first make it broadcast, then split it.

        Args:
            placement: the devices; None keeps that of tensors which are global already.
            sbp: the layout of every tensor; give single layers another one by a call of their own afterwards.

        Returns:
            The module itself.

        Raises:
            SbpError: the sbp does not fit one of the tensors, which is named; none is laid out then.
            MixedTensorError: a tensor is local, and placement or sbp is not given; none is laid out then.

        Warns:
            UserWarning: a split or partial_sum of local parameters that are equal on all processes; warned once.

        Example:
            >>> model.to_global(flow.placement.all("cpu"), flow.sbp.broadcast)
            >>> model.mlp.to_global(sbp=flow.sbp.split(0))  # divides the whole, on any number of processes
        """
        check_layouts(self, placement, sbp)
        warn_of_equal_parts(self, placement, sbp)
        return self._apply(lambda t: t.to_global(placement=placement, sbp=sbp))

    def to_empty(
        self, *, device: DeviceLike | None = None, placement: Placement | None = None, sbp: SbpLike | None = None
    ) -> Self:
        """Allocate memory, with unspecified content, for all tensors, in place; for modules on ``device="meta"``.

        Args:
            device: where local tensors are made; a global one keeps its placement, as PyTorch's sharded ones do.
            placement: the devices; None keeps each global tensor's own.
            sbp: the layout of every tensor; None keeps each global tensor's own.

        Example:
            >>> with flow.abstract():
            ...     layer = nn.Linear(4, 4)
            >>> layer.to_empty(device="cpu").reset_parameters()
        """

        def empty(t: Tensor) -> Tensor:
            there, layout = (placement, sbp) if device is None or t.is_global else (None, None)
            if t.is_global:
                there, layout = placement or t.placement, t.sbp if sbp is None else sbp
            where = None if there is not None else "cpu" if device is None else device
            return creation.empty(*t.shape, dtype=t.dtype, device=where, placement=there, sbp=layout)

        return self._apply(empty)

    def to_local(self) -> Self:
        """Make all parameters, gradients and buffers local tensors, in place."""
        return self._apply(lambda t: t.to_local() if t.is_global else t)

    def type(self, dst_type: DTypeLike) -> Self:
        """Cast all tensors, integers included, to a dtype or to that of a type name such as ``"torch.FloatTensor"``."""
        return self._apply(lambda t: t.type(dst_type))

    def share_memory(self) -> Self:
        """Return self: arrays of JAX belong to one process; several processes hold shards of one global tensor."""
        return self

    def to_memory_format(self, memory_format: Any) -> Self:
        """Return self: XLA chooses the memory format."""
        return self

    def make_contiguous_params_group(self) -> None:
        """Do nothing: a compiled step fuses the updates of parameters without copying them together."""

    def to_consistent(self, *args: Any, **kwargs: Any) -> Self:
        """Raise: the old name of `to_global`."""
        rule = ".to_consistent has been removed, please use .to_global instead"
        fail(
            "shape", f"{type(self).__name__}.to_consistent(...)", "an old name", rule, "model.to_global(placement, sbp)"
        )

    def xpu(self, device: int | str | None = None) -> Self:
        """Move all local tensors to the accelerator."""
        return self.cuda(device)
