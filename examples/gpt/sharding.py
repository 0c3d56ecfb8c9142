"""Where the GPT runs and how its tensors lie: the only file of this example that knows of devices.

A layout is a placement and, for each of its axes, what that axis is for. On a *data* axis the batch is ``split(0)``
and the parameters are ``broadcast``. On a *tensor* axis the batch is ``broadcast`` and the matrices are split as in
Megatron-LM: the first of a pair by rows (each rank has some heads, some hidden units), the second by columns, so
that only its result, a partial sum, has to travel. For ``2d``, 2 × 4 ranks:

    placement   [[0, 1, 2, 3],      batch                  (split(0), broadcast)
                 [4, 5, 6, 7]]      attention.qkv.weight   (broadcast, split(0))
                                    attention.out.weight   (broadcast, split(1))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import sbpjax as flow
from sbpjax import nn, sbp

DATA, TENSOR = "data", "tensor"

# What a tensor axis does to a parameter, by the end of its name; all others are broadcast.
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
    """

    ranks: tuple
    axes: tuple[str, ...]

    @property
    def placement(self) -> flow.placement:
        """The placement on CPU devices."""
        return flow.placement("cpu", np.array(self.ranks))

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
        """Bring every parameter of the model into its place."""
        for module_name, module in model.named_modules():
            for name, tensor in list(module.named_parameters(recurse=False)):
                full = f"{module_name}.{name}" if module_name else name
                tensor.data = tensor.data.to_global(self.placement, self.parameter(full))

    def place(self, batch: np.ndarray) -> flow.Tensor:
        """Return a batch of tokens `(B, T)` as a global tensor."""
        return flow.tensor(batch).to_global(self.placement, self.batch)


LAYOUTS = {
    "single": Layout((0,), (DATA,)),
    "dp": Layout(tuple(range(8)), (DATA,)),
    "tp": Layout(tuple(range(4)), (TENSOR,)),
    "2d": Layout(((0, 1, 2, 3), (4, 5, 6, 7)), (DATA, TENSOR)),
}
