"""`torch.distributed._functional_collectives`: collectives that return new tensors, as PyTorch's compiled programs use.

    all_reduce(x, "sum", mesh)                     # a group, a mesh, (mesh, axis) or a list of ranks
    wait_tensor(all_gather_tensor(x, 0, group))    # wait_tensor returns its argument: JAX waits where values are read

Gradients travel through all of them, also through those without ``_autograd``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sbpjax._core import functions
from sbpjax._core.tensor import Tensor
from sbpjax.distributed import functional as _f
from sbpjax.distributed.group import ProcessGroup, ReduceOp, group_of
from sbpjax.errors import OpValueError

from .dtensor.mesh import DeviceMesh


class AsyncCollectiveTensor:
    """Nothing is of this class: a result is a tensor that JAX computes in the background."""


def _group_of(group: Any) -> ProcessGroup:
    """Return the group of a ProcessGroup, a mesh, a mesh and an axis, or a list of ranks; all ranks for None."""
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, tuple):
        return group[0].get_group(group[1])
    return ProcessGroup(group) if isinstance(group, list) else group_of(group)


def wait_tensor(tensor: Tensor) -> Tensor:
    """Return the tensor."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """Return the ``"sum"`` or ``"avg"`` over the ranks.

    Args:
        self: of one shape on all ranks.
        reduceOp: the reduction.
        group: the ranks.
        tag: accepted.
    """
    return _f.all_reduce(self, ReduceOp(reduceOp.lower()), _group_of(group))


def all_reduce_coalesced(self: Sequence[Tensor], reduceOp: str, group: Any, tag: str = "") -> list[Tensor]:
    """Return `all_reduce` of each tensor of a list."""
    return [all_reduce(x, reduceOp, group) for x in self]


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """Return the ranks' tensors joined along a dim."""
    return functions.cat(_f.all_gather(self, _group_of(group)).unbind(), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """Return this rank's part, along a dim, of the ``"sum"`` or ``"avg"`` over the ranks.

    Args:
        self: of one shape on all ranks.
        reduceOp: the reduction.
        scatter_dim: a dim that divides by the number of ranks.
        group: the ranks.
        tag: accepted.
    """
    group = _group_of(group)
    parts = _cut(self, scatter_dim, group.size(), "reduce_scatter_tensor(x)")
    return _f.reduce_scatter(functions.stack(parts), ReduceOp(reduceOp.lower()), group)


def all_to_all_single(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = ""
) -> Tensor:
    """Return the parts along dim 0 that the ranks have for this one, joined.

    Args:
        self: cut into one part per rank.
        output_split_sizes: the sizes of the parts received, all equal; or None.
        input_split_sizes: the sizes of the parts sent, all equal; or None.
        group: the ranks.
        tag: accepted.

    Raises:
        OpValueError: parts of different sizes.
    """
    operation, group = "all_to_all_single(x)", _group_of(group)
    sizes = {*(output_split_sizes or ()), *(input_split_sizes or ())}
    if len(sizes) > 1:
        seen = f"{output_split_sizes} and {input_split_sizes}"
        raise OpValueError(operation, seen, "the parts of all ranks have one size", "pad the parts to the largest")
    parts = _cut(self, 0, group.size(), operation)
    return functions.cat(_f.all_to_all(functions.stack(parts), group).unbind(), 0)


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """Return the tensor of rank `src`."""
    return _f.broadcast(self, src, _group_of(group))


def permute_tensor(self: Tensor, src_dst: list[int], group: Any, tag: str = "") -> Tensor:
    """Return the tensor of the rank that sends to this one: rank k sends to rank ``src_dst[k]``."""
    group = _group_of(group)
    return _f.all_gather(self, group)[src_dst.index(group.rank())]


def _cut(x: Tensor, dim: int, count: int, operation: str) -> Sequence[Tensor]:
    if x.shape[dim] % count:
        rule, seen = f"dim {dim} divides by the {count} ranks", f"shape {tuple(x.shape)}"
        raise OpValueError(operation, seen, rule, "pad the tensor")
    return x.chunk(count, dim)


all_gather_single = all_gather_tensor_autograd = all_gather_single_autograd = all_gather_tensor
reduce_scatter_single = reduce_scatter_tensor_autograd = reduce_scatter_single_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
