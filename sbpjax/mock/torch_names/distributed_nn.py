"""`torch.distributed.nn`: collectives through which gradients travel; they return new tensors.

The loss of the run is the sum of the ranks' losses, as in `sbpjax.distributed.functional`, which these are.
"""

from __future__ import annotations

from typing import Any

from sbpjax import functions
from sbpjax.distributed import ReduceOp as ReduceOp
from sbpjax.distributed import functional as _f
from sbpjax.distributed.group import group_of
from sbpjax.tensor import Tensor

from .absent import absent


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the reduction of all ranks' tensors."""
    return _f.all_reduce(tensor, op, group)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Return every rank's tensor."""
    count = group_of(group).size()
    whole = tensor.unsqueeze(0) if tensor.ndim == 0 else tensor
    parts = _f.all_gather(whole, group).chunk(count)
    return tuple(part.reshape(tensor.shape) for part in parts)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Return one rank's tensor."""
    return _f.broadcast(tensor, src, group)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return this rank's part of the reduction of lists with one tensor per rank."""
    return _f.reduce_scatter(functions.cat(list(input_list)), op, group)


RemoteModule = absent(
    "torch.distributed.nn.RemoteModule", "modules are called in the process that has them", "a global module"
)
