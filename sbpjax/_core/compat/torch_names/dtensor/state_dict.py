"""`torch.distributed.checkpoint`: states of global tensors, named by the model's names, saved in any layout.

    state = {"model": model, "optimizer": optimizer}       # or get_state_dict(model, optimizer)
    dcp.save(state, checkpoint_id="run/step100")           # sbpjax.checkpoint.save
    dcp.load(state, checkpoint_id="run/step100")           # sbpjax.checkpoint.load(..., into=state)

The files are those of `sbpjax.checkpoint`: they load into other meshes and other numbers of processes.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sbpjax._core.runtime import processes
from sbpjax._core.tensor import Tensor
from sbpjax.data.checkpoint import loading, saving
from sbpjax.distributed.global_view import _map_tensors
from sbpjax.errors import CheckpointError
from sbpjax.sbp import broadcast


class Stateful:
    """A base for objects that are saved by ``state_dict`` and ``load_state_dict``; others with these are, too."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        raise NotImplementedError

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state."""
        raise NotImplementedError


class FileSystemWriter:
    """The directory of a checkpoint.

    Args:
        path: the directory.
        options: accepted.
    """

    def __init__(self, path: Any, *args: Any, **options: Any) -> None:
        self.path = path


FileSystemReader = FileSystemWriter


def _path(checkpoint_id: Any, storage: Any) -> Any:
    path = checkpoint_id if checkpoint_id is not None else getattr(storage, "path", None)
    if path is None:
        rule = "a checkpoint has a directory"
        raise CheckpointError("torch.distributed.checkpoint", "no path", rule, "checkpoint_id='run/step100'")
    return path


def save(state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_writer: Any = None, **_: Any) -> None:
    """Write a state; all processes call it.

    Args:
        state_dict: names to tensors, containers, plain values, or objects with ``state_dict``.
        checkpoint_id: the directory.
        storage_writer: a `FileSystemWriter` of it instead.
    """
    saving.save(state_dict, _path(checkpoint_id, storage_writer))


class _Saved(Future):
    def __init__(self, pending: Any) -> None:
        super().__init__()
        self._pending = pending

    def result(self, timeout: float | None = None) -> None:
        self._pending.wait()


def async_save(state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_writer: Any = None, **_: Any) -> Any:
    """Write a state beside the program, and return a future of the end; see `save`."""
    return _Saved(saving.save(state_dict, _path(checkpoint_id, storage_writer), asynchronous=True))


def load(state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_reader: Any = None, **_: Any) -> None:
    """Read a state into the tensors and objects of another, in the layouts that they have; all processes call it.

    Args:
        state_dict: the state to fill.
        checkpoint_id: the directory.
        storage_reader: a `FileSystemReader` of it instead.
    """
    loading.load(_path(checkpoint_id, storage_reader), into=state_dict)


@dataclass
class StateDictOptions:
    """Form of the states.

    Args:
        full_state_dict: whole tensors, instead of global ones.
        cpu_offload: on the CPU, and on rank 0 alone if they are whole.
        ignore_frozen_params: leave out parameters without gradients.
        strict: as for ``load_state_dict``.
        broadcast_from_rank0: accepted: whole tensors of the first process are taken in any case.
        flatten_optimizer_state_dict: not supported.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


def _form(state: Any, options: StateDictOptions | None) -> Any:
    options = options or StateDictOptions()

    def form(x: Tensor) -> Tensor:
        if options.full_state_dict and x.is_global:
            x = x.detach().to_global(sbp=[broadcast] * len(x.sbp)).to_local()
        return x.cpu() if options.cpu_offload and not x.is_global else x

    made = _map_tensors(state, form)  # by all processes
    return {} if options.full_state_dict and options.cpu_offload and processes.current().rank else made


def _names(model: Any) -> dict[int, str]:
    return {id(parameter): name for name, parameter in model.named_parameters()}


def _optimizers(optimizers: Any) -> list:
    return list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]


def get_model_state_dict(model: Any, *, submodules: Any = None, options: StateDictOptions | None = None) -> Any:
    """Return a model's state, whole or global; all processes call it."""
    module = getattr(model, "module", model) if type(model).__name__ == "DistributedDataParallel" else model
    state = module.state_dict()
    if options is not None and options.ignore_frozen_params:
        frozen = {name for name, p in module.named_parameters() if not p.requires_grad}
        state = {name: value for name, value in state.items() if name not in frozen}
    return _form(dict(state), options)


def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> Any:
    """Return the state of optimizers under the names of the model's parameters; all processes call it."""
    names, result = _names(model), {"state": {}, "param_groups": []}
    for optimizer in _optimizers(optimizers):
        optimizer.prepare()
        packed = optimizer.state_dict()
        order = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
        result["state"].update({order[number]: value for number, value in packed["state"].items()})
        for group in packed["param_groups"]:
            result["param_groups"].append({**group, "params": [order[number] for number in group["params"]]})
    return _form(result, options)


def get_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> tuple[Any, Any]:
    """Return `get_model_state_dict` and `get_optimizer_state_dict`."""
    return get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options)


def set_model_state_dict(model: Any, model_state_dict: Any, *, options: StateDictOptions | None = None) -> Any:
    """Load a state, whole or global, into a model in the layouts that it has."""
    module = getattr(model, "module", model) if type(model).__name__ == "DistributedDataParallel" else model
    state = {name: _like(value, module, name) for name, value in model_state_dict.items()}
    return module.load_state_dict(state, strict=options is None or options.strict, assign=_is_abstract(module))


def _is_abstract(module: Any) -> bool:
    return any(p.is_meta for p in module.parameters())


def _like(value: Any, module: Any, name: str) -> Any:
    """Return a whole tensor in the layout of the module's tensor of a name."""
    owner: Any = module
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part, None)
    target = getattr(owner, last, None)
    if not isinstance(target, Tensor) or not target.is_global or value.is_global:
        return value
    whole = value.to_global(target.placement, [broadcast] * len(target.sbp), check_meta=False)
    return whole.to_global(sbp=target.sbp).detach().requires_grad_(target.requires_grad)


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: Any, *, options: StateDictOptions | None = None
) -> None:
    """Load a state of `get_optimizer_state_dict` into optimizers."""
    names = _names(model)
    for optimizer in _optimizers(optimizers):
        order = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
        numbers = {name: number for number, name in enumerate(order)}
        groups = [g for g in optim_state_dict["param_groups"] if all(name in numbers for name in g["params"])]
        state = {numbers[n]: value for n, value in optim_state_dict["state"].items() if n in numbers}
        packed = [{**group, "params": [numbers[name] for name in group["params"]]} for group in groups]
        optimizer.load_state_dict({"state": state, "param_groups": packed})


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: Any,
    optim_state_dict: Any,
    options: StateDictOptions | None = None,
) -> Any:
    """Load both states; see `get_state_dict`."""
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found


def _init_optim_state(optim: Any) -> None:
    optim.prepare()
