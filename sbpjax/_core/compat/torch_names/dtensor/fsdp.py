"""`fully_shard` (FSDP2): parameters split over the data-parallel axis, gathered for each forward.

    fully_shard(block); fully_shard(model)        # parameters: split(0) on the mesh
    model(rows).sum().backward()                  # .grad: split(0), the average over the processes

Forward calls the module with ``p.to_global(sbp=broadcast)`` in the place of each parameter, as local tensors; the tape
adds up their gradients and splits them. One process that drives all devices computes on all of them: its local inputs
become ``split(0)``, and results local again. The gathered parameters live until backward has used them; an `nn.Graph`
with ZeRO stage 3 gathers them twice instead.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import jax

from sbpjax._core.runtime import processes
from sbpjax._core.tensor import Tensor
from sbpjax._core.tracing.tree import split_tensors
from sbpjax.distributed.data_parallel import split_inputs
from sbpjax.distributed.global_view import to_local as all_to_local
from sbpjax.errors import OpValueError
from sbpjax.nn.module import Module
from sbpjax.optim.clip_grad import clip_grad_norm_
from sbpjax.sbp import broadcast, partial_sum, split
from sbpjax.sbp.placement import placement as Placement

from .mesh import DeviceMesh
from .tensor import from_local, placements_of, replace_parameter


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of a module's forward, of the sum of its gradients, and of its results.

    Args:
        param_dtype: of the gathered parameters; None keeps theirs.
        reduce_dtype: in which gradients are added up; `param_dtype` by default.
        output_dtype: of floating-point results; None keeps theirs.
        cast_forward_inputs: cast floating-point inputs to `param_dtype`.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay on their devices."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Accepted, and without effect; see `docs/explanation/at_rest.md` for parameters at rest in host memory."""

    pin_memory: bool = True


def _cast(value: Any, dtype: Any) -> Any:
    tensors, skeleton = split_tensors(value)
    return skeleton.fill_places([x.to(dtype) if x.is_floating_point() else x for x in tensors])


class _Gathered:
    """The parameters of one fully sharded module, and how they are gathered."""

    def __init__(self, module: Module, mesh: DeviceMesh, policy: MixedPrecisionPolicy) -> None:
        self.mesh, self.policy = mesh, policy
        self.divide: float = len(mesh.get_group().ranks) if mesh.ndim == 1 else len({*mesh.owners.flat})
        # this process drives all devices, and none of them has another part in the forward
        self.whole = processes.current().size == 1 and mesh.size() > 1 and mesh.root is mesh
        self.places: list[tuple[dict, str]] = []
        self.before: list[Any] | None = None
        self.inner: dict[int, tuple[DeviceMesh, Any]] = {}  # the mesh and placements that parameters had before
        done: dict[int, Any] = {}
        for one in _own_modules(module):
            for name, parameter in one._parameters.items():
                if parameter is not None:
                    if id(parameter) not in done:
                        done[id(parameter)] = self._shard(parameter)
                    one._parameters[name] = done[id(parameter)]
                    self.places.append((one._parameters, name))
            for name, buffer in one._buffers.items():
                if self.whole and buffer is not None and not buffer.is_global:
                    one._buffers[name] = buffer.to_global(mesh.placement, [broadcast] * mesh.ndim)

    def _shard(self, parameter: Any) -> Any:
        if parameter.is_global and parameter.placement == self.mesh.placement:
            return parameter
        own = [*[broadcast] * (self.mesh.ndim - 1), split(0) if parameter.ndim else broadcast]
        if not parameter.is_global:
            whole = parameter.detach().to_global(self.mesh.placement, [broadcast] * len(own), check_meta=False)
            return replace_parameter(parameter, whole.to_global(sbp=own))
        inner, root = DeviceMesh.of(parameter.placement), self.mesh.root  # another axis, as of `parallelize_module`
        copies = [broadcast] * root.ndim
        for axis, entry in zip(inner.axes, parameter.sbp, strict=True):
            copies[axis] = entry
        sbp = list(copies)
        for axis, entry in zip(self.mesh.axes, own, strict=True):
            sbp[axis] = entry
        placements = placements_of(parameter)
        whole = parameter.detach().to_local().to_global(root.placement, copies, check_meta=False)
        made = replace_parameter(parameter, whole.to_global(sbp=sbp))
        self.inner[id(made)] = inner, placements
        return made

    def gather(self) -> None:
        """Put the gathered parameters in the place of the sharded ones."""
        if self.before is None:
            self.before = [table[name] for table, name in self.places]
            found: dict[int, Any] = {}
            for (table, name), parameter in zip(self.places, self.before, strict=True):
                if id(parameter) not in found:
                    found[id(parameter)] = self._gather(parameter)
                table[name] = found[id(parameter)]

    def release(self) -> None:
        """Put the sharded parameters back."""
        for (table, name), parameter in zip(self.places, self.before or [], strict=self.before is not None):
            table[name] = parameter
        self.before = None

    def _gather(self, parameter: Any) -> Any:
        policy = self.policy
        low = policy.param_dtype if parameter.is_floating_point() else None
        late = policy.reduce_dtype not in (None, low)  # the sum is in another dtype than the parameters
        x = parameter if low is None or late else parameter.to(low)
        inner = self.inner.get(id(parameter))
        axes = self.mesh.axes if inner else range(self.mesh.ndim)
        x = x.to_global(sbp=[broadcast if a in axes else s for a, s in enumerate(x.sbp)])
        if not self.whole:
            adds_up = [partial_sum if a in axes else broadcast if s == partial_sum else s for a, s in enumerate(x.sbp)]
            x = x.to_local(grad_sbp=adds_up)
            if x.requires_grad and self.divide != 1:
                x.register_hook(lambda grad: grad / self.divide)
        if low is not None and late:
            x = x.to(low)
        return from_local(x, *inner) if inner else x


def _own_modules(module: Module) -> list[Module]:
    """Return a module and those below it that are not sharded by themselves."""
    found = [module]
    for child in module.children():
        if not isinstance(child, FSDPModule):
            found += _own_modules(child)
    return found


class FSDPModule:
    """The class of a module under `fully_shard`, beside its own."""

    _fsdp: _Gathered

    def _call_impl(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        fsdp = self._fsdp
        fsdp.gather()
        try:
            if fsdp.policy.param_dtype is not None and fsdp.policy.cast_forward_inputs:
                args, kwargs = _cast((args, kwargs), fsdp.policy.param_dtype)
            if fsdp.whole and any(not x.is_global for x in _tensors((args, kwargs))):
                with split_inputs(fsdp.mesh.placement, 0, args, kwargs) as (args, kwargs):
                    out = super()._call_impl(args, kwargs)  # type: ignore[misc]
                out = all_to_local(out)
            else:
                out = super()._call_impl(args, kwargs)  # type: ignore[misc]
        finally:
            fsdp.release()
        return out if fsdp.policy.output_dtype is None else _cast(out, fsdp.policy.output_dtype)

    def unshard(self, async_op: bool = False) -> Any:
        """Gather the parameters now; the next forward, or `reshard`, puts the sharded ones back."""
        self._fsdp.gather()
        return _Done() if async_op else None

    def reshard(self) -> None:
        """Put the sharded parameters back."""
        self._fsdp.release()

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Set the number that the sum of gradients is divided by, instead of the number of processes."""
        self._fsdp.divide = factor

    def _accept(self, *args: Any, **options: Any) -> None:
        """Do nothing: the order of gathers and sums is XLA's, and a sum of sums is the same sum."""

    set_modules_to_forward_prefetch = set_modules_to_backward_prefetch = _accept
    set_requires_gradient_sync = set_is_last_backward = set_requires_all_reduce = _accept
    set_reshard_after_forward = set_reshard_after_backward = set_unshard_in_backward = _accept
    set_all_reduce_hook = set_post_optim_event = set_force_sum_reduction_for_comms = _accept


class _Done:
    def wait(self) -> None:
        """Return: XLA waits where the values are used."""


def _tensors(value: Any):
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: Any = None,
    shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: Any = None,
    ignored_params: Any = None,
    _base: type = FSDPModule,
    **_: Any,
) -> Any:
    """Split a module's parameters by their first dim over a mesh, in place; submodules that are sharded keep theirs.

    Args:
        module: the module, or a list of them; its class gets the base `FSDPModule`.
        mesh: of one axis, or of two: copies, and parts within each copy. All devices by default.
        reshard_after_forward: accepted: gathered parameters live until backward has used them.
        shard_placement_fn: not supported.
        mp_policy: dtypes.
        offload_policy: accepted.
        ignored_params: not supported.

    Returns:
        The module itself.

    Raises:
        OpValueError: an option that is not supported is given.
    """
    for one in module if isinstance(module, (list, tuple)) else [module]:
        if shard_placement_fn is not None or ignored_params:
            rule = "parameters are split by their first dim, all of them"
            raise OpValueError("fully_shard(...)", "shard_placement_fn or ignored_params", rule, "fully_shard(module)")
        kind = type(one)
        grid = mesh or _default_mesh(one)
        one.__class__ = type(f"FSDP{kind.__name__}", (_base, kind), {"__module__": kind.__module__})
        vars(one)["_fsdp"] = _Gathered(one, grid, mp_policy or MixedPrecisionPolicy())
    return module


def _default_mesh(module: Module) -> DeviceMesh:
    parameter = next(iter(module.parameters()), None)
    if parameter is not None and parameter.is_global:
        return DeviceMesh.of(parameter.placement)
    kind = "cpu" if parameter is None or parameter.is_meta else parameter.device.type
    everything = Placement.all(kind if parameter is None or not parameter.is_meta else _default_type())
    return DeviceMesh(everything.type, everything.ranks)


def _default_type() -> str:
    return {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend())


class FullyShardedDataParallel(FSDPModule):
    """The older name: ``FSDP(module)`` is the module itself under `fully_shard`.

    Args:
        module: the module.
        process_group: accepted: all processes, unless a mesh is given.
        device_mesh: see `fully_shard`.
        mixed_precision: a `MixedPrecision`.
        auto_wrap_policy: accepted: the whole module is gathered at once.
        options: accepted.
    """

    def __new__(
        cls, module: Any, process_group: Any = None, *, device_mesh: Any = None, mixed_precision: Any = None, **_: Any
    ) -> Any:
        policy = mixed_precision and MixedPrecisionPolicy(mixed_precision.param_dtype, mixed_precision.reduce_dtype)
        return fully_shard(module, mesh=device_mesh, mp_policy=policy, _base=FullyShardedDataParallel)

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Clip the norm of all gradients and return it."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)  # type: ignore[attr-defined]

    @contextlib.contextmanager
    def no_sync(self):
        """Do nothing: a sum of sums is the same sum."""
        yield


@dataclass
class MixedPrecision:
    """Dtypes of the older `FullyShardedDataParallel`."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Let another method than forward use the gathered parameters."""
    method = getattr(module, method_name)

    def call(*args: Any, **kwargs: Any) -> Any:
        module.unshard()
        try:
            return method(*args, **kwargs)
        finally:
            module.reshard()

    if isinstance(module, FSDPModule):
        vars(module)[method_name] = call
