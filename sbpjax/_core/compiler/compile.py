"""Program compilation: a function of logical arrays becomes one planned SPMD program over physical arrays.

    compiled = compile_program(step, placement, layouts, out_pins=[0, 1, None], donate=(0, 1))
    outputs = compiled.call(*physical_arrays)       # laid out as compiled.out_layouts
    print(compiled.plan.bytes)                      # bytes that one device receives per call

The plan comes from the disk cache if the same program was planned before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import jax

from sbpjax._core.jax_private import ClosedJaxpr
from sbpjax._core.planner import disk
from sbpjax._core.planner.prices.cost import DEFAULT, CostModel
from sbpjax._core.planner.program import plan_program
from sbpjax._core.programs.normalise import Program, normalise
from sbpjax._core.programs.plan import Plan
from sbpjax._core.programs.scan_layers import roll_layers
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax.errors import MixedTensorError, SbpError
from sbpjax.sbp import algebra
from sbpjax.sbp.layout import Layout, layout_of
from sbpjax.sbp.placement import placement as Placement

from .gspmd import gspmd_function
from .in_place import match_donations
from .lower import spmd_function

LOWERINGS = ("gspmd", "spmd")


@dataclass
class CompiledProgram:
    """A planned program, ready to run.

    Attributes:
        call: physical arrays → tuple of physical arrays; a ``jax.jit`` function, so ``call.lower(...)`` works too.
        plan: the sharding plan.
        in_layouts: the layouts of the inputs; those of free inputs are the planner's choice.
        out_layouts: the layouts of the outputs.
    """

    call: Callable
    plan: Plan
    in_layouts: tuple[Layout, ...]
    out_layouts: tuple[Layout, ...]

    def lower(self):
        """Return the lowered program (``.compile()``, ``.as_text()``) without any array at hand."""
        return self.call.lower(
            *(jax.ShapeDtypeStruct(x.physical_shape, x.dtype, sharding=x.sharding) for x in self.in_layouts)
        )

    def hlo(self) -> str:
        """Return the text of the compiled program."""
        return self.lower().compile().as_text()


def compile_program(
    fn: Callable | ClosedJaxpr | Program,
    placement: Placement,
    in_layouts: Sequence[Layout],
    out_pins: Sequence | None = None,
    donate: Sequence[int] = (),
    *,
    lowering: str = "spmd",
    roll: bool = False,
    free_inputs: Sequence[int] = (),
    whole_dims: Mapping[int, Sequence[int]] = MappingProxyType({}),
    cost: CostModel = DEFAULT,
    memory_bytes: float | None = None,
    compiler_options: Mapping[str, object] | None = None,
) -> CompiledProgram:
    """Plan and lower a function of logical arrays; XLA compiles it at the first call.

    Args:
        fn: a function of logical arrays that returns an array or a tuple of arrays, its closed jaxpr, or a program.
        placement: where it runs.
        in_layouts: the layout of every input; of a free input only shape and dtype count.
        out_pins: for every output an nd-sbp in any form, None (the planner's choice), or the position of the input in
            whose layout it comes back.
        donate: positions of inputs whose memory the outputs may take.
        lowering: ``"spmd"`` (explicit collectives) or ``"gspmd"`` (sharding constraints).
        roll: run repeated layers as loops: the program does not grow with depth, at the price of stacking their weights
            (`_core.programs.scan_layers`). Without it they are calls of one function on CPU (`_core.programs.outline`),
            and copies elsewhere.
        free_inputs: positions of inputs whose layout the planner chooses.
        whole_dims: position of a free input → dims of it that stay whole.
        cost: the prices.
        memory_bytes: the memory limit of one device.
        compiler_options: of XLA's compiler for this program.

    Raises:
        SbpError: unknown lowering, or a pin that does not fit its output.
        MixedTensorError: an input is on another placement.

    Example:
        >>> p = placement("cpu", [0, 1, 2, 3])
        >>> x = Layout(p, "S0", (8, 4), "float32")
        >>> compile_program(lambda x: x.sum(0), p, [x], ["B"]).plan.bytes
        24
    """
    if lowering not in LOWERINGS:
        raise SbpError(
            f"compile_program(lowering={lowering!r})", repr(lowering), f"one of {list(LOWERINGS)}", 'lowering="spmd"'
        )
    for layout in in_layouts:
        if layout.placement != placement:
            raise MixedTensorError(
                "compile_program",
                f"an input on {layout.placement!r}",
                f"every input of the program is on {placement!r}",
                "move it there with to_global(placement=...)",
            )
    if not isinstance(fn, Program):
        closed = fn if isinstance(fn, ClosedJaxpr) else trace(fn, in_layouts)
        # Rolled before it is flat: a layer that is one call there is one equation to be found again.
        fn = normalise(roll_layers(closed).closed if roll else closed)
    program = fn
    pins = _codes_of_pins(program, placement, out_pins)
    whole = {i: tuple(dims) for i, dims in sorted(whole_dims.items())}
    codes = tuple(x.codes for x in in_layouts)
    free, where = tuple(free_inputs), placement.type
    plan = cached_plan(program, placement.hierarchy, codes, pins, free, cost, memory_bytes, whole, where)
    laid_in = tuple(x.with_codes(c) for x, c in zip(in_layouts, plan.in_codes, strict=True))
    laid_out = tuple(
        layout_of(placement, c, tuple(v.aval.shape), v.aval.dtype)
        for v, c in zip(program.outvars, plan.out_codes, strict=True)
    )
    if lowering == "spmd":
        # Calls keep XLA:CPU from fusing across layers (`_core.programs.outline`); compilers for accelerators would
        # lose fusions.
        repeats = "calls" if placement.type == "cpu" else "copies"
        function = spmd_function(plan, placement, repeats=repeats, over=match_donations(laid_in, laid_out, donate))
    else:
        function = gspmd_function(plan, placement)
    options = None if compiler_options is None else dict(compiler_options)
    call = jit_without_mesh(function, donate_argnums=tuple(donate), compiler_options=options)
    return CompiledProgram(call, plan, laid_in, laid_out)


def trace(fn: Callable, layouts: Sequence[Layout]) -> ClosedJaxpr:
    """Return the jaxpr of a function over the logical arrays of layouts."""
    return jax.make_jaxpr(fn)(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in layouts))


def cached_plan(
    program: Program,
    sizes,
    in_codes,
    pins,
    free_inputs,
    cost,
    memory_bytes,
    whole_dims: Mapping = MappingProxyType({}),
    device: str = "",
    even: bool = False,
) -> Plan:
    """Return the plan of a program, from disk if it was made before."""
    free = set(free_inputs)
    # How a device allocates matters only where memory has a limit or a price; else one plan serves all kinds.
    device = device if memory_bytes is not None or cost.memory_us_per_byte else ""
    # The current layout of a free input must not be part of the key: a new plan would be made once it has the planned
    # one.
    requested = tuple(None if i in free else c for i, c in enumerate(in_codes))
    key = disk.digest(program, sizes, requested, pins, free_inputs, cost, memory_bytes, dict(whole_dims), device, even)
    plan = disk.load(key, program, sizes)
    if plan is None:
        plan = plan_program(
            program,
            sizes,
            requested,
            pins,
            free_inputs=free_inputs,
            whole_dims=whole_dims,
            cost=cost,
            memory_bytes=memory_bytes,
            device=device,
            even=even,
        )
        disk.store(key, plan)
    return plan


def _codes_of_pins(program: Program, placement: Placement, out_pins) -> tuple:
    if out_pins is None:
        return (None,) * len(program.outvars)
    if len(out_pins) != len(program.outvars):
        raise SbpError(
            "compile_program(out_pins=...)",
            f"{len(out_pins)} pins for {len(program.outvars)} outputs",
            "there is one pin per output; None leaves the layout to the planner",
            f"give {len(program.outvars)} pins",
        )
    result = []
    for pin, v in zip(out_pins, program.outvars, strict=True):
        if isinstance(pin, int) and not 0 <= pin < len(program.invars):
            raise SbpError(
                "compile_program(out_pins=...)",
                f"a pin to input {pin}",
                f"the program has {len(program.invars)} inputs",
                "name the position of the input in whose layout the output comes back",
            )
        is_sbp = pin is not None and not isinstance(pin, int)
        result.append(algebra.parse(pin, placement, len(v.aval.shape)) if is_sbp else pin)
    return tuple(result)
