"""`torch.nn.parallel`'s functions: inputs cut into parts, one for each device, and results joined again.

scatter({"x": ones(6, 2), "k": 3}, [0, 1])      # ({"x": (3, 2), "k": 3}, {"x": (3, 2), "k": 3})
gather([ones(3, 2), ones(3, 2)], 0)             # (6, 2)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from sbpjax._core import functions
from sbpjax._core.tensor import Tensor


def scatter(inputs: Any, target_gpus: Sequence, dim: int = 0) -> Any:
    """Return one copy of a nest of values for each device, with tensors cut along a dim.

    Args:
        inputs: tensors in tuples, lists and dicts, and other values, which all parts have.
        target_gpus: the devices.
        dim: the dim that is cut.
    """
    count = len(target_gpus)

    def cut(value: Any) -> list:
        if isinstance(value, Tensor):
            return list(value.chunk(count, dim))
        if isinstance(value, dict) and value:
            return [type(value)(zip(value, row)) for row in zip(*map(cut, value.values()))]
        if isinstance(value, (tuple, list)) and value:
            rows = zip(*map(cut, value))
            make = type(value)
            return [make(*row) if hasattr(value, "_fields") else make(row) for row in rows]
        return [value] * count

    return cut(inputs)


def scatter_kwargs(inputs: Any, kwargs: Any, target_gpus: Sequence, dim: int = 0) -> tuple:
    """Return the positional and the keyword arguments of each device."""
    rows = scatter(tuple(inputs or ()), target_gpus, dim) if inputs else []
    names = scatter(dict(kwargs or {}), target_gpus, dim) if kwargs else []
    count = max(len(rows), len(names))
    return tuple(rows + [()] * (count - len(rows))), tuple(names + [{}] * (count - len(names)))


def gather(outputs: Sequence, target_device: Any, dim: int = 0) -> Any:
    """Return the results of all devices as one: tensors joined along a dim, nests leaf by leaf."""
    first = outputs[0]
    if isinstance(first, Tensor):
        return functions.cat([x.reshape(1) if x.ndim == 0 else x for x in outputs], 0 if first.ndim == 0 else dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return type(first)((key, gather([one[key] for one in outputs], target_device, dim)) for key in first)
    joined = [gather(row, target_device, dim) for row in zip(*outputs)]
    return type(first)(*joined) if hasattr(first, "_fields") else type(first)(joined)


def replicate(network: Any, devices: Sequence, detach: bool = False) -> list:
    """Return a copy of a module for each device, which shares its parameters."""
    return [copy.copy(network) for _ in devices]


def parallel_apply(modules: Sequence[Callable], inputs: Sequence, kwargs_tup: Any = None, devices: Any = None) -> list:
    """Return the results of each module on its own arguments."""
    names = kwargs_tup or [{}] * len(modules)
    rows = [row if isinstance(row, (tuple, list)) else (row,) for row in inputs]
    return [module(*row, **named) for module, row, named in zip(modules, rows, names, strict=True)]
