"""`parallelize`: moves a model to a device mesh, by the sharding table of its family.

    SHARDING = Sharding(
        logical_axes={"embedding.weight": ("vocab", "width"), "blocks.*.mlp.up.weight": ("hidden", "width"), …},
        axis_sizes=lambda config: {"heads": config.num_attention_heads, …},
        tail_modules=lambda config: {"norm": -1, "head": -1},
    )
    parallelize(Llama(config), Parallel(data=2, tensor=4))

The model is not changed, only where its parameters lie; what its ops then do follows from their layouts. Where
positions are divided too, it gets hooks (`positions`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import sbpjax as flow
from sbpjax import nn, sbp
from sbpjax.errors import PlacementError, nearest
from sbpjax.graph import GraphModule

from .parallel import Parallel
from .positions import divide_positions


@dataclass(frozen=True)
class Sharding:
    """The logical axes of a family's parameters, and the pipeline stages of its modules.

    Attributes:
        logical_axes: parameter name, as a shell pattern, to the logical axis of each dim; the first match counts.
        axis_sizes: of a configuration, the size of each logical axis in units that stay whole: the number of heads, not
            of rows of all heads.
        blocks: the module list that a pipeline cuts, or several that it cuts as one list.
        tail_modules: of a configuration, the modules after the blocks, and the stage of each: -1, or 0 for those that
            read a parameter of the first stage. All other modules are in stage 0.
        replicated: logical axes that stay whole where their mesh axis does not divide them.
    """

    logical_axes: Mapping[str, tuple[str, ...]]
    axis_sizes: Callable[[Any], Mapping[str, int]]
    blocks: str | tuple[str, ...] = "blocks"
    tail_modules: Callable[[Any], Mapping[str, int]] = lambda config: {}
    replicated: Collection[str] = ("kv_heads",)


def sharding_of(model: nn.Module) -> Sharding:
    """Return the table of a model's family: `SHARDING` in the file `sharding.py` beside the model's.

    Raises:
        PlacementError: there is none.
    """
    module = type(model).__module__
    home = module.rpartition(".")[0]
    try:
        if not home:  # a script, or a module that is in no package
            raise ModuleNotFoundError(module)
        return importlib.import_module(f"{home}.sharding").SHARDING
    except (ModuleNotFoundError, AttributeError):
        where = f"no SHARDING in {home}.sharding" if home else f"a class of {module}, which is in no package"
        operation, seen = f"parallelize({type(model).__name__}(...))", where
        rule = "a table gives the logical axis of each dim of each parameter"
        raise PlacementError(operation, seen, rule, "parallelize(model, spec, Sharding({...}, axis_sizes))") from None


class Layouts:
    """The placement and nd-sbp of every parameter of a model under a spec.

    Args:
        model: it; abstract parameters will do.
        spec: the mesh.
        sharding: the table; that of the model's family by default.

    Raises:
        PlacementError: a parameter has no row, an axis has more parts than there are units, or stages than blocks.
    """

    def __init__(self, model: nn.Module, spec: Parallel, sharding: Sharding | None = None):
        self.spec = spec
        self.sharding = sharding_of(model) if sharding is None else sharding
        self.operation = f"parallelize({type(model).__name__}(...), {spec.equation})"
        config = getattr(model, "config", None)
        self.axis_sizes, self.tail_modules = self.sharding.axis_sizes(config), self.sharding.tail_modules(config)
        self.places = spec.placements
        lists = (self.sharding.blocks,) if isinstance(self.sharding.blocks, str) else self.sharding.blocks
        lists = lists if spec.pipeline > 1 else ()
        cut = [f"{name}.{i}" for name in lists for i, _ in enumerate(model.get_submodule(name).children())]
        self.numbers = {name: number for number, name in enumerate(cut)}  # of the blocks that a pipeline cuts
        self._check()
        self.of = {name: self._placement_and_sbp(name, p) for name, p in model.named_parameters()}

    def _check(self) -> None:
        blocks = len(self.numbers)
        if blocks < self.spec.pipeline and self.spec.pipeline > 1:
            rule = f"{self.spec.equation}: every stage has a block, {self.spec.pipeline} ≤ {blocks}"
            self._refuse(f"{blocks} blocks", rule, f"pipeline={blocks} at most")
        for name, units in self.axis_sizes.items():
            axis = self.spec.axis_rules.get(name)
            size = getattr(self.spec, axis) if axis else 1
            if units < size and name not in self.sharding.replicated:
                rule = f"{self.spec.equation}: every rank of an axis has a part, {axis}={size} ≤ {units} {name}"
                self._refuse(f"{units} {name}", rule, f"{axis}={units} at most")

    def _placement_and_sbp(self, name: str, parameter: flow.Tensor) -> tuple[flow.placement, list[Any]]:
        axes = self._logical_axes(name)
        if axes is None or len(axes) != parameter.ndim:
            near = nearest(name, self.sharding.logical_axes)
            seen = f"{name} of shape {tuple(parameter.shape)}" + ("" if axes is None else f", logical axes {axes}")
            rule = "every parameter matches a row of the table, with a logical axis for each of its dims"
            self._refuse(seen, rule, f"add a row for {name!r}" + (f", as for {near!r}" if near else ""))
        kept = tuple("whole" if self._is_indivisible(p) else p for p in axes or ())
        return self.places[self.stage(name)], self.spec.sbp(kept)

    def _logical_axes(self, name: str) -> tuple[str, ...] | None:
        layer, _, last = name.rpartition(".")
        if last in ("lora_a", "lora_b"):  # as the dim of the weight that they share
            of_weight = self._logical_axes(f"{layer}.weight")
            return of_weight and (("whole", of_weight[1]) if last == "lora_a" else (of_weight[0], "whole"))
        return next((p for pattern, p in self.sharding.logical_axes.items() if fnmatchcase(name, pattern)), None)

    def _is_indivisible(self, name: str) -> bool:
        axis = self.spec.axis_rules.get(name)
        size = getattr(self.spec, axis) if axis else 1
        return name in self.sharding.replicated and self.axis_sizes.get(name, size) % size != 0

    def writers(self, model: nn.Module) -> list[nn.Module]:
        """Return the layers that write the stream: matrices whose columns, embeddings whose rows tensor may split."""
        found = []
        for name, module in model.named_modules():
            dim = next((d for kind, d in ((nn.Linear, 1), (nn.Embedding, 0)) if isinstance(module, kind)), None)
            if dim is not None:
                axes = self._logical_axes(f"{name}.weight")
                found += [module] * (axes is not None and self.spec.axis_rules.get(axes[dim]) == "tensor")
        return found

    def stage(self, name: str) -> int:
        """Return the stage of a parameter or module, by its name."""
        if self.spec.pipeline == 1:
            return 0
        starts = [name.rsplit(".", i)[0] for i in range(name.count(".") + 1)]  # the longest first
        block = next((self.numbers[start] for start in starts if start in self.numbers), None)
        if block is not None:
            return block * self.spec.pipeline // len(self.numbers)
        return (
            next((self.tail_modules[start] for start in starts if start in self.tail_modules), 0) % self.spec.pipeline
        )

    def prepare(self, model: nn.Module) -> None:
        """Apply the rest of the spec to a model with placed parameters: stages, and split positions."""
        self.set_stages(model)
        divide_positions(model, self.spec, self.writers(model))

    def set_stages(self, model: nn.Module) -> None:
        """Set the pipeline stage of every block, for graphs."""
        if self.spec.pipeline == 1:
            return
        for name, module in model.named_modules():
            if name in self.numbers or name in self.tail_modules:
                stage = self.stage(name)
                module.to(GraphModule).set_stage(stage, self.places[stage])

    def _refuse(self, seen: str, rule: str, fix: str) -> None:
        raise PlacementError(self.operation, seen, rule, fix)


def parallelize(model: nn.Module, spec: Parallel, sharding: Sharding | None = None) -> nn.Module:
    """Bring a model's parameters into the layout of a mesh spec, in place.

    Args:
        model: of local parameters, alike in every process.
        spec: the mesh.
        sharding: its table; by default `SHARDING` of the file `sharding.py` beside the model's.

    Returns:
        The model.

    Raises:
        PlacementError: the spec and the model do not fit; the text has the product of the axes. Nothing is moved then.

    Example:
        >>> config = flow.models.llama.LlamaConfig(
        ...     vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=4
        ... )
        >>> model = flow.models.llama.Llama(config)
        >>> _ = flow.models.parallelize(model, flow.models.Parallel(tensor=2, device="cpu"))
        >>> model.head.weight.sbp
        (sbpjax.sbp.split(dim=0),)
    """
    layouts = Layouts(model, spec, sharding)
    for name, parameter in model.named_parameters():
        grad, parameter.grad = parameter.grad, None
        parameter.data = _move_value(parameter.data, *layouts.of[name])
        if grad is not None:
            parameter.grad = _move_value(grad, *layouts.of[name])
    layouts.prepare(model)
    return model


def _move_value(value: flow.Tensor, place: flow.placement, layout: tuple) -> flow.Tensor:
    """Return a value of all processes in a layout."""
    if not (value.is_global or value.is_meta):
        # As an array: it goes in parts to the devices. In several processes a local tensor would be but a part.
        return flow.tensor(value.numpy(), placement=place, sbp=layout)
    whole = value if value.is_global else value.to_global(place, [sbp.broadcast] * len(layout))
    return whole.to_global(place, layout)
