"""`from_flax`: a Flax module, NNX or Linen, as an `nn.Module` with parameters, buffers and a state dict.

Worked case: ``from_flax(nnx.Linear(3, 2, rngs=nnx.Rngs(0)))`` has the parameters ``kernel`` and ``bias``; its forward
is one op whose inputs are those and the argument, so it trains with any optimizer, on any placement, and in any graph.
Values that Flax changes while it runs (batch statistics, counters of random streams) are buffers. Arrays that Flax has
sharded over a mesh stay so, as global tensors; logical axes (``out_sharding``, ``with_partitioning``) become layouts
where a placement is given.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.from_data import from_jax
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.storage.payload import payload
from sbpjax.errors import MixedTensorError, OpTypeError
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import Parameter
from sbpjax.sbp.placement import placement as Placement

from .wrap_jax import wrap_jax

linen = LazyModule("flax.linen")  # Flax takes longer to import than JAX
nnx = LazyModule("flax.nnx")


# Names of the argument for training mode, and of its opposite.
_TRAINS = ("train", "training", "is_training")
_EVALUATES = ("deterministic", "use_running_average", "eval", "inference")


class FlaxModule(Module):
    """A Flax module's parameters under their own names, and its call as `forward`; made by `from_flax`.

    Attributes:
        logical_axes: parameter → the logical axis of each of its dims, for those that Flax's metadata names.
    """

    logical_axes: dict[str, tuple]

    def __init__(self, source: str) -> None:
        super().__init__()
        self.__dict__["logical_axes"] = {}
        self.__dict__["_places"] = []
        self.__dict__["_source"] = source

    def _register_array(self, path: tuple[str, ...], array, is_parameter: bool, spec=None) -> None:
        """Register an array under a path, in modules made on the way; ``spec`` names its logical axes."""
        owner: Module = self
        for name in path[:-1]:
            if name not in owner._modules:
                owner.add_module(name, Module())
            owner = owner._modules[name]
        if spec:
            self.logical_axes[".".join(path)] = tuple(spec)
        tensor = from_jax(jnp.asarray(array))
        if is_parameter:
            owner.register_parameter(path[-1], Parameter(tensor))
        else:
            owner.register_buffer(path[-1], tensor)
        self._places.append((owner, path[-1], is_parameter))

    def _lay_out(self, placement: Placement | None, rules: Mapping[str, Any]) -> None:
        """Convert all tensors to a placement: to the layouts of their logical axes, else broadcast.

        Without a placement those that Flax has sharded keep their layouts, and the others become broadcast there.
        """
        tensors = dict((*self.named_parameters(), *self.named_buffers()))
        named = placement is not None
        places = [placement] if named else list(dict.fromkeys(t.placement for t in tensors.values() if t.is_global))
        if len(places) > 1:
            raise MixedTensorError(
                f"nn.from_flax({self._source}(...))",
                f"arrays on {places[0]!r} and on {places[1]!r}",
                "the tensors of a module are on one placement",
                "shard all of them over one mesh, or give placement=",
            )
        for name, tensor in tensors.items():
            if places and (named or tensor.is_local):
                spec = _mesh_axes(self.logical_axes.get(name, ()), rules, places[0])
                tensor.data = tensor.data.to_global(places[0], spec)

    def _tensors(self, parameters: bool) -> list[Tensor]:
        return [
            (owner._parameters if is_parameter else owner._buffers)[name]
            for owner, name, is_parameter in self._places
            if is_parameter == parameters
        ]

    def forward(self, *args, **kwargs):
        """Run the Flax module, and keep its changes in the buffers."""
        key = [wrap_any(w) for w in jax.random.key_data(default_generator.key())] if self._draws else None
        buffers = self._tensors(False)
        outs, new = self._call(self._tensors(True), buffers, key, self.training, args, kwargs)
        if self.training or self._always:
            for buffer, value in zip(buffers, new, strict=True):
                buffer.copy_(value.detach())
        return outs

    def extra_repr(self) -> str:
        """Return the Flax module's class."""
        return self._source


def from_flax(
    module: Any,
    *example: Any,
    rngs: Any = None,
    train: str | None = None,
    placement: Placement | None = None,
    rules: Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
    **kwargs,
) -> FlaxModule:
    """Return a Flax module as an `nn.Module`.

    Args:
        module: an ``nnx.Module`` with its values, or a ``linen.Module``, which is initialised here.
        example: for Linen, example inputs: arrays or tensors.
        rngs: for Linen, the key or keys of ``init``; ``jax.random.key(0)`` by default.
        train: the name of the module's argument for training mode (``"train"``), or of the opposite
            (``"deterministic"``, ``"use_running_average"``); then `train()` and `eval()` set it.
        placement: where to lay the tensors out: dims whose logical axis is one of its axes, or has one by ``rules``,
            are split over it, all else is broadcast. By default arrays that are sharded over a mesh stay so, with their
            names and layouts, and the others become broadcast there; without such arrays all are local.
        rules: logical axis → axis of the placement, a tuple of them, or None: a dict, or pairs as in Flax.
        **kwargs: for Linen, further arguments of ``init``.

    Returns:
        The module. Its inputs and outputs are tensors; ``logical_axes`` holds the axes that Flax's metadata names.

    Raises:
        MixedTensorError: its arrays are sharded over several meshes.
        SbpError: a rule names an axis that the placement has not.
        OpTypeError: it is no Flax module, or a Linen module cannot be initialised with these inputs.
    """
    if isinstance(module, nnx.Module):
        made = _from_nnx(module, train)
    elif isinstance(module, linen.Module):
        made = _from_linen(module, example, rngs, train, kwargs)
    else:
        raise _no_flax_module(module)
    made._lay_out(placement, dict(rules))
    return made


def _mesh_axes(spec: tuple, rules: Mapping[str, Any], placement: Placement) -> PartitionSpec:
    """Return a spec of logical axes as one of a placement's axes."""
    names = placement.axis_names
    own = [rules.get(e, e if e in names else None) if isinstance(e, str) else e for e in spec]
    return PartitionSpec(*own)


def _no_flax_module(module) -> OpTypeError:
    return OpTypeError(
        "nn.from_flax(module)",
        f"a {type(module).__name__}",
        "the module is a flax.nnx.Module or a flax.linen.Module",
        "nn.from_flax(nnx.Linear(3, 2, rngs=nnx.Rngs(0)))",
    )


def _as_op(call, name: str):
    op = wrap_jax(call, name=name)
    op.check = "none"  # `forward` writes the buffers that backward reads; backward has the arrays from before
    return op


def _names(path) -> tuple[str, ...]:
    found = []
    for entry in path:
        name = getattr(entry, "key", getattr(entry, "name", getattr(entry, "idx", None)))
        if name is not None and str(name) not in ("value", "raw_value"):
            found.append(str(name).replace(".", "_"))
    return tuple(found)


def _is_key(x) -> bool:
    return jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)


def _plain(x):
    return jax.random.key_data(x) if _is_key(x) else x


def _add_train_flag(train: str | None, training: bool, kwargs: dict) -> dict:
    if train is None or train in kwargs:
        return kwargs
    return {**kwargs, train: training if train in _TRAINS else not training}


def _from_nnx(module, train: str | None) -> FlaxModule:
    graph, params, rest = nnx.split(module, nnx.Param, ...)
    made = FlaxModule(type(module).__name__)
    held, held_tree = jax.tree_util.tree_flatten_with_path(params)
    specs = jax.tree_util.tree_leaves(nnx.get_partition_spec(params))
    other, other_tree = jax.tree_util.tree_flatten_with_path(rest)
    keys = [_is_key(x) for _, x in other]
    for (path, value), spec in zip(held, specs, strict=True):
        made._register_array(_names(path), value, True, spec)
    for path, value in other:
        made._register_array(_names(path), _plain(value), False)

    def call(parameters, buffers, key, training, args, kwargs):
        values = [jax.random.wrap_key_data(x) if is_key else x for x, is_key in zip(buffers, keys, strict=True)]
        whole = nnx.merge(
            graph,
            jax.tree_util.tree_unflatten(held_tree, list(parameters)),
            jax.tree_util.tree_unflatten(other_tree, values),
        )
        if train is None:
            (whole.train if training else whole.eval)()
        outs = whole(*args, **_add_train_flag(train, training, kwargs))
        _, _, after = nnx.split(whole, nnx.Param, ...)
        return outs, [_plain(x) for x in jax.tree_util.tree_leaves(after)]

    made.__dict__.update(_call=_as_op(call, name=type(module).__name__), _draws=False, _always=any(keys))
    return made


def _not_initialised(module, example: tuple, error: Exception) -> OpTypeError:
    """Return the error for example inputs with which a Linen module's ``init`` does not run."""
    name = type(module).__name__
    if example and isinstance(example[0], Mapping) and "params" in example[0]:
        seen = f"variables (a {type(example[0]).__name__} with {sorted(example[0])}) where an example input is wanted"
        fix = f"m = nn.from_flax({name}(...), x), then write the values: m.get_parameter(name).copy_(value)"
    else:
        given = ", ".join(type(x).__name__ for x in example) or "none"
        seen = f"example inputs: {given}; init raised {type(error).__name__}: {str(error).splitlines()[0]}"
        fix = f"nn.from_flax({name}(...), sbpjax.ones(batch, features)), with the arguments of its __call__"
    flags = [n for n in inspect.signature(type(module).__call__).parameters if n in (*_TRAINS, *_EVALUATES)]
    if isinstance(error, TypeError) and flags and repr(flags[0]) in str(error):
        fix = f"nn.from_flax({name}(...), x, train={flags[0]!r}): then train() and eval() give that argument"
    rule = "a flax.linen.Module is initialised here, with example inputs of the shapes that it will be called with"
    return OpTypeError(f"nn.from_flax({name}(...), *example)", seen, rule, fix)


def _from_linen(module, example: tuple, rngs, train: str | None, kwargs: dict) -> FlaxModule:
    inputs = jax.tree_util.tree_map(lambda x: payload(x) if isinstance(x, Tensor) else x, example)
    rngs = jax.random.key(0) if rngs is None else rngs
    try:
        variables = module.init(rngs, *inputs, **_add_train_flag(train, False, kwargs))
    except Exception as error:  # of any class: it comes from the module's own code
        raise _not_initialised(module, example, error) from error
    params = variables.get("params", {})
    rest = {k: v for k, v in variables.items() if k != "params"}
    made = FlaxModule(type(module).__name__)
    held, held_tree = jax.tree_util.tree_flatten_with_path(params)
    specs = jax.tree_util.tree_leaves(linen.get_partition_spec(params))
    other, other_tree = jax.tree_util.tree_flatten_with_path(rest)
    for (path, value), spec in zip(held, specs, strict=True):
        made._register_array(_names(path), value, True, spec)
    taken = {_names(path) for path, _ in held}
    for path, value in other:  # without the name of the collection, unless that makes two of a name
        name = _names(path)
        made._register_array(name if name[1:] in taken else name[1:], value, False)
        taken.add(name[1:])

    def call(parameters, buffers, key, training, args, kwargs):
        state = {
            "params": jax.tree_util.tree_unflatten(held_tree, list(parameters)),
            **jax.tree_util.tree_unflatten(other_tree, list(buffers)),
        }
        stream = jax.random.wrap_key_data(jnp.stack(key))
        outs, after = module.apply(
            state, *args, **_add_train_flag(train, training, kwargs), mutable=list(rest), rngs={"dropout": stream}
        )
        return outs, jax.tree_util.tree_leaves(after)

    made.__dict__.update(_call=_as_op(call, name=type(module).__name__), _draws=True, _always=False)
    return made
