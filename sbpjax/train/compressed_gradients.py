"""Gradients that cross slices in bfloat16 or float8, with error feedback.

    trainer = Trainer(
        model=CompressedGradients(GPT2(config), 2, "float8"),
        parallel=Parallel(data=2, fsdp=4),      # two slices of four chips
        ...
    )

Within a slice gradients are summed as usual, and each chip keeps a part. What crosses slices is

    x = gradient of the slice + error       q = x in 16 or 8 bits       error = x - q

and every slice sums the q of all. The error of a step is added in the next one, so that nothing is lost in the long
run. Float8 numbers are scaled by the largest of a tensor's part in a slice. On two slices of N chips a chip receives
`size / N` numbers of 1 or 2 bytes a step, where an all-reduce of float32 receives 4 bytes of each.

Source: Seide et al. 2014, 1-Bit Stochastic Gradient Descent; Karimireddy et al. 2019, Error Feedback Fixes SignSGD.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sbpjax as flow
from sbpjax import models, nn, sbp
from sbpjax.autograd import Function
from sbpjax.errors import TrainError

from .local_updates import check_mesh, mean_loss, nest_table, table_of

# dtype in transfers, the integers that carry its bits, the largest number to scale to
_FORMATS = {
    "bfloat16": (flow.bfloat16, flow.int16, None),
    "float8": (flow.float8_e4m3fn, flow.uint8, 448.0),
}


class CompressedGradients(nn.Module):
    """A model whose gradients are summed over slices in a smaller format.

    Each micro-batch sends its gradients. Buffers of the model are shared by all slices.

    Args:
        model: of local parameters, with a method ``loss``, and without running statistics.
        count: the number of slices, a multiple of the mesh axis ``data``.
        dtype: ``"bfloat16"`` or ``"float8"`` (e4m3).

    Attributes:
        model: the model.

    Raises:
        TrainError: another dtype.

    Example:
        >>> flow.train.CompressedGradients(flow.nn.Linear(3, 2), 2, "float8").error0.shape
        sbpjax.Size([2, 2, 3])
    """

    def __init__(self, model: nn.Module, count: int, dtype: str):
        super().__init__()
        if dtype not in _FORMATS:
            rule = f"gradients cross slices as one of {', '.join(_FORMATS)}"
            raise TrainError("CompressedGradients(dtype=...)", repr(dtype), rule, 'dtype="float8"')
        self.model, self.count, self.dtype = model, count, dtype
        for i, p in enumerate(model.parameters()):
            self.register_buffer(f"error{i}", flow.zeros(count, *p.shape))

    @property
    def config(self) -> Any:
        """The configuration of the model."""
        return getattr(self.model, "config", None)

    def lay_out(self, spec: models.Parallel, sharding: models.Sharding | None = None) -> models.Sharding:
        """Move the model and the errors to a mesh; return the table with the names of this module.

        Args:
            spec: the mesh, without a pipeline.
            sharding: the model's table; by default that of its family. Without one, parameters stay whole.

        Raises:
            TrainError: the mesh has a pipeline, or ``data`` does not divide the slices.
            PlacementError: mesh and model do not fit; see `models.parallelize`.
        """
        check_mesh(self, self.count, spec)
        sharding = table_of(self.model, sharding)
        models.parallelize(self.model, spec, sharding)
        for i, p in enumerate(self.model.parameters()):
            layout = [sbp.split(0), *divide_over_slice(p)]
            setattr(self, f"error{i}", flow.zeros(self.count, *p.shape, placement=p.placement, sbp=layout))
        return nest_table(sharding, "model")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs of the model."""
        return self.model(*args, **kwargs)

    def loss(self, *batch: flow.Tensor, **named: flow.Tensor) -> flow.Tensor:
        """Return the mean of the losses of all slices, each on its part of the batch."""
        parameters = {
            name: _CopyToSlices.apply(p, getattr(self, f"error{i}"), self.dtype)
            for i, (name, p) in enumerate(self.model.named_parameters())
        }
        return mean_loss(self.model, parameters, self.count, batch, named)


def divide_over_slice(parameter: flow.Tensor) -> list[Any]:
    """Return the sbp of a stack `(K, …)` of gradients on the axes within a slice, which divide it where they can."""
    sizes = parameter.placement.hierarchy
    layout = [sbp.split(s.code + 1) if s.is_split else s for s in parameter.sbp[1:]]
    for axis, size in enumerate(sizes[1:]):
        free = [d + 1 for d, n in enumerate(parameter.shape) if n % size == 0 and sbp.split(d + 1) not in layout]
        if layout[axis] == sbp.broadcast and free:
            layout[axis] = sbp.split(free[0])
    return layout


def sum_over_slices(x: flow.Tensor, dtype: str, layout: Sequence[Any] | None) -> tuple[flow.Tensor, flow.Tensor]:
    """Return the sum of the values of all slices as they cross, and what each loses by the format.

    Args:
        x: `(K, …)`, of each slice its own.
        dtype: a name of `_FORMATS`.
        layout: nd-sbp of `x`, split over slices; None for local tensors.
    """
    kind, carrier, largest = _FORMATS[dtype]
    x = x if layout is None else x.to_global(sbp=layout)
    scale = x.new_ones((1,) * x.ndim)
    if largest is not None:
        top = x.abs().amax(tuple(range(1, x.ndim)), keepdim=True)
        scale = largest / top.clamp(min=1e-30)
    sent = (x * scale).to(kind)
    left = x - sent.to(x.dtype) / scale
    if layout is not None:
        # As integers: XLA for CPUs would send bfloat16 as float32, and move conversions to before the transfer. Set
        # before and after it: small gradients a plan may gather as they are, and compress on every slice.
        received = [sbp.broadcast, *layout[1:]]
        sent = sent.view(carrier).to_global(sbp=layout).to_global(sbp=received).view(kind)
        scale = scale.to_global(sbp=[sbp.broadcast] * len(layout))
    return (sent.to(x.dtype) / scale).sum(0), left


class _CopyToSlices(Function):
    """Copies `(K, …)` of a parameter, whose gradients are summed by `sum_over_slices`."""

    @staticmethod
    def forward(ctx: Any, parameter: flow.Tensor, error: flow.Tensor, dtype: str) -> flow.Tensor:
        ctx.error, ctx.dtype = error, dtype
        return parameter.expand(error.shape)

    @staticmethod
    def backward(ctx: Any, grad: flow.Tensor) -> tuple[flow.Tensor, None, None]:
        error = ctx.error
        total, left = sum_over_slices(grad + error, ctx.dtype, error.sbp if error.is_global else None)
        error.copy_(left)
        return total, None, None
