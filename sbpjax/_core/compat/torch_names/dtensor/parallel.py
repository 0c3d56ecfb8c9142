"""`torch.distributed.tensor.parallel`: tensor parallelism as layouts of weights and hooks around modules.

    parallelize_module(mlp, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    # up.weight: split(0), so its result is split(-1); down.weight: split(1), so its result is a partial sum

A style gives the module's parameters an sbp and converts local inputs to global ones, and results back. The products
in between, and the communication, follow from the layouts, as for every global tensor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from sbpjax._core.runtime.user_line import warn
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.placed import converting_locals
from sbpjax.errors import OpError, OpTypeError
from sbpjax.nn.layers.embedding import Embedding

from .mesh import DeviceMesh
from .tensor import Placement, Replicate, Shard, distribute_module, distribute_parameters, from_local, to_local


class ParallelStyle:
    """A way to parallelize a module: ``_apply(module, mesh)`` returns it."""

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        raise NotImplementedError


def convert(value: Any, mesh: DeviceMesh, given: Any, wanted: Any) -> Any:
    """Return a tensor as a global one: a local one is a part in the layout `given`; it becomes `wanted`."""
    if given is None or not isinstance(value, Tensor):
        return value
    whole = value if value.is_global else from_local(value, mesh, [given])
    return whole if wanted is None else whole.redistribute(mesh, [wanted])


def convert_output(value: Any, mesh: DeviceMesh, wanted: Placement | None, local: bool) -> Any:
    """Return a result in a layout, local if requested."""
    if wanted is None or not isinstance(value, Tensor):
        return value
    whole = value.redistribute(mesh, [wanted]) if value.is_global else from_local(value, mesh, [wanted])
    return to_local(whole) if local else whole


class _LayerStyle(ParallelStyle):
    """A layer whose first input and whose result have layouts, and whose parameters have them by name."""

    inputs: Placement
    outputs: Placement

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.inputs, self.outputs = input_layouts or self.inputs, output_layouts or self.outputs
        self.use_local_output = use_local_output

    def _parameters(self, module: Any) -> dict[str, Placement]:
        raise NotImplementedError

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        layouts, wanted = self._parameters(module), self._input_placement(module)
        distribute_parameters(module, device_mesh, lambda name: [layouts.get(name, Replicate())])

        def take(_: Any, inputs: tuple, mesh: DeviceMesh) -> tuple:
            return (convert(inputs[0], mesh, self.inputs, wanted), *inputs[1:])

        def give(_: Any, output: Any, mesh: DeviceMesh) -> Any:
            return convert_output(output, mesh, self.outputs, self.use_local_output)

        return distribute_module(module, device_mesh, None, take, give)

    def _input_placement(self, module: Any) -> Placement:
        raise NotImplementedError


class ColwiseParallel(_LayerStyle):
    """A linear layer split by its outputs, or an embedding by its features.

    Args:
        input_layouts: the layout of a local input; it becomes `Replicate`.
        output_layouts: the layout of the result, ``Shard(-1)`` by default.
        use_local_output: return this process's part as a local tensor.
    """

    inputs, outputs = Replicate(), Shard(-1)

    def _parameters(self, module: Any) -> dict[str, Placement]:
        return {"weight": Shard(1)} if isinstance(module, Embedding) else {"weight": Shard(0), "bias": Shard(0)}

    def _input_placement(self, module: Any) -> Placement:
        return Replicate()


class RowwiseParallel(_LayerStyle):
    """A linear layer split by its inputs, or an embedding by its rows.

    Args:
        input_layouts: the layout of a local input, ``Shard(-1)`` by default.
        output_layouts: the layout of the result, `Replicate` by default.
        use_local_output: return this process's part as a local tensor.
    """

    inputs, outputs = Shard(-1), Replicate()

    def _parameters(self, module: Any) -> dict[str, Placement]:
        return {"weight": Shard(0) if isinstance(module, Embedding) else Shard(1)}

    def _input_placement(self, module: Any) -> Placement:
        return Replicate() if isinstance(module, Embedding) else Shard(-1)


class SequenceParallel(_LayerStyle):
    """A layer that works on each position alone, such as a LayerNorm, split by positions.

    Args:
        sequence_dim: the dim of the positions.
        use_local_output: return this process's part as a local tensor.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        layout = Shard(sequence_dim)
        super().__init__(input_layouts=layout, output_layouts=layout, use_local_output=use_local_output)

    def _parameters(self, module: Any) -> dict[str, Placement]:
        return {}

    def _input_placement(self, module: Any) -> Placement:
        return self.inputs


def _layouts(value: Any) -> tuple:
    return tuple(value) if isinstance(value, Sequence) else (value,)


class PrepareModuleInput(ParallelStyle):
    """Conversion of a module's arguments before its forward.

    Args:
        input_layouts: the layouts of local arguments by position; None for one that stays.
        desired_input_layouts: those that they get.
        input_kwarg_layouts: likewise, by name.
        desired_input_kwarg_layouts: likewise.
        use_local_output: pass local tensors on.
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict | None = None,
        desired_input_kwarg_layouts: dict | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.inputs, self.wanted = _layouts(input_layouts or ()), _layouts(desired_input_layouts or ())
        self.keywords, self.wanted_keywords = input_kwarg_layouts or {}, desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if len(self.inputs) != len(self.wanted):
            rule = "input_layouts and desired_input_layouts should have same length!"
            fix = "PrepareModuleInput(input_layouts=(Shard(1), None), desired_input_layouts=(Replicate(), None))"
            raise OpError("PrepareModuleInput(...)", f"{self.inputs} and {self.wanted}", rule, fix)

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        def one(value: Any, given: Any, wanted: Any) -> Any:
            found = convert(value, device_mesh, given, wanted)
            return to_local(found) if self.use_local_output and isinstance(found, Tensor) and given else found

        def take(_: Any, args: tuple, kwargs: dict) -> tuple:
            if self.inputs and len(args) != len(self.inputs):
                rule, fix = "module inputs and input_layouts should have same length!", "None for one that stays"
                raise OpError("PrepareModuleInput", f"{len(args)} inputs, {self.inputs}", rule, fix)
            args = tuple(map(one, args, self.inputs, self.wanted)) if self.inputs else args
            names = self.keywords
            return args, {k: one(v, names.get(k), self.wanted_keywords.get(k)) for k, v in kwargs.items()}

        module.register_forward_pre_hook(take, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Conversion of a module's results after its forward.

    Args:
        output_layouts: the layouts of local results; None for one that stays.
        desired_output_layouts: those that they get.
        use_local_output: return local tensors.
    """

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True) -> None:
        self.outputs, self.wanted = _layouts(output_layouts), _layouts(desired_output_layouts)
        self.use_local_output = use_local_output

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        def give(_: Any, inputs: Any, outputs: Any) -> Any:
            several = isinstance(outputs, (tuple, list))
            found = [
                convert_output(convert(o, device_mesh, given, None), device_mesh, wanted, self.use_local_output)
                for o, given, wanted in zip(outputs if several else (outputs,), self.outputs, self.wanted, strict=True)
            ]
            return type(outputs)(found) if several else found[0]

        module.register_forward_hook(give)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """Conversion of a module's arguments and results; see `PrepareModuleInput` and `PrepareModuleOutput`."""

    def __init__(
        self,
        *,
        use_local_input: bool = False,
        output_layouts: Any = None,
        desired_output_layouts: Any = None,
        use_local_output: bool = True,
        **inputs: Any,
    ) -> None:
        self._input = PrepareModuleInput(use_local_output=use_local_input, **inputs)
        self._output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        return self._output._apply(self._input._apply(module, device_mesh), device_mesh)


def parallelize_module(
    module: Any, device_mesh: DeviceMesh | None = None, parallelize_plan: Any = None, *, src_data_rank: int | None = 0
) -> Any:
    """Apply a style to a module, or styles to its submodules, in place.

    Args:
        module: the module.
        device_mesh: a mesh of one axis.
        parallelize_plan: a style; or a dict of submodules' names, with ``*`` for any part between dots, to styles.
        src_data_rank: accepted: the first process of the mesh gives the weights.

    Returns:
        The module itself.

    Raises:
        OpError: the mesh has several axes.
        OpTypeError: there is no plan, or no mesh.

    Warns:
        UserWarning: a name fits no submodule.
    """
    if device_mesh is None or not (isinstance(parallelize_plan, (dict, ParallelStyle)) or parallelize_plan is None):
        rule = "a mesh, and a ParallelStyle or a dict of them, are given"
        raise OpTypeError("parallelize_module(...)", f"{parallelize_plan!r}", rule, "parallelize_module(m, mesh, plan)")
    if device_mesh.ndim != 1:
        rule, fix = "a mesh of one axis", "parallelize_module(module, mesh['tp'], plan)"
        raise OpError("parallelize_module(...)", repr(device_mesh), rule, fix)
    if isinstance(parallelize_plan, ParallelStyle):
        return parallelize_plan._apply(module, device_mesh)
    for pattern, style in (parallelize_plan or {}).items():
        parts = pattern.split(".") if pattern else []
        found = [
            one
            for name, one in list(module.named_modules())
            if len(path := name.split(".") if name else []) == len(parts) and all(map(fnmatchcase, path, parts))
        ]
        if not found:
            warn(f"parallelize_module: no submodule fits {pattern!r}", UserWarning)
        for one in found:
            parallelize_module(one, device_mesh, style)
    return module


@contextlib.contextmanager
def loss_parallel():
    """Take local targets beside global logits as copies; a cross entropy of split classes is computed split anyway."""
    with converting_locals(lambda x, placement: from_local(x, DeviceMesh.of(placement))):
        yield


implicit_replication = loss_parallel
