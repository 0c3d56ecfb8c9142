"""`SavedProgram`: the `Program` of an exported graph, built from its manifest instead of a trace."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax._core.tensor import Tensor
from sbpjax._core.tracing import tree
from sbpjax.sbp import algebra
from sbpjax.sbp.layout import Layout, layout_of
from sbpjax.sbp.placement import placement as Placement

from ..program.outputs import Outputs
from ..program.program import Program
from ..program.slots import StateSlot
from . import manifest


class SavedProgram:
    """An exported program: its manifest, and the tensors that were made of its files.

    Args:
        found: the manifest.
        placement: where it runs, None on one device.
        tensors: its state.
    """

    def __init__(self, found: dict, placement: Placement | None, tensors: list[Tensor]) -> None:
        self._found, self._tensors = found, tensors
        self._placement: Any = placement

    def program(self, exported: Any, target: Any, captured: list[Tensor]) -> Program:
        """Return the program, ready to run.

        Args:
            exported: the program as it was read, a `jax.export.Exported`.
            target: on which device it runs, if on one.
            captured: the tensors that it reads, and that are no state.
        """
        state, outs = self._found["state"], self._found["outputs"]
        slots = [self._slot(facts) for facts in state["inputs"]]
        written = list(state["order"])
        first = 1 + len(slots)
        numbers = range(first, first + len(state["numbers"]))
        arguments = [leaf for leaf in self._found["inputs"]["leaves"] if "static" not in leaf]
        in_layouts = [
            None,
            *(slot.layout for slot in slots),
            *[None] * len(numbers),
            *map(self._layout, arguments),
            *(t.layout for t in captured),
        ]
        results = [leaf for leaf in outs["leaves"] if "static" not in leaf]
        out_layouts = [*(slots[i].layout for i in written), *map(self._layout, results)]
        static = [(manifest.static_of(leaf),) if "static" in leaf else None for leaf in outs["leaves"]]
        skeleton = tree.Skeleton(manifest.structure_of(outs["structure"]), static)
        # On JAX's default device a NumPy argument goes where the program runs by itself.
        moved = self._placement is not None or target != jax.local_devices()[0]
        loose = [i for i, layout in enumerate(in_layouts) if i and layout is None and i not in numbers]
        for slot in slots:
            if not slot.own:  # stacks are made once, not in every call
                owned = [self._tensors[place] for place in slot.places]
                slot.give(owned, slot.array(owned))
        return Program(
            f"{self._found['name']}, loaded",
            jit_without_mesh(exported.call, donate_argnums=tuple(1 + i for i in written)),
            self._structs(exported, target, in_layouts, numbers),
            self._placement,
            slots,
            written,
            captured,
            in_layouts,
            out_layouts,
            Outputs(slots, written, out_layouts, skeleton, [leaf["global"] for leaf in results]),
            self._found["program"]["random"],
            tuple(n["name"] for n in state["numbers"]),
            loose if moved else [],
            is_polymorphic=any(d.__class__ is str for leaf in arguments for d in leaf["shape"]),
            exported=exported,
        )

    def _slot(self, facts: dict) -> StateSlot:
        places = tuple(facts["tensors"])
        if facts["own"]:
            return StateSlot(places, self._tensors[places[0]].layout, True)
        if facts["sbp"] is None:
            return StateSlot(places, None, False)
        first = self._tensors[places[0]].layout
        shape = (len(places), *first.shape) if facts["stacked"] else first.shape
        codes = algebra.parse(facts["sbp"], self._placement, len(shape))
        return StateSlot(places, layout_of(self._placement, codes, shape, first.dtype), False)

    def _layout(self, facts: dict) -> Layout | None:
        if self._placement is None or facts["sbp"] is None:
            return None
        codes = algebra.parse(facts["sbp"], self._placement, len(facts["shape"]))
        return layout_of(self._placement, codes, tuple(facts["shape"]), np.dtype(facts["dtype"]))

    def _structs(self, exported: Any, target: Any, layouts: list, numbers: range) -> list:
        if self._placement is None:
            loose = jax.sharding.SingleDeviceSharding(target)
        else:
            loose = jax.sharding.NamedSharding(self._placement.auto_mesh, jax.sharding.PartitionSpec())
        found = []
        for i, (layout, aval) in enumerate(zip(layouts, exported.in_avals, strict=True)):
            where = loose if layout is None else layout.sharding
            found.append(jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=where, weak_type=i in numbers))
        return found
