"""`PlannedStep`: a step that runs by its plan, as one `jax.jit` with the plan's shardings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from sbpjax._core.compiler.gspmd import gspmd_function
from sbpjax._core.compiler.in_place import match_donations
from sbpjax._core.compiler.lower import spmd_function
from sbpjax._core.programs.plan import Plan
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax.errors import MixedTensorError, PlacementError
from sbpjax.sbp.layout import layout_of

from .arguments import take_apart, update_objects
from .mesh import MeshAxes
from .step import Step

LOWERINGS = ("shard_map", "constraints")


class PlannedStep:
    """A step that runs by a plan; made by `StepPlan.jit`.

    It is called like the step. Arrays that no device was chosen for, such as NumPy's and new ones, are divided as the
    plan says; results have the plan's shardings.

    Args:
        step: the traced step.
        plan: its plan.
        axes: the mesh.
        lowering: ``"shard_map"`` or ``"constraints"``.
        donated: the inputs whose memory results may take.
    """

    def __init__(self, step: Step, plan: Plan, axes: MeshAxes, lowering: str, donated: Sequence[int]) -> None:
        self._step, self._axes = step, axes
        self.__name__, self.__doc__ = step.signature.title, getattr(step.fn, "__doc__", None)
        program, placement = plan.program, axes.placement
        ins: list[Any] = [(v.aval, codes) for v, codes in zip(program.invars, plan.in_codes, strict=True)]
        outs: list[Any] = [(v.aval, codes) for v, codes in zip(program.outvars, plan.out_codes, strict=True)]
        if lowering == "constraints":
            function = gspmd_function(plan, placement)
        else:
            layouts = ([layout_of(placement, c, tuple(a.shape), a.dtype) for a, c in side] for side in (ins, outs))
            repeats = "calls" if placement.type == "cpu" else "copies"
            over = match_donations(*layouts, donated)
            function = spmd_function(plan, placement, repeats=repeats, over=over)
        self.shardings = tuple(axes.sharding(codes, len(aval.shape)) for aval, codes in ins)
        self._call = jit_without_mesh(
            self._reshard_operands(function) if axes.is_explicit else function,
            in_shardings=self.shardings,
            out_shardings=tuple(axes.sharding(codes, len(aval.shape)) for aval, codes in outs),
            donate_argnums=tuple(donated),
        )

    def _reshard_operands(self, function: Callable) -> Callable:
        """Return a function whose operands have the planned shardings in their types, as Explicit axes demand."""
        return lambda *arrays: function(*map(jax.sharding.reshard, arrays, self.shardings))

    def __call__(self, *args: Any) -> Any:
        """Run the step.

        Raises:
            OpValueError: the arguments have another form than those that were planned for.
            MixedTensorError: an array is on other devices, or divided in another way.
            PlacementError: the devices of the mesh are absent.
        """
        found = take_apart(args)
        self._step.signature.check(found)
        if not self._axes.placement.is_present:
            raise PlacementError(
                f"the planned {self.__name__}(...)",
                f"a mesh of {self._axes.placement.size} absent devices",
                "a step for absent devices can be compiled and inspected, not run",
                f"plan.jit({self.__name__}).lower().compile()",
            )
        try:
            outs = self._call(*found.arrays)
        except ValueError as error:
            raise self._sharding_error(found.arrays) or error from None
        result, states = self._step.unflatten(outs)
        update_objects(found, states)
        return result

    def lower(self) -> Any:
        """Return the lowered program of the step, without running it: ``lower().compile().as_text()``."""
        avals = zip(self._step.signature.avals, self.shardings, strict=True)
        return self._call.lower(
            *(jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s, weak_type=a.weak_type) for a, s in avals)
        )

    def _sharding_error(self, arrays: Sequence) -> MixedTensorError | None:
        """Return the error for the first array whose sharding is not the plan's."""
        for name, x, wanted in zip(self._step.signature.names, arrays, self.shardings, strict=True):
            if isinstance(x, jax.Array) and x.committed and not x.sharding.is_equivalent_to(wanted, x.ndim):
                return MixedTensorError(
                    f"the planned {self.__name__}(...)",
                    f"{name} {x.dtype}{list(x.shape)} as {x.sharding}",
                    f"the plan has it as {wanted.spec} over the mesh {self._axes.title}",
                    "args = plan.put(*args)",
                )
        return None
