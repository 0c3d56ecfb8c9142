"""`torch.nn.parallel`: data parallelism of one process, which copies modules and scatters batches.

One process drives all devices through global tensors here, so a module is its only replica: `scatter` gives one part
per device, `replicate` the module itself as often, and `parallel_apply` calls them in turn. What is spread over devices
is a tensor with ``split(0)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sbpjax import functions
from sbpjax.distributed.data_parallel import DistributedDataParallel as DistributedDataParallel
from sbpjax.nn.data_parallel import DataParallel as DataParallel
from sbpjax.tensor import Tensor

from .absent import absent

DistributedDataParallelCPU = DistributedDataParallel


def _is_namedtuple(obj: Any) -> bool:
    """Return whether an object is a tuple with names."""
    return isinstance(obj, tuple) and hasattr(obj, "_fields")


is_namedtuple = _is_namedtuple


def scatter(inputs: Any, target_gpus: Sequence, dim: int = 0) -> list:
    """Return one part per device: tensors chunked, containers of parts, and anything else as it is.

    Args:
        inputs: a tensor, or tuples, lists and dicts of tensors.
        target_gpus: the devices; only their number counts.
        dim: the dim that is chunked.
    """
    count = len(target_gpus)
    if isinstance(inputs, Tensor):
        return list(inputs.chunk(count, dim))
    if _is_namedtuple(inputs):
        return [type(inputs)(*parts) for parts in zip(*(scatter(i, target_gpus, dim) for i in inputs), strict=False)]
    if isinstance(inputs, (tuple, list)) and inputs:
        parts = zip(*(scatter(i, target_gpus, dim) for i in inputs), strict=False)
        return [type(inputs)(part) for part in parts]
    if isinstance(inputs, dict) and inputs:
        parts = zip(*(scatter(i, target_gpus, dim) for i in inputs.values()), strict=False)
        return [type(inputs)(zip(inputs, part, strict=True)) for part in parts]
    return [inputs for _ in range(count)]


def scatter_kwargs(inputs: tuple, kwargs: dict | None, target_gpus: Sequence, dim: int = 0) -> tuple:
    """Return the parts of positional and of keyword arguments, as many of the one as of the other."""
    first = scatter(inputs, target_gpus, dim) if inputs else []
    second = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(first), len(second))
    first += [() for _ in range(count - len(first))]
    second += [{} for _ in range(count - len(second))]
    return tuple(first), tuple(second)


def gather(outputs: Sequence, target_device: Any = None, dim: int = 0) -> Any:
    """Return the parts as one: tensors along a dim (numbers as a vector), containers by their elements."""
    first = outputs[0]
    if isinstance(first, Tensor):
        if first.ndim == 0:
            return functions.stack(list(outputs))
        return functions.cat(list(outputs), dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return type(first)((key, gather([out[key] for out in outputs], target_device, dim)) for key in first)
    parts = [gather(part, target_device, dim) for part in zip(*outputs, strict=True)]
    return type(first)(*parts) if _is_namedtuple(first) else type(first)(parts)


def replicate(network: Any, devices: Sequence, detach: bool = False) -> list:
    """Return the module itself, once per device: its parameters are where they are laid out."""
    return [network for _ in devices]


def parallel_apply(modules: Sequence, inputs: Sequence, kwargs_tup: Any = None, devices: Any = None) -> list:
    """Return each module's output of its part of the input."""
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    given = [part if isinstance(part, (tuple, list)) else (part,) for part in inputs]
    return [module(*part, **kwargs) for module, part, kwargs in zip(modules, given, kwargs_tup, strict=True)]


def data_parallel(
    module: Any, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None
) -> Any:
    """Return the module's output of the whole input: how it is spread over devices is in its layout.

    Args:
        module: the module.
        inputs: its input, or a tuple of them.
        device_ids: accepted.
        output_device: accepted.
        dim: accepted.
        module_kwargs: keyword arguments.
    """
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


_WHY = "copies between GPUs are conversions of layouts here"
broadcast = absent("torch.nn.parallel.comm.broadcast", _WHY, "x.to_global(placement, sbpjax.sbp.broadcast)")
broadcast_coalesced = absent(
    "torch.nn.parallel.comm.broadcast_coalesced", _WHY, "sbpjax.distributed.broadcast_coalesced"
)
reduce_add = absent("torch.nn.parallel.comm.reduce_add", _WHY, "sum(tensors)")
reduce_add_coalesced = absent("torch.nn.parallel.comm.reduce_add_coalesced", _WHY, "[sum(g) for g in zip(*tensors)]")
Broadcast = absent("torch.nn.parallel._functions.Broadcast", _WHY, "x.to_global(placement, sbpjax.sbp.broadcast)")
Gather = absent("torch.nn.parallel._functions.Gather", _WHY, "x.to_global(placement, sbpjax.sbp.broadcast)")
Scatter = absent("torch.nn.parallel._functions.Scatter", _WHY, "x.to_global(placement, sbpjax.sbp.split(0))")
ReduceAddCoalesced = absent("torch.nn.parallel._functions.ReduceAddCoalesced", _WHY, "[sum(g) for g in zip(*tensors)]")


def get_a_var(obj: Any) -> Tensor | None:
    """Return the first tensor in nested containers."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, dict):
        obj = obj.items()
    if isinstance(obj, (list, tuple)) or hasattr(obj, "__iter__") and not isinstance(obj, (str, bytes)):
        for value in obj:
            found = get_a_var(value)
            if found is not None:
                return found
    return None
