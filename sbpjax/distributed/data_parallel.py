"""`DistributedDataParallel`: data parallelism of local modules under PyTorch's name.

    model = sbpjax.nn.parallel.DistributedDataParallel(model)     # on every rank; each has its own batches
    loss_fn(model(x), y).backward()                               # .grad is the average over the ranks

A global module does not need it: its parameters are ``broadcast``, its input ``split(0)``, and the reduction of the
gradients is part of the plan. If wrapped, it is called unchanged.
"""

from __future__ import annotations

import contextlib
from typing import Any

from sbpjax._core import naming
from sbpjax._core.runtime import processes
from sbpjax._core.tensor.creation.like import zeros_like
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.tape import engine
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax._core.tensor.tape.row_grad import RowGrad
from sbpjax._core.tracing.functional_call import functional_call
from sbpjax.distributed import all_reduce_gradients, broadcast_coalesced
from sbpjax.distributed.global_view import global_mode, to_global, to_local
from sbpjax.errors import AgreementError, AutogradError, MixedTensorError, OpTypeError
from sbpjax.nn.module import Module
from sbpjax.sbp import broadcast, split
from sbpjax.sbp.placement import placement as Placement

_MEGABYTE = 1 << 20


class DistributedDataParallel(Module):
    """A local module whose gradients are averaged over the ranks; with one rank, the module itself.

    Parameters and buffers of rank 0 are copied to all ranks at the start. After every backward all gradients are
    averaged in one compiled program, in buckets. A parameter that got none on a rank counts there as zeros, as in
    OneFlow. In a program that imports the package as torch it is an error at the next forward, as in PyTorch, unless
    ``find_unused_parameters`` is set.

    Args:
        module: a module of local parameters, or of global ones, which need no help.
        device_ids: kept for its spelling; tensors know where they are.
        output_device: kept for its spelling.
        dim: kept for its spelling.
        broadcast_buffers: copy rank 0's buffers to all ranks at the start and before every forward in training; if not,
            each rank keeps its own.
        process_group: the ranks that share the module; all by default.
        bucket_cap_mb: the size of a bucket of gradients.
        find_unused_parameters: leave the ``.grad`` of parameters None that no rank has a gradient for; the ranks
            compare after every backward.
        gradient_as_bucket_view: kept for its spelling.
        static_graph: as ``find_unused_parameters``: the parameters of a static graph may go without a gradient.
        broadcast_parameters: copy rank 0's parameters and buffers at the start (OneFlow's option).
        bucket_size: kept for its spelling (OneFlow's option).

    Raises:
        MixedTensorError: some parameters are global and some local.
        AgreementError: the ranks' modules have different parameters.
    """

    def __init__(
        self,
        module: Module,
        device_ids=None,
        output_device=None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float = 25,
        find_unused_parameters: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        *,
        broadcast_parameters: bool = True,
        bucket_size: int = 10,
    ) -> None:
        super().__init__()
        self.module = module
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters or static_graph
        self._strict = naming.is_torch() and not self.find_unused_parameters
        self._cap_bytes = int(bucket_cap_mb * _MEGABYTE)
        self._names = [n for n, p in module.named_parameters() if p.requires_grad]
        self._shared = [p for p in module.parameters() if p.requires_grad]
        self._arrived: set[int] = set()  # in the current backward
        self._missing: list[int] = []  # in the last one
        self._averages = False  # the current backward passes through outputs whose gradients are to be averaged
        self._opaque = False  # the outputs have no tensors to put hooks on: every backward is averaged
        self._sync = True
        self._group = process_group
        self._active = self._is_local() and len(_members(process_group)) > 1
        if not self._active:
            return
        self._check_agreement()
        if broadcast_parameters:
            self._broadcast([*module.parameters(), *(module.buffers() if broadcast_buffers else ())])
        for index, parameter in enumerate(self._shared):
            parameter.register_post_accumulate_grad_hook(self._hook(index))

    def forward(self, *inputs, **keywords):
        """Call the module; a backward through its result averages the gradients."""
        if not self._active:
            return self.module(*inputs, **keywords)
        if self._missing:
            raise self._unfinished_error()
        if self.broadcast_buffers and self._sync and self.module.training:
            self._broadcast(list(self.module.buffers()))
        outputs = self.module(*inputs, **keywords)
        if mode.grad:
            found = [t for t in _tensors(outputs) if t.requires_grad] if self._sync else []
            self._opaque = self._sync and (not found or any(t.is_leaf for t in found))
            for t in found:
                if not t.is_leaf:  # a leaf would keep the hook for ever
                    t.register_hook(self._on_output_grad)
        return outputs

    @contextlib.contextmanager
    def no_sync(self):
        """Leave the gradients of forwards within the block to add up on each rank; the next backward averages them."""
        before, self._sync = self._sync, False
        try:
            yield
        finally:
            self._sync = before

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "module":
                raise
            return getattr(super().__getattr__("module"), name)  # OneFlow's returns the module itself

    # -- gradients ---------------------------------------------------------------------------------------------------

    def _hook(self, index: int):
        def note_arrival(parameter) -> None:
            self._arrived.add(index)
            engine.register_end_callback(id(self), self._on_backward_end)

        return note_arrival

    def _on_output_grad(self, grad) -> None:
        # The outputs come first in a backward, on every rank: one that reaches no parameter must average as well.
        self._averages = True
        engine.register_end_callback(id(self), self._on_backward_end)

    def _on_backward_end(self) -> None:
        arrived, averages = self._arrived, self._averages or self._opaque
        self._arrived, self._averages = set(), False
        if not averages:
            return
        if self._strict:
            self._missing = [i for i, p in enumerate(self._shared) if p.requires_grad and i not in arrived]
            if self._missing:
                return
        self._reduce()

    def _reduce(self) -> None:
        self._check_dense()
        chosen = [p for p in self._shared if p.requires_grad]
        if self.find_unused_parameters:
            mine = tuple(p.grad is not None for p in chosen)
            gathered = processes.current().exchange("averaging gradients", mine, _members(self._group))
            used = [any(flags) for flags in zip(*gathered.values(), strict=True)]
            chosen = [p for p, is_used in zip(chosen, used, strict=True) if is_used]
        for p in chosen:
            if p.grad is None:
                p.grad = zeros_like(p.detach())
        all_reduce_gradients([p.grad for p in chosen if p.grad is not None], self._group, self._cap_bytes)

    def _check_dense(self) -> None:
        sparse = [n for n, p in zip(self._names, self._shared, strict=True) if p.grad.__class__ is RowGrad]
        if sparse:
            raise OpTypeError(
                "averaging gradients",
                f"{sparse[0]} has a gradient of rows",
                "DistributedDataParallel averages dense gradients",
                "sbpjax.nn.Embedding(..., sparse=False); or a global module, whose tables may be sparse",
            )

    def _unfinished_error(self) -> AutogradError:
        names = [self._names[i] for i in self._missing]
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        self._missing = []
        return AutogradError(
            "DistributedDataParallel(module)(...)",
            f"the last backward gave no gradient to {shown}",
            "Expected to have finished reduction in the prior iteration before starting a new one: every parameter "
            "gets a gradient in every backward, or the ranks do not average them",
            "DistributedDataParallel(module, find_unused_parameters=True)",
        )

    # -- state -------------------------------------------------------------------------------------------------------

    def _is_local(self) -> bool:
        kinds = {p.is_global for p in self.module.parameters()}
        if len(kinds) > 1:
            local = [n for n, p in self.module.named_parameters() if not p.is_global]
            raise MixedTensorError(
                "DistributedDataParallel(module)",
                f"local parameters {local[:4]} besides global ones",
                "the parameters are all local, or all global (and data parallel by their layouts)",
                "module.to_global(placement, sbpjax.sbp.broadcast)",
            )
        return kinds != {True}

    def _check_agreement(self) -> None:
        mine = [(n, tuple(p.shape), p.dtype.name) for n, p in self.module.named_parameters()]
        gathered = processes.current().exchange("DistributedDataParallel(module)", mine, _members(self._group))
        first_rank, first = next(iter(gathered.items()))
        for rank, theirs in gathered.items():
            if theirs == first:
                continue
            pairs = zip(first + [None] * len(theirs), theirs + [None] * len(first), strict=False)
            a, b = next((a, b) for a, b in pairs if a != b)
            raise AgreementError(
                "DistributedDataParallel(module)",
                f"rank {first_rank} has {_describe_parameter(a)}, rank {rank} has {_describe_parameter(b)}",
                "all ranks wrap the same module",
                "build the module alike on all ranks",
            )

    def _broadcast(self, tensors: list[Tensor]) -> None:
        if tensors:
            broadcast_coalesced(tensors, _members(self._group)[0], self._group)


def _describe_parameter(parameter) -> str:
    return "no such parameter" if parameter is None else f"{parameter[0]!r} {parameter[2]}{list(parameter[1])}"


def _members(group) -> tuple[int, ...]:
    return tuple(range(processes.current().size)) if group is None else group.ranks


def _tensors(value):
    """Yield the tensors in nested lists, tuples and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


@contextlib.contextmanager
def split_inputs(placement: Placement, dim: int, args: Any, kwargs: Any):
    """Give local inputs split over a placement, within a view in which new tensors are on it."""
    layout = [split(dim)] * len(placement.hierarchy)
    copies = [broadcast] * len(layout)

    def sbp_of(_: Any, x: Tensor) -> Any:
        return layout if x.ndim > dim else copies

    with global_mode(True, placement=placement, sbp=copies):
        yield to_global((args, kwargs), placement, sbp_of)


class DataParallel(Module):
    """A local module that computes on all devices of this process, with PyTorch's names: its state has ``module.``.

    Local inputs are split along a dim over the devices, parameters are copied to them, and results are joined. A module
    of global tensors, and one in a process with one device, is called as it is. Statistics of batch normalization are
    those of the whole batch; PyTorch's are those of the first device's part.

    Args:
        module: the module.
        device_ids: the numbers of the devices; all of this process by default.
        output_device: kept for its spelling: results are where the module's parameters are.
        dim: the dim that is split.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        self.module, self.dim, self.output_device = module, dim, output_device
        self.device_ids = [getattr(one, "index", one) for one in device_ids or []]

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module on its devices."""
        placement = self._placement()
        if placement is None or all(t.is_global for t in _tensors((inputs, kwargs))):
            return self.module(*inputs, **kwargs)
        named = [*self.module.named_parameters(), *self.module.named_buffers()]
        copies = {name: value.to_global(placement, broadcast) for name, value in named}
        versions = {name: copies[name]._version for name, _ in self.module.named_buffers()}
        with split_inputs(placement, self.dim, inputs, kwargs) as (inputs, kwargs):
            out = functional_call(self.module, copies, inputs, kwargs)
        with no_grad():
            for name, buffer in self.module.named_buffers():
                if copies[name]._version != versions[name]:
                    buffer.copy_(copies[name].to_local())
        return to_local(out)

    def _placement(self) -> Placement | None:
        first = next(self.module.parameters(), None)
        if first is None or first.is_global or mode.capture is not None or processes.current().size > 1:
            return None
        kind = first.device.type
        ranks = self.device_ids or list(range(Placement.all(kind).ranks.size))
        return Placement(kind, ranks) if len(ranks) > 1 else None


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Return ``module(*inputs)``, computed on all devices of this process; see `DataParallel`.

    Args:
        module: a local module.
        inputs: its argument, or a tuple of them.
        device_ids: as for `DataParallel`.
        output_device: likewise.
        dim: likewise.
        module_kwargs: its keyword arguments.
    """
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*args, **(module_kwargs or {}))
