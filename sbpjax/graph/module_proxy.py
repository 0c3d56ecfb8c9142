"""Module proxies: ``graph.model`` is the module itself, as seen from one graph.

    graph.model.to(nn.graph.GraphModule).activation_checkpointing = True
    for layer in graph.model.layers:                      # proxies too
        layer.to(nn.graph.GraphModule).set_stage(1, placement)
    graph.model.to(nn.Module)                             # the module

A proxy passes every attribute through, in both directions, and is an instance of its module's class. Parameters and
buffers come as themselves; ``weight.to(nn.graph.GraphTensor)`` gives their options.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator
from typing import Any

import jax

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.storage.version_counter import changes
from sbpjax.errors import GraphConfigError, GraphTypeError
from sbpjax.nn.module import Module
from sbpjax.sbp.placement import placement as Placement

from .program.forward_backward import POLICIES

# Counts the changes of options, so that a graph sees quickly that there was none.
CHANGES = [0]
EVERYWHERE: weakref.WeakKeyDictionary[Module, Any] = weakref.WeakKeyDictionary()  # module → its `GraphModule`


def note_options() -> None:
    """Count a change of a block's options: earlier programs may not fit."""
    CHANGES[0] += 1
    changes.note()


class GraphBlock:
    """Options of one module or tensor in a graph.

    Attributes:
        name: its last name.
        name_prefix: the part before it, with a dot at the end.
        stage_id: the pipeline stage, None if none was set.
        stage_placement: the devices of that stage.
    """

    stage_id: int | None = None
    stage_placement: Any = None

    def __init__(self, path: str = "", graph: Any = None) -> None:
        prefix, dot, self._name = path.rpartition(".")
        self._prefix = prefix + dot
        self._graph = None if graph is None else weakref.ref(graph)

    @property
    def name(self) -> str:
        """The last part of the name."""
        return self._name

    @property
    def name_prefix(self) -> str:
        """The part before the name."""
        return self._prefix

    @property
    def scope(self) -> str:
        """The name under which ops of this block are traced."""
        return self._prefix + self._name

    @property
    def prev_scope(self) -> str:
        """The name under which ops of the block around it are traced."""
        return self._prefix.removesuffix(".")

    def scope_context(self) -> Any:
        """Return a context manager under which traced ops carry this block's name."""
        return jax.named_scope(self.scope.replace(".", "/") or "graph")

    def set_stage(self, stage_id: int | None = None, placement: Any = None) -> None:
        """Set the pipeline stage of the block.

        Args:
            stage_id: the number of the stage, from 0.
            placement: the devices of the stage; None keeps those of its tensors.
        """
        operation = f"set_stage of {self.scope or 'a block'}"
        if stage_id is not None and (isinstance(stage_id, bool) or not isinstance(stage_id, int) or stage_id < 0):
            raise GraphConfigError(
                operation, f"stage_id={stage_id!r}", "a stage is a whole number of at least 0", "set_stage(0)"
            )
        if placement is not None and not isinstance(placement, Placement):
            raise GraphTypeError(
                operation,
                f"placement of type {type(placement).__name__}",
                "placement is an sbpjax.placement",
                'set_stage(0, sbpjax.placement("cpu", [0, 1]))',
            )
        self.stage_id, self.stage_placement = stage_id, placement
        note_options()


class GraphModule(GraphBlock):
    """Options of one module in a graph: its stage, and whether its activations are kept."""

    def __init__(self, path: str = "", graph: Any = None) -> None:
        super().__init__(path, graph)
        self._activation_checkpointing: Any = None  # None: not set here
        self._debug_level: int | None = None

    @classmethod
    def of_module(cls, module: Module) -> GraphModule:
        """Return the options of a module in every graph that sets none of its own; ``module.to(GraphModule)``."""
        found = EVERYWHERE.get(module)
        if found is None:
            found = EVERYWHERE[module] = cls()
        return found

    @property
    def type(self) -> str:
        """``"MODULE"``."""
        return "MODULE"

    @property
    def activation_checkpointing(self) -> Any:
        """Whether the module computes its activations again in backward instead of keeping them.

        True, False, or the name of a policy of the values to keep.
        """
        return self._activation_checkpointing or False

    @activation_checkpointing.setter
    def activation_checkpointing(self, value: Any = False) -> None:
        self._activation_checkpointing = checked_policy(value, self.scope)
        note_options()

    def debug(
        self,
        v_level: int = 0,
        *,
        ranks: int | list[int] | None = None,
        max_py_stack_depth: int = 2,
        only_user_py_stack: bool = True,
        op_repr_with_py_stack: bool = False,
    ) -> None:
        """Print this module when a program is made, as `Graph.debug` does for all."""
        graph = None if self._graph is None else self._graph()
        if graph is not None:
            graph._g.debug.set_module(self.scope, v_level, ranks)

    def __repr__(self) -> str:
        text = f"(GRAPH:{self.scope}:GraphModule): activation_checkpointing={self.activation_checkpointing}"
        return text if self.stage_id is None else f"{text}, stage_id={self.stage_id}"


class GraphTensor(GraphBlock):
    """Options of one parameter or buffer in a graph: its stage."""

    @property
    def type(self) -> str:
        """``"TENSOR"``."""
        return "TENSOR"

    @classmethod
    def of_tensor(cls, tensor: Tensor) -> GraphTensor:
        """Return the options of a tensor, made on first use; ``tensor.to(GraphTensor)`` comes here."""
        found = tensor.__dict__.get("_graph_tensor")
        if found is None:
            found = tensor.__dict__["_graph_tensor"] = cls()
        return found

    def __repr__(self) -> str:
        return f"(GRAPH:{self.scope}:GraphTensor): stage_id={self.stage_id}"


def checked_policy(value: Any, where: str) -> Any:
    """Return a value for `GraphModule.activation_checkpointing`, or raise a GraphConfigError."""
    if isinstance(value, bool) or value in POLICIES:
        return value
    raise GraphConfigError(
        f"activation_checkpointing of {where or 'a module'}",
        repr(value),
        f"True, False, or one of {sorted(POLICIES)}",
        "module.to(nn.graph.GraphModule).activation_checkpointing = True",
    )


class Proxy:
    """Base of the proxies, for ``isinstance``."""


class ProxyModule(Proxy):
    """A module as one graph sees it.

    Args:
        graph: the graph.
        path: the module's dotted name in it.
        module: the module.
    """

    def __init__(self, graph: Any, path: str, module: Module) -> None:
        # Past this class's own `__setattr__`, which writes to the module.
        # Weak: the graph holds its proxies, and a cycle would leave its programs to the garbage collector.
        object.__setattr__(self, "_proxy_graph", weakref.ref(graph))
        object.__setattr__(self, "_proxy_path", path)
        object.__setattr__(self, "_proxy_module", module)

    # -- the module behind the proxy -------------------------------------------------------------------------------

    @property
    # ``isinstance(graph.model, MyModel)`` holds.
    def __class__(self) -> type:  # type: ignore[override]
        return type(self._proxy_module)

    @property
    def origin(self) -> Module:
        """The module."""
        return self._proxy_module

    @property
    def config(self) -> Any:
        """The options of the module in this graph, in OneFlow's older spelling; the module's own ``config`` if any."""
        module = self._proxy_module
        return module.config if hasattr(module, "config") else self.to(GraphModule)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Return the module for `Module`, its options for `GraphModule`; else do the module's own ``to``."""
        if len(args) == 1 and not kwargs and isinstance(args[0], type):
            if args[0] is GraphModule:
                return _options(self._graph(), self._proxy_path, self._proxy_module)
            if issubclass(args[0], Module):
                return self._proxy_module
            if args[0] is GraphTensor:
                raise GraphTypeError(
                    f"{self._proxy_path}.to(GraphTensor)",
                    f"a {type(self._proxy_module).__name__}",
                    "GraphTensor holds the options of parameters and buffers",
                    ".to(nn.graph.GraphModule)",
                )
        result = self._proxy_module.to(*args, **kwargs)
        # ``graph.model.to(device)`` gives the module itself: chained calls stay with the proxy.
        return self if result is self._proxy_module else result

    def _graph(self) -> Any:
        return self._proxy_graph()

    def _wrap_value(self, value: Any, path: str = "") -> Any:
        """Return a module as its proxy, anything else as it is."""
        graph = self._graph()
        if graph is None or isinstance(value, ProxyModule) or not isinstance(value, Module):
            return value
        return graph._proxy(value, path)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._proxy_module(*args, **kwargs)

    # -- attributes ------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        module = self._proxy_module
        value = getattr(module, name)
        if isinstance(value, Module):
            return self._wrap_value(value, f"{self._proxy_path}.{name}")
        if isinstance(value, Tensor):
            block = GraphTensor.of_tensor(value)
            if not block._name:
                block._prefix, block._name = f"{self._proxy_path}.", name
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._proxy_module, name, origin_of(value))

    def __delattr__(self, name: str) -> None:
        delattr(self._proxy_module, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._proxy_module), "origin", "to"})

    def __copy__(self) -> Module:
        """Return a copy of the module, which belongs to no graph."""
        return copy.copy(self._proxy_module)

    def __deepcopy__(self, memo: dict[int, Any]) -> Module:
        """Return a copy of the module, which belongs to no graph."""
        return copy.deepcopy(self._proxy_module, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._proxy_module.__reduce_ex__(protocol)

    # -- containers ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._proxy_module)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        return map(self._wrap_value, iter(self._proxy_module))  # type: ignore[call-overload]

    def __contains__(self, item: Any) -> bool:
        return origin_of(item) in self._proxy_module  # type: ignore[operator]

    def __getitem__(self, key: Any) -> Any:
        module: Any = self._proxy_module
        return self._wrap_value(module[key], f"{self._proxy_path}[{key!r}]")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._proxy_module[key] = origin_of(value)  # type: ignore[index]

    def __delitem__(self, key: Any) -> None:
        del self._proxy_module[key]  # type: ignore[attr-defined]

    def __bool__(self) -> bool:
        return bool(self._proxy_module)

    def values(self) -> Any:
        """Return the modules of a `ModuleDict`, as proxies; else the result of the module's own ``values()``."""
        found: Any = self._proxy_module.values()
        return [self._wrap_value(v) for v in found]

    def items(self) -> Any:
        """Return the pairs of a `ModuleDict`, with proxies; else those of the module's own ``items()``."""
        found: Any = self._proxy_module.items()
        return [(k, self._wrap_value(v)) for k, v in found]

    # -- traversal -------------------------------------------------------------------------------------------------

    def named_modules(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Yield the names and proxies of this module and all below it."""
        for name, module in self._proxy_module.named_modules(*args, **kwargs):
            yield name, self._wrap_value(module)

    def modules(self) -> Iterator[Any]:
        """Yield the proxies of this module and all below it."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Yield the names and proxies of the direct children."""
        for name, module in self._proxy_module.named_children():
            yield name, self._wrap_value(module, f"{self._proxy_path}.{name}")

    def children(self) -> Iterator[Any]:
        """Yield the proxies of the direct children."""
        for _, module in self.named_children():
            yield module

    def get_submodule(self, target: str) -> Any:
        """Return the proxy of the module below this one with the dotted name `target`."""
        return self._wrap_value(self._proxy_module.get_submodule(target), f"{self._proxy_path}.{target}")

    def apply(self, fn: Any) -> Any:
        """Do the module's own ``apply``; return the proxy."""
        self._proxy_module.apply(fn)
        return self

    def train(self, mode: bool = True) -> Any:
        """Set training mode; return the proxy."""
        self._proxy_module.train(mode)
        return self

    def eval(self) -> Any:
        """Set evaluation mode; return the proxy."""
        self._proxy_module.eval()
        return self

    def __eq__(self, other: object) -> bool:
        return origin_of(other) is self._proxy_module

    def __hash__(self) -> int:
        return hash(self._proxy_module)

    def __repr__(self) -> str:
        return f"(MODULE:{self._proxy_path}:{self._proxy_module!r})"


def origin_of(value: Any) -> Any:
    """Return the module of a proxy; everything else as it is."""
    return value.origin if isinstance(value, ProxyModule) else value


def checkpoints_of(graph: Any) -> dict[Module, Any]:
    """Return the policy of each checkpointed module of a graph."""
    own = graph._g.options
    found = {}
    for block in graph._g.blocks.values():
        for module in block.modules():
            set_here = own[module]._activation_checkpointing if module in own else None
            if set_here is None and module in EVERYWHERE:
                set_here = EVERYWHERE[module]._activation_checkpointing
            if set_here is not None and set_here is not False:
                found[module] = set_here
    return found


def stages_of(graph: Any) -> dict[Module, Any]:
    """Return the placement of each module of a graph that has one from `set_stage`."""
    own = graph._g.options
    found = {}
    for block in graph._g.blocks.values():
        for module in block.modules():
            for options in (own.get(module), EVERYWHERE.get(module)):
                if options is not None and options.stage_placement is not None:
                    found.setdefault(module, options.stage_placement)
    return found


def _options(graph: Any, path: str, module: Module) -> GraphModule:
    table = graph._g.options
    found = table.get(module)
    if found is None:
        found = table[module] = GraphModule(path, graph)
    return found
