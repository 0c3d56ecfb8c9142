"""Differentiable collectives: they return new tensors, and backward applies the adjoint collective.

The loss of the run is the sum of the ranks' losses, as in `torch.distributed.nn.functional`:

    all_reduce (sum)   backward: all_reduce            all_gather        backward: reduce_scatter
    broadcast          backward: reduce to the source  reduce_scatter    backward: all_gather
    all_to_all         backward: all_to_all
"""

from __future__ import annotations

from typing import Any

from sbpjax._core.tensor.handle.tensor import Tensor, wrap
from sbpjax._core.tensor.tape.function import ACROSS, Function
from sbpjax.errors import OpTypeError

from . import bodies
from .collectives import op_name
from .group import ProcessGroup, ReduceOp, group_of, local_array, run


def _run(operation: str, body, group, x: Tensor, static: tuple = ()) -> Tensor:
    return wrap(run(operation, body, group, [local_array(operation, x)], static)[0])


def _require_linear_op(operation: str, op: ReduceOp) -> None:
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        rule = "the gradient is defined for sums and averages"
        raise OpTypeError(operation, f"{op}", rule, "ReduceOp.SUM, or sbpjax.distributed.all_reduce in place")


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, x, op, group):
        ctx.op, ctx.group = op, group
        return _run("functional.all_reduce(x)", bodies.all_reduce, group, x, (("op", op.value),))

    @staticmethod
    def backward(ctx, grad):
        return _AllReduce.apply(grad, ctx.op, ctx.group), None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx, x, group, operation="functional.all_gather(x)"):
        ctx.group = group
        return _run(operation, bodies.all_gather, group, x)

    @staticmethod
    def backward(ctx, grad):
        return _ReduceScatter.apply(grad, ReduceOp.SUM, ctx.group), None, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, x, op, group):
        ctx.op, ctx.group = op, group
        return _run("functional.reduce_scatter(x)", bodies.reduce_scatter, group, x, (("op", op.value),))

    @staticmethod
    def backward(ctx, grad):
        out = _AllGather.apply(grad, ctx.group)
        return (out / ctx.group.size() if ctx.op is ReduceOp.AVG else out), None, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return _run("functional.all_to_all(x)", bodies.all_to_all, group, x)

    @staticmethod
    def backward(ctx, grad):
        return _AllToAll.apply(grad, ctx.group), None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, x, place, group):
        ctx.place, ctx.group = place, group
        return _run("functional.broadcast(x)", bodies.broadcast, group, x, (("src", place),))

    @staticmethod
    def backward(ctx, grad):
        total = _AllReduce.apply(grad, ReduceOp.SUM, ctx.group)
        return (total if ctx.group.rank() == ctx.place else total * 0), None, None


def all_reduce(x: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Any:
    """Return the sum or average of ``x`` over the ranks."""
    _require_linear_op("functional.all_reduce(x)", op)
    op_name("functional.all_reduce(x)", op, local_array("functional.all_reduce(x)", x))
    return _AllReduce.apply(x, op, group_of(group))


def all_gather(x: Tensor, group: ProcessGroup | None = None, *, operation: str = "functional.all_gather(x)") -> Any:
    """Return ``x`` of all ranks, stacked in a new dim 0.

    Args:
        x: of one shape on all ranks.
        group: the ranks that take part; all by default.
        operation: the name of the call in errors.
    """
    return _AllGather.apply(x, group_of(group), operation)


def reduce_scatter(x: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Any:
    """Return on rank k of the group the sum or average of all ranks' ``x[k]``."""
    _require_linear_op("functional.reduce_scatter(x)", op)
    return _ReduceScatter.apply(x, op, group_of(group))


def all_to_all(x: Tensor, group: ProcessGroup | None = None) -> Any:
    """Return on rank k of the group the ``x[k]`` of all ranks, stacked."""
    return _AllToAll.apply(x, group_of(group))


def broadcast(x: Tensor, src: int, group: ProcessGroup | None = None) -> Any:
    """Return the ``x`` of rank ``src``; only that rank's ``x`` gets a gradient other than zero."""
    group = group_of(group)
    return _Broadcast.apply(x, group.index(src, "functional.broadcast(x)"), group)


ACROSS["all_gather"] = all_gather
