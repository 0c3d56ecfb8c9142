"""Layouts of the GPT: the only file of this example that mentions devices.

A layout is a placement and the purpose of each of its axes. On a *data* axis the batch is ``split(0)``
and the parameters are ``broadcast``. On a *tensor* axis the batch is ``broadcast`` and the matrices are split as in
Megatron-LM: the first of a pair by rows (each rank has some heads, some hidden units), the second by columns, so
that only its result, a partial sum, is communicated. For ``2d``, 2 × 4 ranks:

    placement   [[0, 1, 2, 3],      batch                  (split(0), broadcast)
                 [4, 5, 6, 7]]      attention.qkv.weight   (broadcast, split(0))
                                    attention.out.weight   (broadcast, split(1))

In two *stages* half of the ranks of every row have the first half of the blocks, the others the second: 2 × 2 × 2. The
embedding is also the head, so the output of the last block goes back to the first stage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import sbpjax as flow
from sbpjax import nn, sbp

DATA, TENSOR = "data", "tensor"

# Split of a parameter over a tensor axis, by the end of its name; all others are broadcast.
TENSOR_PARALLEL = {
    "qkv.weight": sbp.split(0),
    "qkv.bias": sbp.split(0),
    "out.weight": sbp.split(1),
    "up.weight": sbp.split(0),
    "up.bias": sbp.split(0),
    "down.weight": sbp.split(1),
    "token.weight": sbp.split(0),
}


@dataclass(frozen=True)
class Layout:
    """A placement whose axes have a purpose.

    Attributes:
        ranks: the device numbers, an array with one dim per axis.
        axes: for each axis `DATA` or `TENSOR`.
        stages: into how many stages the blocks are cut; the last axis of the ranks is divided among them.
    """

    ranks: tuple
    axes: tuple[str, ...]
    stages: int = 1

    @property
    def placements(self) -> list[flow.placement]:
        """The placement of each stage, on CPU devices."""
        return [flow.placement("cpu", ranks) for ranks in np.split(np.array(self.ranks), self.stages, axis=-1)]

    @property
    def placement(self) -> flow.placement:
        """The placement of the first stage: of inputs and targets, embeddings and head."""
        return self.placements[0]

    @property
    def batch(self) -> list:
        """The nd-sbp of inputs and targets."""
        return [sbp.split(0) if axis == DATA else sbp.broadcast for axis in self.axes]

    def parameter(self, name: str) -> list:
        """Return the nd-sbp of a parameter."""
        ending = ".".join(name.split(".")[-2:])
        tensor = TENSOR_PARALLEL.get(ending, sbp.broadcast)
        return [tensor if axis == TENSOR else sbp.broadcast for axis in self.axes]

    def lay_out(self, model: nn.Module) -> None:
        """Lay out every parameter of the model, and assign each block to a stage."""
        places = self.placements
        stage_of = {}
        for i, block in enumerate(model.blocks):
            stage = i * self.stages // len(model.blocks)
            stage_of.update(dict.fromkeys(block.modules(), stage))
            if self.stages > 1:
                block.to(nn.graph.GraphModule).set_stage(stage, places[stage])
        if self.stages > 1:
            model.norm.to(nn.graph.GraphModule).set_stage(0, places[0])
        for module_name, module in model.named_modules():
            for name, tensor in list(module.named_parameters(recurse=False)):
                full = f"{module_name}.{name}" if module_name else name
                tensor.data = self._everywhere(tensor.data, places[stage_of.get(module, 0)], self.parameter(full))

    @staticmethod
    def _everywhere(value: flow.Tensor, place: flow.placement, layout: list) -> flow.Tensor:
        """Return a tensor that every process has, global: with several processes a split local one is but a part."""
        return value.to_global(place, [sbp.broadcast] * len(layout)).to_global(place, layout)

    def place(self, batch: np.ndarray) -> flow.Tensor:
        """Return a batch of tokens `(B, T)` as a global tensor."""
        return flow.tensor(batch, placement=self.placement, sbp=self.batch)  # every process has the whole batch


LAYOUTS = {
    "single": Layout((0,), (DATA,)),
    "dp": Layout(tuple(range(8)), (DATA,)),
    "tp": Layout(tuple(range(4)), (TENSOR,)),
    "2d": Layout(((0, 1, 2, 3), (4, 5, 6, 7)), (DATA, TENSOR)),
}
