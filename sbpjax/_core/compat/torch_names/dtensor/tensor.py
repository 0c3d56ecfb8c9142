"""`DTensor`: PyTorch's name of a global tensor; its placements are the sbp.

    Shard(0) = split(0)      Replicate() = broadcast      Partial() = partial_sum

    x = distribute_tensor(weight, mesh, [Shard(0)])      # weight.to_global(p, broadcast).to_global(sbp=split(0))
    x.redistribute(placements=[Replicate()])             # x.to_global(sbp=broadcast)
    x.full_tensor()                                      # x.to_global(sbp=broadcast).to_local()

Every global tensor is one, and has the methods. Gradients are those of PyTorch's loss, which each process computes
again where tensors are replicated; `Tensor.to_global` has the sum of the processes' losses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sbpjax._core import functions
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.convert import from_local as _from_local
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.errors import OpTypeError, OpValueError
from sbpjax.nn.parameter import Parameter
from sbpjax.sbp import broadcast, partial_sum, split
from sbpjax.sbp.even_split import parts

from .mesh import DeviceMesh


class Placement:
    """PyTorch's name for an sbp of one axis."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether it splits a dim, or this one."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return whether it is `Replicate`."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return whether it is `Partial`."""
        return isinstance(self, Partial)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


class Shard(Placement):
    """PyTorch's name of ``sbpjax.sbp.split(dim)``."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple[int, int]:
        """Return the size and the offset of a rank's part of a dim; the parts differ by one at most."""
        offset, size = parts(curr_local_size, (num_chunks,))[rank]
        return size, offset

    _local_shard_size_and_offset = _local_shard_size_on_dim = local_shard_size_and_offset  # in other versions


class Replicate(Placement):
    """PyTorch's name of ``sbpjax.sbp.broadcast``."""


_REDUCTIONS = {"avg": "mean", "max": "amax", "min": "amin", "product": "prod"}


class Partial(Placement):
    """PyTorch's name of ``sbpjax.sbp.partial_sum``; `from_local` does the reductions that are no sums.

    Args:
        reduce_op: ``"sum"``, ``"avg"``, ``"max"``, ``"min"`` or ``"product"``.

    Raises:
        OpValueError: another reduction.
    """

    def __init__(self, reduce_op: str = "sum") -> None:
        if reduce_op not in ("sum", *_REDUCTIONS):
            rule = f"a pending reduction is sum, {', '.join(_REDUCTIONS)}"
            raise OpValueError(f"Partial({reduce_op!r})", f"reduce_op {reduce_op!r}", rule, "Partial()")
        self.reduce_op = reduce_op

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"


class _StridedShard(Shard):
    """Nothing is of this class: the axes of a mesh split a dim in their order."""


def sbp_of(placements: Any, mesh: DeviceMesh, ndim: int) -> tuple:
    """Return the nd-sbp of placements; Replicate on all axes without any.

    Raises:
        OpTypeError: a value is no placement.
        OpValueError: there is not one for each axis.
    """
    placements = [Replicate()] * mesh.ndim if placements is None else list(placements)
    if len(placements) != mesh.ndim:
        rule = f"`placements` must have the same length as `device_mesh.ndim`! Found {len(placements)} and {mesh.ndim}"
        raise OpValueError("DTensor placements", f"{placements} on {mesh}", rule, "one placement per axis of the mesh")
    found = []
    for one in placements:
        if not isinstance(one, Placement):
            rule = "a placement is Shard(dim), Replicate() or Partial()"
            raise OpTypeError("DTensor placements", f"{one!r}", rule, "[Shard(0), Replicate()]")
        is_sum = isinstance(one, Partial) and one.reduce_op == "sum"  # equal parts have the value as their average
        found.append(split(one.dim % ndim) if isinstance(one, Shard) else partial_sum if is_sum else broadcast)
    return tuple(found)


def placements_of(x: Tensor) -> tuple[Placement, ...]:
    """Return the sbp of a global tensor in PyTorch's words."""
    return tuple(Shard(s.code) if s.is_split else Replicate() if s == broadcast else Partial() for s in x.sbp)


def _no_partial(sbp: Any) -> tuple:
    return tuple(broadcast if s == partial_sum else s for s in sbp)


def from_local(
    local_tensor: Tensor, device_mesh: DeviceMesh, placements: Any = None, *, run_check: bool = False, **_: Any
) -> Tensor:
    """Return the global tensor of which each process gives its part.

    Args:
        local_tensor: this process's part: of its devices together, if it has several in the mesh.
        device_mesh: the mesh.
        placements: one per axis; all `Replicate` by default. An average or a maximum is computed at once.
        run_check: compare shapes and dtypes of the processes; without it all are taken to be equal.
    """
    for axis, one in enumerate(placements or ()):
        if isinstance(one, Partial) and one.reduce_op != "sum":
            rest = [Shard(p.dim % local_tensor.ndim + 1) if isinstance(p, Shard) else p for p in placements]
            rest[axis] = Shard(0)
            parts = from_local(local_tensor.unsqueeze(0), device_mesh, rest, run_check=run_check)
            return getattr(parts, _REDUCTIONS[one.reduce_op])(0)
    sbp = sbp_of(placements, device_mesh, local_tensor.ndim)
    return _from_local(local_tensor, device_mesh.placement, sbp, check_meta=run_check, copies_get_grad=True)


def to_local(x: Tensor, grad_placements: Any = None) -> Tensor:
    """Return this process's part of a global tensor, and its gradient in PyTorch's sense.

    Args:
        x: a global tensor.
        grad_placements: those of the gradient; by default the tensor's, with Replicate for Partial.
    """
    mesh = DeviceMesh.of(x.placement)
    return x.to_local(grad_sbp=sbp_of(grad_placements, mesh, x.ndim) if grad_placements else _no_partial(x.sbp))


def redistribute(
    x: Tensor, device_mesh: DeviceMesh | None = None, placements: Any = None, *, async_op: bool = False, **_: Any
) -> Tensor:
    """Return a global tensor in other placements of its mesh."""
    mesh = device_mesh or DeviceMesh.of(x.placement)
    return x.to_global(mesh.placement, sbp_of(placements, mesh, x.ndim))


def full_tensor(x: Tensor, *, grad_placements: Any = None) -> Tensor:
    """Return the whole value of a global tensor as a local one, on every process of the mesh."""
    return to_local(x.to_global(sbp=[broadcast] * len(x.sbp)), grad_placements)


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh, placements: Any = None, *, src_data_rank: int | None = 0
) -> Tensor:
    """Return a tensor that every process holds whole, divided over a mesh.

    Args:
        tensor: a local tensor, of which the first process's value is taken; or a global one.
        device_mesh: the mesh.
        placements: one per axis; all `Replicate` by default.
        src_data_rank: accepted: the first process of the mesh gives the value.
    """
    with no_grad():
        whole = tensor
        if not tensor.is_global:
            copies = [broadcast] * device_mesh.ndim
            whole = _from_local(tensor.detach(), device_mesh.placement, copies, check_meta=False)
        out = whole.detach().to_global(device_mesh.placement, sbp_of(placements, device_mesh, tensor.ndim))
    return out.requires_grad_(tensor.requires_grad)


class _IsGlobal(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.is_global and DeviceMesh.is_known(instance.placement)


class DTensor(metaclass=_IsGlobal):
    """A global tensor over a mesh of the program: ``isinstance(x, DTensor)``.

    Without a mesh a library takes global tensors for tensors, as their values are: transformers reads the storage of a
    DTensor's local part, and misses that two names share it.
    """

    from_local = staticmethod(from_local)

    def __new__(cls, *args: Any, **options: Any) -> Any:
        seen, rule = "a call of the class", "a DTensor is made from a local tensor, or by a function"
        raise OpTypeError("DTensor(...)", seen, rule, "distribute_tensor(x, mesh, [Shard(0)]), x.to_global(p, sbp)")


Tensor.device_mesh = property(lambda self: DeviceMesh.of(self.placement))  # type: ignore[attr-defined]
Tensor.placements = property(placements_of)  # type: ignore[attr-defined]
Tensor._local_tensor = property(to_local)  # type: ignore[attr-defined]


def distribute_parameters(module: Any, mesh: DeviceMesh, placements_for: Callable[[str], Any]) -> None:
    """Lay out a module's own parameters, in place: an optimizer that has them keeps them.

    Args:
        module: the module.
        mesh: the mesh.
        placements_for: a function of a parameter's name that returns its placements; None leaves it.
    """
    for name, parameter in list(module._parameters.items()):
        placements = None if parameter is None else placements_for(name)
        if placements is not None and not parameter.is_global:
            value = distribute_tensor(parameter, mesh, placements)
            module._parameters[name] = replace_parameter(parameter, value)


def replace_parameter(parameter: Any, value: Tensor) -> Any:
    """Return the parameter, or a new one, with another value."""
    try:
        parameter.data = value.detach()
        return parameter
    except (RuntimeError, TypeError):
        return Parameter(value.detach(), requires_grad=parameter.requires_grad)


def distribute_module(
    module: Any, device_mesh: DeviceMesh, partition_fn: Any = None, input_fn: Any = None, output_fn: Any = None
) -> Any:
    """Make a module's tensors global on a mesh, in place, with hooks around its forward.

    Args:
        module: the module.
        device_mesh: the mesh.
        partition_fn: ``f(name, submodule, mesh)``, which lays out the parameters; the rest becomes Replicate.
        input_fn: ``f(module, inputs, mesh)``, which returns the inputs.
        output_fn: ``f(module, outputs, mesh)``, which returns the outputs.
    """
    for name, one in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, one, device_mesh)
        distribute_parameters(one, device_mesh, lambda _: [Replicate()] * device_mesh.ndim)
        for key, buffer in list(one._buffers.items()):
            if buffer is not None and not buffer.is_global:
                one._buffers[key] = distribute_tensor(buffer, device_mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda self, inputs: input_fn(self, inputs, device_mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda self, inputs, outputs: output_fn(self, outputs, device_mesh))
    return module


def _factory(name: str) -> Callable:
    make = getattr(functions, name)

    def create(*args: Any, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None, **options: Any):
        size = args[0] if isinstance(args[0], (tuple, list)) else args
        ndim = len(size)
        place = {"placement": device_mesh.placement, "sbp": sbp_of(placements, device_mesh, ndim)}
        return make(*args, **place, **{k: v for k, v in options.items() if k != "layout"})

    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"Return `torch.{name}` as a global tensor on a mesh."
    return create


zeros, ones, empty, rand, randn, full = map(_factory, ("zeros", "ones", "empty", "rand", "randn", "full"))
