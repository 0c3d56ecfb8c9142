"""Conversion of tensors: to NumPy, JAX and Python values, and between local and global.

``x.to_global(placement, sbp)`` of a local tensor gives each rank its part: under ``split`` a slice, under
``broadcast`` a copy, under ``partial_sum`` the whole value on the first rank. Of a global tensor it is a boxing. Both
are on the tape: the gradient travels back to the source's layout, or takes ``grad_sbp`` if that is given. With several
processes the parts are theirs, and so are their gradients (`sbpjax.sbp.process_local`).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import NamedSharding

from sbpjax._core import naming
from sbpjax._core.compiler import conversions, interop
from sbpjax._core.compiler.gspmd import constrain_with_gradient
from sbpjax._core.jax_private import trace_state_clean
from sbpjax._core.runtime import collective_trace, processes, sizes
from sbpjax._core.runtime.ambient_mesh import ambient_mesh, check_no_manual_axes
from sbpjax._core.tensor.nodes.node import Node, record
from sbpjax.errors import (
    AT_ITS_END,
    ENDS_ALIKE,
    READ_BY_ALL,
    AgreementError,
    DataDependentError,
    DistributedError,
    LostRankError,
    MixedTensorError,
    OpError,
    OpTypeError,
    OpValueError,
    PlacementTypeError,
    SbpError,
    message,
)
from sbpjax.sbp import algebra, broadcast, partial_sum, process_local
from sbpjax.sbp.boxing_marker import to_sbp
from sbpjax.sbp.layout import layout_of
from sbpjax.sbp.no_alias import copy_without_alias
from sbpjax.sbp.placement import placement as Placement
from sbpjax.sbp.stage import stage_transfer

from ..calls.op_errors import check_leaked, describe
from ..dispatch import abstract, dispatch
from ..dispatch.op import op_of
from ..dispatch.traced import TracedLayout, as_traced, logical_value
from ..handle.mode import mode
from ..handle.tensor import Tensor, restore, wrap, wrap_any


class BoxingNode(Node):
    """The tape's node of `to_global` and `to_local`: its backward moves the gradient to the input's layout."""

    __slots__ = ("move",)

    label = "to_global_backward"

    def backward(self, grads: list, create_graph: bool) -> tuple:
        return (self.move(grads[0]),)


def _record(x: Tensor, out: Tensor, move) -> Tensor:
    if mode.grad and x._edge is not None:
        node = BoxingNode()
        node.move = move
        record(node, (x._edge,), (x._idx,), (out,))
    return out


def to_global(
    self: Tensor,
    placement=None,
    sbp=None,
    *,
    grad_sbp=None,
    check_meta: bool = True,
    check_values: bool | None = None,
    copy: bool = False,
) -> Tensor:
    """Return this tensor as a global tensor on ``placement`` in ``sbp``.

    In a job of several processes every process's local tensor is one part: under split the parts are joined, under
    partial_sum added, under broadcast they are equal. To divide a whole that every process holds, make it broadcast
    first: ``x.to_global(placement, broadcast).to_global(sbp=split(0))``.

    Args:
        self: a local or global tensor.
        placement: the target placement; a global tensor's own by default, and that of an sbp that is a `NamedSharding`.
        sbp: the target nd-sbp, in the placement's order or by the names of its axes: ``{"data": split(0)}``, a
            `PartitionSpec`, a `NamedSharding`; a global tensor's own by default.
        grad_sbp: the nd-sbp of the gradient on the way back; by default the source's.
        check_meta: whether processes compare shape and dtype of their local tensors first; without it they are taken to
            be equal.
        check_values: processes compare the values of local tensors that become broadcast, by a digest of them (about
            1 ms per MB). Where they differ, the first rank's are taken with a warning; True raises instead, and False
            does not compare. Nothing is compared under ``check_meta=False`` or ``SBPJAX_CHECK=off``.
        copy: return a new tensor even if nothing changes.

    Returns:
        A global tensor; this very tensor if nothing changes and no ``grad_sbp`` is given.

    Raises:
        MixedTensorError: a local tensor without both ``placement`` and ``sbp``.
        SbpError: the sbp does not fit the tensor or the placement.
        PlacementTypeError: ``placement`` is no placement.
        AgreementError: processes give different values for a broadcast tensor, under ``check_values=True``.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> flow.ones(4, 4).to_global(p, flow.sbp.split(0)).sbp
        (sbpjax.sbp.split(dim=0),)
    """
    self._fresh()
    if placement is None and isinstance(sbp, NamedSharding):
        placement = Placement.from_mesh(sbp.mesh)
    if placement is not None and not isinstance(placement, Placement):
        raise PlacementTypeError(
            "x.to_global(placement, sbp)",
            f"placement of type {type(placement).__name__}",
            "placement is an sbpjax.placement",
            'x.to_global(sbpjax.placement("cpu", [0, 1]), sbp)',
        )
    if mode.capture is not None and (self._layout is not None or processes.current().size == 1):
        # A tensor from outside is converted by the program, whenever that runs.
        self = _in_trace(self)
    layout = self._layout
    # A local tensor in a trace is the logical value: its layout on the ranks is decided by the program.
    if layout is None and isinstance(self._array, Tracer):
        return pin(self, placement, sbp, grad_sbp)
    if layout is None:
        return from_local(self, placement, sbp, grad_sbp=grad_sbp, check_meta=check_meta, check_values=check_values)
    placement = layout.placement if placement is None else placement
    if isinstance(self._array, Tracer):
        return pin(self, placement, sbp, grad_sbp)
    ndim = len(layout.shape)
    codes = algebra.parse(layout.sbp if sbp is None else sbp, placement, ndim)
    target = layout_of(placement, codes, layout.shape, layout.dtype)
    if grad_sbp is not None:
        grad_sbp = algebra.to_sbp(algebra.parse(grad_sbp, placement, ndim))
    # The tensor itself, as in OneFlow: `to_global` to the same layout costs nothing and copies nothing.
    elif target is layout:
        return self.clone() if copy else self

    def back(grad: Tensor) -> Tensor:
        if grad_sbp is not None:
            return grad.to_global(placement, grad_sbp).to_global(layout.placement, _gradient_sbp(layout, grad_sbp))
        return grad.to_global(layout.placement, _gradient_sbp(layout, grad._layout.sbp, as_source=True))

    out = wrap_any(conversions.move(self._array, layout, target), target)
    return _record(self, out._mark_requested_sum(), back)


def _in_trace(x: Tensor) -> Tensor:
    """Return a tensor over the tracer that the running trace reads for it."""
    if isinstance(x._array, Tracer):
        return x
    return restore(logical_value(x), as_traced(x._layout), x._edge, x._idx)


def _no_partial(sbp: tuple) -> tuple:
    """Return an nd-sbp with broadcast for partial_sum: the gradient of each summand is the gradient of the sum."""
    return tuple(broadcast if s.code == algebra.P else s for s in sbp)


def _gradient_nd_sbp(sbp: tuple) -> tuple:
    """Return the nd-sbp of the gradients of all processes' parts: those of copies of a value add up."""
    swapped = {partial_sum: broadcast, broadcast: partial_sum}
    return tuple(swapped.get(s, s) for s in sbp)


def _gradient_sbp(source, own: tuple, as_source: bool = False) -> tuple:
    """Return the nd-sbp in which a gradient arrives at its tensor's placement."""
    # Where the tensor is broadcast or a partial sum the gradient keeps its own entry, since to gather it here may be in
    # vain; where the tensor is split, it is split alike if ``as_source``.
    if len(own) != len(source.codes):
        return _no_partial(source.sbp)
    return tuple(s if as_source and s.is_split else g for s, g in zip(source.sbp, own, strict=True))


def pin(x: Tensor, placement, sbp, grad_sbp=None) -> Tensor:
    """Pin a layout inside a trace: a `to_global` marker that the planner obeys; free entries are its choice."""
    if placement is None or (sbp is None and x._layout is None):
        raise _incomplete_layout_error(x, placement, sbp)
    check_no_manual_axes("to_global", describe(x))
    in_jax = mode.capture is None and placement.is_present  # a program of the user's, in which nothing is planned
    if in_jax:
        _check_program_mesh(x, placement)
    ndim = x._array.ndim
    free = (algebra.FREE,) * len(placement.hierarchy)
    codes = free if sbp is None else algebra.parse(sbp, placement, ndim, allow_free=True)
    grad_codes = free if grad_sbp is None else algebra.parse(grad_sbp, placement, ndim, allow_free=True)
    if x._layout is not None:
        # Only the placement changes: pinned entries stay pinned.
        if sbp is None and x._layout.pinned is not None and len(x._layout.pinned) == len(free):
            codes = x._layout.pinned
        same = x._layout is TracedLayout(placement, codes)
        x = move_to_stage(x, placement)
        if same and grad_codes == free and (mode.auto is None or sbp is None):  # auto releases pinned entries
            return x
    layout = TracedLayout(placement, codes)
    if mode.auto is not None and mode.auto.ignore_user:
        codes = grad_codes = free
        layout = TracedLayout(placement)
    # Nothing is pinned, so an equation would have no information for the planner.
    if codes == grad_codes == free:
        return restore(x._array, layout, x._edge, x._idx)
    wanted = None if grad_codes == free else algebra.to_sbp(grad_codes)
    static = (("placement", placement), ("sbp", algebra.to_sbp(codes)), ("grad_sbp", wanted))
    out = dispatch.run(op_of(to_sbp, static), (x,))
    if in_jax and not jax.typeof(x._array).sharding.mesh.explicit_axes:  # there the type has the sharding
        mesh = ambient_mesh()
        where = placement if mesh is None else Placement.from_mesh(mesh)
        static = (("placement", where), ("codes", codes), ("grad_codes", None if wanted is None else grad_codes))
        out = dispatch.run(op_of(constrain_with_gradient, static), (out,))
    # The op's own result is unpinned, as that of every traced op.
    out._layout = layout
    return out


def _check_program_mesh(x: Tensor, placement) -> None:
    """Raise for a placement with other devices than the mesh of the JAX program that is being traced."""
    mesh = ambient_mesh()
    if mesh is not None and not np.array_equal(mesh.devices, placement.devices):
        raise MixedTensorError(
            "x.to_global(placement, sbp) inside a program of JAX",
            f"{describe(x)}, {placement!r}, and {mesh}",
            "a program has one mesh, and the placement has its devices, in the same grid",
            "x.to_global(sbpjax.placement.current(), sbp)",
        )


def move_to_stage(x: Tensor, placement) -> Tensor:
    """Return a traced global tensor on another placement, in a layout of the planner's choice."""
    if x._layout.placement == placement:
        return x
    static = (("source", x._layout.placement), ("target", placement))
    out = dispatch.run(op_of(stage_transfer, static), (x,))
    out._layout = TracedLayout(placement)
    return out


def _incomplete_layout_error(x: Tensor, placement, sbp) -> MixedTensorError:
    return MixedTensorError(
        f"x.to_global(placement={placement!r}, sbp={sbp!r})",
        f"local {x.dtype.name}{list(x.shape)}",
        "a local tensor becomes global when both placement and sbp are given",
        "x.to_global(sbpjax.placement.current(), sbp), under jax.set_mesh"
        if isinstance(x._array, Tracer) and mode.capture is None
        else 'x.to_global(sbpjax.placement("cpu", [0, 1]), sbpjax.sbp.broadcast)',
    )


def from_local(
    x: Tensor,
    placement,
    sbp,
    *,
    grad_sbp=None,
    check_meta: bool = True,
    check_values: bool | None = None,
    copies_get_grad: bool = False,
    layout=None,
) -> Tensor:
    """Return a local tensor as a global one, see `to_global`.

    ``copies_get_grad``: under broadcast give the gradient to every process's copy, not to the first rank's alone:
    of PyTorch's loss, which is one that each rank computes again.
    ``layout``: that of the result, where all processes know it; see `process_local.from_local`.
    """
    if placement is None or sbp is None:
        raise _incomplete_layout_error(x, placement, sbp)
    x._fresh()
    shape = tuple(x._array.shape)
    codes = algebra.parse(sbp, placement, len(shape))
    nd_sbp = algebra.to_sbp(codes)
    if grad_sbp is not None:
        grad_sbp = algebra.to_sbp(algebra.parse(grad_sbp, placement, len(shape)))
    world = processes.current()
    several = world.size > 1 and placement.is_present and not x.is_meta
    if several:
        made = process_local.from_local(x._array, placement, nd_sbp, world, check_meta, check_values, layout)
        out = wrap_any(*made)._mark_requested_sum()
    else:
        # One process has all ranks: its tensor is the whole, and each rank takes its part.
        out = wrap_any(*conversions.from_logical(x._array, placement, nd_sbp, own=True))._mark_requested_sum()
    # The gradient goes back to the device of the tensor, which need not be the first of the placement.
    owner = None if x.is_meta else next(iter(x._array.devices()))

    def back(grad: Tensor) -> Tensor:
        if grad._layout is None:
            return grad
        if grad_sbp is not None:
            grad = grad.to_global(placement, grad_sbp)
        if several:
            grad = grad.to_global(placement, _no_partial(nd_sbp))
            # Under broadcast the values of one process were taken: only its tensor has a gradient, those of the others
            # zero, so that the sum over processes is right.
            if not copies_get_grad and not process_local.is_first_replica(placement, codes, world):
                return wrap(jnp.zeros(shape, grad._array.dtype, device=owner))
        local = grad.to_local()
        if owner is not None and next(iter(local._array.devices())) != owner:
            local = wrap(jax.device_put(local._array, owner))
        return local

    return _record(x, out, back)


def to_local(self: Tensor, *, copy: bool = False, grad_sbp=None) -> Tensor:
    """Return the part of a global tensor on this process as a local tensor; with one process, the whole logical value.

    With several processes: the parts of this process's ranks joined along split dims, the value under broadcast, the
    sum of its summands under partial_sum; without elements where it owns no rank of the placement. Nothing is
    communicated.

    Args:
        copy: return a new tensor even if nothing has to be computed.
        grad_sbp: the nd-sbp of the gradients of all processes' local tensors. By default those of a broadcast tensor's
            copies add up (the loss of the run is the sum of the processes' losses); in a program that imports the
            package as torch they are one gradient, as PyTorch has it.

    Raises:
        MixedTensorError: the tensor is local already.

    Example:
        >>> x = flow.tensor([1.0, 2.0]).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
        >>> x.to_local()
        tensor([1., 2.])
    """
    self._fresh()
    layout = self._layout
    # Under a global view every tensor is global, and code that wants the local one means this.
    if mode.everywhere is not None and layout is not None:
        return self
    if layout is None:
        raise MixedTensorError(
            "x.to_local()",
            f"local {self.dtype.name}{list(self.shape)}",
            "Expected global tensor for to_local but got local tensor!",
            "use x itself",
        )
    world = processes.current()
    several = world.size > 1 and layout.placement.is_present and not self.is_meta
    if several:
        # Where processes were found to differ, a value would be wrong, or never come.
        collective_trace.raise_found_difference()
        out = wrap_any(copy_without_alias(process_local.own_part(self._array, layout, world)))
    else:
        out = wrap_any(conversions.to_logical(self._array, layout, own=True))

    adds_up = several and not naming.is_torch()

    def back(grad: Tensor) -> Tensor:
        default = _gradient_nd_sbp(layout.sbp) if adds_up else _no_partial(layout.sbp)
        codes = algebra.parse(default if grad_sbp is None else grad_sbp, layout.placement, len(layout.shape))
        wanted = algebra.to_sbp(codes)
        if not several or grad._layout is not None:
            return grad.to_global(layout.placement, wanted)
        known = layout_of(layout.placement, codes, layout.shape, np.dtype(grad._array.dtype))
        return from_local(grad, layout.placement, wanted, layout=known)

    return _record(self, out, back)


def local_shards(self: Tensor) -> dict:
    """Return ``{rank: numpy array}``: the part on each rank of this process; of a partial sum, its summand."""
    self._fresh()
    if self._layout is None:
        return {(self.device.index or 0): np.asarray(self._array)}
    return conversions.local_shards(self._array, self._layout)


def fetch_to_host(x: Tensor) -> np.ndarray:
    """Return the logical value on the host."""
    x._fresh()
    if isinstance(x._array, Tracer):
        check_leaked(x)
        raise DataDependentError(
            "reading a value inside a traced program",
            f"{x.dtype.name}{list(x.shape)}",
            "a traced tensor has no value yet: the program is compiled before it runs",
            "sbpjax.where(condition, a, b) chooses elements, sbpjax.cond(condition, true_fn, false_fn, *operands) "
            "a branch; or return the tensor and read it outside",
        )
    if x.is_meta:
        raise abstract.missing_data_error("reading a value", x)
    if x._layout is None:
        try:
            return np.asarray(x._array)
        except jax.errors.JaxRuntimeError as error:  # XLA runs programs later than they are called
            raise _failed_program_error(x, error) from None
    collective_trace.raise_found_difference()
    try:
        return np.asarray(conversions.to_logical(x._array, x._layout))
    # The other ranks did not join: most likely ``if rank == 0: print(x)``, which the error of a lost rank does not
    # name.
    except (AgreementError, LostRankError) as error:
        raise _read_error(error) from None
    except (ValueError, jax.errors.JaxRuntimeError) as error:
        processes.raise_for_ranks(error)
        raise _failed_program_error(x, error) from None


def _failed_program_error(x: Tensor, error: Exception) -> Exception:
    """Return the error to raise where the program that computes a tensor has failed."""
    seen = f"{x.dtype.name}{list(x.shape)}, computed by a program that failed"
    return sizes.out_of_memory("reading a value", seen, error) or error


def _read_error(error: DistributedError) -> DistributedError:
    """Return the error of ranks that do not all read a value, with a message about reading."""
    seen = next((line[8:] for line in str(error).splitlines() if line.startswith("  seen: ")), str(error))
    operation = "reading the value of a global tensor (item(), numpy(), tolist(), print)"
    return type(error)(message(operation, seen, *(ENDS_ALIKE if AT_ITS_END in seen else READ_BY_ALL)))


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """Return the logical value as a NumPy array (a copy).

    Args:
        force: also of a tensor that requires grad.

    Returns:
        The logical value, under any sbp.

    Example:
        >>> flow.tensor([1, 2]).numpy()
        array([1, 2])
    """
    return np.array(fetch_to_host(self))


def item(self: Tensor):
    """Return the one element of a tensor as a Python number.

    Returns:
        The logical value, under any sbp.

    Raises:
        OpValueError: the tensor has not exactly one element.

    Example:
        >>> flow.tensor([2.5]).sum().item()
        2.5
    """
    if self.shape.numel() != 1:
        # A RuntimeError, as from item(), and a ValueError, as from int() and float().
        raise OpValueError(
            "x.item()",
            f"{self.dtype.name}{list(self.shape)} with {self.shape.numel()} elements",
            "only a tensor with one element becomes a Python number",
            "x.tolist(), or reduce it first, e.g. x.sum().item()",
        )
    return fetch_to_host(self).reshape(()).item()


def tolist(self: Tensor):
    """Return the value as nested lists of Python numbers.

    Returns:
        The logical value, under any sbp.

    Example:
        >>> flow.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
    """
    return fetch_to_host(self).tolist()


def to_bool(self: Tensor) -> bool:
    """Return the only element as a bool.

    Raises:
        OpError: there are several elements, or none.
    """
    if self.shape.numel() != 1:
        raise OpError(
            "bool(x)",
            f"{self.dtype.name}{list(self.shape)}",
            "bool value of Tensor with more than one value is ambiguous, and of one without values",
            "x.any() or x.all()",
        )
    return bool(item(self))


def to_index(self: Tensor) -> int:
    """Return the only element, an integer, as an int.

    Raises:
        OpTypeError: it is no integer.
    """
    value = item(self)
    if isinstance(value, (bool, int)):
        return int(value)
    raise OpTypeError(
        "an integer from a tensor", f"a {self.dtype!r} tensor", "only integer tensors are indices", "x.long()"
    )


def jax_array(self: Tensor, mesh=None):
    """Return the payload as a `jax.Array`: of a global tensor the sharded logical array.

    Where the axes of the placement's mesh are not of type Auto, or those of partial sums not Explicit, the array is a
    copy; else it is the tensor's own.

    Args:
        self: a tensor; a global one without unevenly split dims.
        mesh: the mesh of the array; by default that of the placement.

    Returns:
        An array whose `NamedSharding` is the layout: ``split(0)`` of the axis "data" is ``PartitionSpec("data")``, and
        ``partial_sum`` is ``PartitionSpec(unreduced={"data"})``, on a mesh of Explicit axes.

    Raises:
        SbpError: an array cannot hold this layout, or not on this mesh.

    Example:
        >>> p = flow.placement(jax.make_mesh((2, 4), ("data", "model")))
        >>> flow.ones(8, 8, placement=p, sbp={"data": flow.sbp.split(0)}).jax().sharding.spec
        PartitionSpec('data',)
    """
    self._fresh()
    layout = self._layout
    check_leaked(self)
    if layout is None or layout.shape is None:
        return self._array
    if layout.partial_axes and not trace_state_clean():
        raise SbpError(
            "x.jax() inside a program of JAX",
            repr(layout),
            "a partial sum that the program closes over would be an unreduced constant, which JAX has not",
            "pass x as an argument, or x.to_global(sbp=...) without partial_sum",
        )
    return interop.to_jax(self._array, layout, mesh)
