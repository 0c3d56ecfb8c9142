"""Collectives on local tensors under PyTorch's names: each rank calls them with its own tensor.

    x = sbpjax.tensor([1.0 + rank])
    sbpjax.distributed.all_reduce(x)        # in place; four ranks: x == [10.] on all

Ranks given as ``src`` and ``dst`` are ranks of the run, as in PyTorch, whatever the group. A process that is not in the
group returns at once. None of these is recorded on the tape; those of `sbpjax.distributed.functional` are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from sbpjax._core.runtime import processes
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.payload import payload, put
from sbpjax.errors import OpError, OpTypeError, OpValueError

from . import bodies
from .group import ProcessGroup, ReduceOp, Work, group_of, local_array, run


def op_name(operation: str, op, array) -> str:
    """Return the name of a reduction.

    Raises:
        OpTypeError: it is no `ReduceOp`, or not defined for the dtype.
    """
    if not isinstance(op, ReduceOp):
        raise OpTypeError(operation, f"op={op!r}", "op is a ReduceOp", "sbpjax.distributed.ReduceOp.SUM")
    kind = array.dtype.kind
    if op is ReduceOp.AVG and kind in "iub":
        rule = "an average of integers is no integer"
        raise OpTypeError(operation, f"{array.dtype}", rule, "x.float(), or ReduceOp.SUM")
    if op.value.startswith("b") and kind not in "iub":
        raise OpTypeError(operation, f"{array.dtype}", "bitwise reductions are of integers", "ReduceOp.SUM")
    return op.value


@hide_mesh
def _write(x: Tensor, array: jax.Array) -> None:
    """Put a result into a tensor in place, on the device where it was; the tape does not see it."""
    (where,) = payload(x).devices()
    if array.devices() != {where}:
        array = jax.device_put(array, where)
    put(x, array if array.shape == tuple(x.shape) else array.reshape(tuple(x.shape)))


def _make_work(tensors: Sequence[Tensor], async_op: bool) -> Work | None:
    return Work(tensors) if async_op else None


@hide_mesh
def _stack_tensors(operation: str, tensors: Sequence[Tensor], n: int) -> jax.Array:
    """Return ``n`` tensors of one shape as one array."""
    arrays = [local_array(operation, t) for t in tensors]
    if len(arrays) != n:
        rule = f"the list has one tensor per rank of the group: {n}"
        raise OpValueError(operation, f"{len(arrays)} tensors", rule, f"pass {n} tensors")
    if len({(a.shape, a.dtype) for a in arrays}) > 1:
        seen = ", ".join(f"{a.dtype}{list(a.shape)}" for a in arrays)
        rule = "the tensors of the list have one shape and dtype"
        raise OpError(operation, seen, rule, "pad them to one shape")
    (where,) = arrays[0].devices()
    return jnp.stack([jax.device_put(a, where) for a in arrays])


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False):
    """Replace ``tensor`` on every rank by the reduction over all ranks; returns a `Work` if ``async_op``."""
    operation, group = "all_reduce(tensor)", group_of(group)
    if group.rank() < 0:
        return None
    array = local_array(operation, tensor)
    _write(tensor, run(operation, bodies.all_reduce, group, [array], (("op", op_name(operation, op, array)),))[0])
    return _make_work([tensor], async_op)


def all_reduce_coalesced(
    tensors: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
):
    """Reduce every tensor of a list in place, all in one program."""
    operation, group = "all_reduce_coalesced(tensors)", group_of(group)
    if group.rank() < 0 or not tensors:
        return None
    arrays = [local_array(operation, t) for t in tensors]
    for array in arrays:
        name = op_name(operation, op, array)
    for t, out in zip(tensors, run(operation, bodies.all_reduce, group, arrays, (("op", name),)), strict=True):
        _write(t, out)
    return _make_work(tensors, async_op)


def all_reduce_gradients(grads: Sequence[Tensor], group: ProcessGroup | None, cap_bytes: int) -> None:
    """Replace every gradient of a list by the average over the ranks, in one program with buckets of ``cap_bytes``."""
    operation, group = "averaging gradients", group_of(group)
    if group.rank() < 0 or not grads:
        return
    arrays = [local_array(operation, g) for g in grads]
    outs = run(operation, bodies.average, group, arrays, (("cap_bytes", cap_bytes),))
    for grad, out in zip(grads, outs, strict=True):
        _write(grad, out)


def reduce(
    tensor: Tensor,
    dst: int,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
):
    """Replace ``tensor`` on rank ``dst`` by the reduction over all ranks; on the others it stays as it is."""
    operation, group = f"reduce(tensor, dst={dst})", group_of(group)
    if group.rank() < 0:
        return None
    place = group.index(dst, operation)
    array = local_array(operation, tensor)
    out = run(operation, bodies.all_reduce, group, [array], (("op", op_name(operation, op, array)),))[0]
    if group.rank() == place:
        _write(tensor, out)
    return _make_work([tensor], async_op)


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None, async_op: bool = False):
    """Replace ``tensor`` on every rank by that of rank ``src``."""
    operation, group = f"broadcast(tensor, src={src})", group_of(group)
    if group.rank() < 0:
        return None
    static = (("src", group.index(src, operation)),)
    _write(tensor, run(operation, bodies.broadcast, group, [local_array(operation, tensor)], static)[0])
    return _make_work([tensor], async_op)


def broadcast_coalesced(tensors: Sequence[Tensor], src: int, group: ProcessGroup | None = None) -> None:
    """Replace every tensor of a list by that of rank ``src``, all in one program."""
    operation, group = f"broadcast_coalesced(tensors, src={src})", group_of(group)
    if group.rank() < 0 or not tensors:
        return
    arrays = [local_array(operation, t) for t in tensors]
    outs = run(operation, bodies.broadcast, group, arrays, (("src", group.index(src, operation)),))
    for t, out in zip(tensors, outs, strict=True):
        _write(t, out)


@hide_mesh
def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False):
    """Put the tensor of every rank into ``tensor_list``, in the order of the ranks, on every rank."""
    operation, group = "all_gather(tensor_list, tensor)", group_of(group)
    if group.rank() < 0:
        return None
    _check_list(operation, tensor_list, tensor, group.size())
    (out,) = run(operation, bodies.all_gather, group, [local_array(operation, tensor)])
    for k, t in enumerate(tensor_list):
        _write(t, out[k])
    return _make_work(tensor_list, async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
):
    """Put the tensors of all ranks into ``output_tensor``, one after the other; any shape of as many elements."""
    operation, group = "all_gather_into_tensor(output_tensor, input_tensor)", group_of(group)
    if group.rank() < 0:
        return None
    array, n = local_array(operation, input_tensor), group.size()
    _check_size(operation, output_tensor, (n, *array.shape), array.dtype)
    _write(output_tensor, run(operation, bodies.all_gather, group, [array])[0])
    return _make_work([output_tensor], async_op)


@hide_mesh
def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
):
    """Put the tensor of every rank into ``gather_list`` on rank ``dst``."""
    operation, group = f"gather(tensor, gather_list, dst={dst})", group_of(group)
    if group.rank() < 0:
        return None
    receives = group.rank() == group.index(dst, operation)
    if receives:
        _check_list(operation, gather_list, tensor, group.size())
    elif gather_list:
        rule = "gather_list is given on rank dst only"
        raise OpValueError(operation, f"a list on rank {group.rank()}", rule, "gather_list=None elsewhere")
    (out,) = run(operation, bodies.all_gather, group, [local_array(operation, tensor)])
    for k, t in enumerate(gather_list or ()):
        _write(t, out[k])
    return _make_work(gather_list if receives and gather_list else [tensor], async_op)


@hide_mesh
def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
):
    """Put the k-th tensor of rank ``src``'s list into ``tensor`` on rank k of the group."""
    operation, group = f"scatter(tensor, scatter_list, src={src})", group_of(group)
    if group.rank() < 0:
        return None
    place, n = group.index(src, operation), group.size()
    array = local_array(operation, tensor)
    if group.rank() == place:
        _check_list(operation, scatter_list, tensor, n)
        rows = _stack_tensors(operation, scatter_list or [], n)
    else:
        rows = jnp.zeros((n, *array.shape), array.dtype)
    _write(tensor, run(operation, bodies.scatter, group, [rows], (("src", place),))[0])
    return _make_work([tensor], async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
):
    """Put the reduction of all ranks' k-th tensors into ``output`` on rank k of the group."""
    operation, group = "reduce_scatter(output, input_list)", group_of(group)
    if group.rank() < 0:
        return None
    rows = _stack_tensors(operation, input_list, group.size())
    _check_shape(operation, output, (rows.shape[1:],), rows.dtype)
    _write(output, run(operation, bodies.reduce_scatter, group, [rows], (("op", op_name(operation, op, rows)),))[0])
    return _make_work([output], async_op)


@hide_mesh
def reduce_scatter_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
):
    """Put the reduction of all ranks' k-th parts into ``output_tensor`` on rank k of the group.

    Args:
        output_tensor: the result; any shape.
        input_tensor: the parts of all ranks one after the other, n times the elements of the output; any shape.
        op: how the ranks' parts are reduced.
        group: the ranks; by default all.
        async_op: return a handle at once.
    """
    operation, group = "reduce_scatter_tensor(output_tensor, input_tensor)", group_of(group)
    if group.rank() < 0:
        return None
    array, n, wanted = local_array(operation, input_tensor), group.size(), tuple(output_tensor.shape)
    _check_size(operation, input_tensor, (n, *wanted), payload(output_tensor).dtype)
    rows = array.reshape((n, *wanted))
    _write(
        output_tensor, run(operation, bodies.reduce_scatter, group, [rows], (("op", op_name(operation, op, rows)),))[0]
    )
    return _make_work([output_tensor], async_op)


@hide_mesh
def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
):
    """Send the k-th input to rank k of the group, and store the tensor of rank k in the k-th output."""
    operation, group = "all_to_all(output_tensor_list, input_tensor_list)", group_of(group)
    if group.rank() < 0:
        return None
    rows = _stack_tensors(operation, input_tensor_list, group.size())
    _check_list(operation, output_tensor_list, input_tensor_list[0], group.size())
    (out,) = run(operation, bodies.all_to_all, group, [rows])
    for k, t in enumerate(output_tensor_list):
        _write(t, out[k])
    return _make_work(output_tensor_list, async_op)


@hide_mesh
def all_to_all_single(output: Tensor, input: Tensor, group: ProcessGroup | None = None, async_op: bool = False):
    """Send the k-th of n equal parts along dim 0 to rank k of the group; join the parts received in ``output``."""
    operation, group = "all_to_all_single(output, input)", group_of(group)
    if group.rank() < 0:
        return None
    array, n = local_array(operation, input), group.size()
    if not array.ndim or array.shape[0] % n:
        rule = f"dim 0 divides by the {n} ranks"
        raise OpValueError(operation, f"{array.dtype}{list(array.shape)}", rule, "pad the input")
    _check_shape(operation, output, (array.shape,), array.dtype)
    rows = array.reshape((n, array.shape[0] // n, *array.shape[1:]))
    _write(output, run(operation, bodies.all_to_all, group, [rows])[0])
    return _make_work([output], async_op)


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids=None):
    """Wait until every rank of the group arrives.

    Raises:
        LostRankError: ranks did not arrive within the timeout; the text names them.
    """
    group = group_of(group)
    if group.rank() >= 0:
        processes.current().exchange("barrier()", None, group.ranks)
    return _make_work([], async_op)


def _check_list(operation: str, tensors, like: Tensor, n: int) -> None:
    array = local_array(operation, like)
    if not isinstance(tensors, (list, tuple)) or len(tensors) != n:
        seen = f"{len(tensors)} tensors" if isinstance(tensors, (list, tuple)) else f"{tensors!r}"
        rule = f"the list has one tensor per rank of the group: {n}"
        raise OpValueError(operation, seen, rule, f"[sbpjax.empty_like(tensor) for _ in range({n})]")
    for t in tensors:
        _check_shape(operation, t, (array.shape,), array.dtype)


def _check_shape(operation: str, x: Tensor, shapes, dtype) -> None:
    array = local_array(operation, x)
    if array.shape not in [tuple(s) for s in shapes] or array.dtype != dtype:
        wanted = " or ".join(f"{dtype}{list(s)}" for s in dict.fromkeys(tuple(s) for s in shapes))
        rule = f"this tensor is {wanted}"
        raise OpError(operation, f"{array.dtype}{list(array.shape)}", rule, f"make it {wanted}")


def _check_size(operation: str, x: Tensor, shape: tuple[int, ...], dtype) -> None:
    """Raise for a tensor with another number of elements than ``shape``, or another dtype; its own shape is free."""
    array = local_array(operation, x)
    if array.size != math.prod(shape) or array.dtype != dtype:
        rule = f"this tensor has {math.prod(shape)} elements of {dtype}"
        raise OpError(operation, f"{array.dtype}{list(array.shape)}", rule, f"make it {dtype}{list(shape)}")
