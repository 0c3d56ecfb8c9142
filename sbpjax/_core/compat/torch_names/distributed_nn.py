"""`torch.distributed.nn`: collectives through which gradients travel; they return new tensors.

The loss of the run is the sum of the ranks' losses, as in `sbpjax.distributed.functional`, which these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sbpjax._core import functions
from sbpjax._core.tensor import Tensor
from sbpjax.distributed import functional as _f
from sbpjax.distributed.functional import all_reduce as all_reduce
from sbpjax.distributed.functional import broadcast as broadcast
from sbpjax.distributed.group import ReduceOp, group_of


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Return every rank's tensor."""
    return _f.all_gather(tensor, group).unbind()


def reduce_scatter(output: Any, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the sum or average over the ranks of their tensors for this one; `output` is left alone."""
    return _f.reduce_scatter(functions.stack(input_list), op, group)


def all_to_all(output_tensor_list: Any, input_tensor_list: Sequence[Tensor], group: Any = None) -> tuple[Tensor, ...]:
    """Return the tensors that the ranks have for this one, all of one shape; the output list is left alone."""
    return _f.all_to_all(functions.stack(input_tensor_list), group).unbind()


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """Return every rank's tensor on rank `dst`, and zeros on the others, as PyTorch does."""
    group = group_of(group)
    parts = all_gather(tensor, group)
    return parts if group.rank() == group.index(dst, "gather(tensor)") else tuple(part * 0 for part in parts)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """Return the tensor that rank `src` has for this one; every rank gives a list of as many tensors."""
    group = group_of(group)
    return _f.broadcast(functions.stack(tensors), src, group)[group.rank()]


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the sum or average over the ranks on rank `dst`, and the rank's own tensor on the others."""
    group = group_of(group)
    total = _f.all_reduce(tensor, op, group)
    return total if group.rank() == group.index(dst, "reduce(tensor)") else tensor + 0 * total
