"""Local-update training across slices (DiLoCo): replicas of a model train apart and are averaged every few steps.

    trainer = Trainer(
        model=Replicas(GPT2(config), 2),
        parallel=Parallel(data=2, fsdp=4),      # two slices of four chips
        hooks=[OuterStep(every=20)],
        ...                                     # AdamW, data, steps as usual
    )

The parameters of all replicas are stacked, `(K, …)`, and split over the mesh axis ``data``: each slice has its own, and
a training step moves nothing between slices but the mean loss and the norm of the gradient. Every ``every`` steps
`OuterStep` moves the global parameters by Nesterov momentum along the averaged difference, and all replicas go on from
there. What is averaged are the parts that `fsdp` and `tensor` leave on a chip: with four chips in a slice, each sends a
fourth of the parameters.

Source: Douillard et al. 2023, DiLoCo: Distributed Low-Communication Training of Language Models.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sbpjax as flow
from sbpjax import func, models, nn, sbp
from sbpjax.errors import PlacementError, TrainError
from sbpjax.models.parallelize import sharding_of

from .hooks.hook import Hook, is_due
from .step import sum_losses

if TYPE_CHECKING:
    from .trainer import Trainer


class Replicas(nn.Module):
    """Copies of a model that train independently, as one model.

    A batch is cut into a part for each replica, in order. Adam's update does not depend on the scale of a gradient;
    `StepOptions.clip` bounds the norm of the mean loss's gradient over all replicas.

    Args:
        model: of local parameters, with a method ``loss``, and without running statistics.
        count: the number of replicas, a multiple of the mesh axis ``data``.

    Attributes:
        model: the global model, from which replicas start after each outer step; evaluations use it.
        stacked: the parameters of all replicas, each `(count, …)`.

    Example:
        >>> flow.train.Replicas(flow.nn.Linear(3, 2), 4).stacked.weight.shape
        sbpjax.Size([4, 2, 3])
    """

    def __init__(self, model: nn.Module, count: int):
        super().__init__()
        self.count = count
        self.stacked = copy.deepcopy(model)
        for parameter in self.stacked.parameters():
            parameter.data = flow.stack([parameter.data] * count)
        # No submodule: the parameters of the global model are no parameters of the replicas.
        self.__dict__["model"] = model

    @property
    def config(self) -> Any:
        """The configuration of the model."""
        return getattr(self.model, "config", None)

    def lay_out(self, spec: models.Parallel, sharding: models.Sharding | None = None) -> models.Sharding:
        """Move the replicas and the global model to a mesh; return the table of the replicas.

        Args:
            spec: the mesh, without a pipeline.
            sharding: the model's table; by default that of its family. Without one, parameters stay whole in a slice.

        Raises:
            TrainError: the mesh has a pipeline, or ``data`` does not divide the replicas.
            PlacementError: mesh and model do not fit; see `models.parallelize`.
        """
        check_mesh(self, self.count, spec)
        sharding = table_of(self.model, sharding)
        sizes = sharding.axis_sizes
        stacked = dataclasses.replace(
            nest_table(sharding, "stacked", ("replicas",)),
            axis_sizes=lambda config: {**sizes(config), "replicas": self.count},
        )
        models.parallelize(self, spec, stacked)
        models.parallelize(self.model, spec, sharding)
        return stacked

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs of the global model."""
        return self.model(*args, **kwargs)

    def loss(self, *batch: flow.Tensor, **named: flow.Tensor) -> flow.Tensor:
        """Return the mean of the losses of all replicas, each on its part of the batch."""
        return mean_loss(self.stacked, dict(self.stacked.named_parameters()), self.count, batch, named)


class OuterStep(Hook):
    """Every few steps, update the global model by the replicas' averaged difference, and continue from it.

        difference = global - mean of replicas
        velocity   = momentum velocity + difference
        global    -= lr (difference + momentum velocity)

    Args:
        every: the training steps between two outer steps; one follows the last step, too.
        lr: the outer learning rate.
        momentum: of Nesterov's method.

    Raises:
        TrainError: the trainer's model is no `Replicas`.

    Example:
        >>> OuterStep(every=20).lr
        0.7
    """

    name = "outer_step"
    order = -2  # averages and evaluations see the result

    def __init__(self, *, every: int = 20, lr: float = 0.7, momentum: float = 0.9):
        self.every, self.lr, self.momentum = every, lr, momentum

    def set_up(self, trainer: Trainer) -> None:
        """Start with the model as it is and without velocity."""
        if not isinstance(trainer.model, Replicas):
            seen = f"model={type(trainer.model).__name__}(...)"
            rule = "an outer step averages replicas"
            raise TrainError("OuterStep(...)", seen, rule, "model=Replicas(model, 2), parallel=Parallel(data=2, …)")
        trainer.evaluated_model = trainer.model.model
        self.graph = OuterStepGraph(trainer.model, self.lr, self.momentum)

    def after_step(self, trainer: Trainer) -> None:
        """Do an outer step if it is due."""
        if is_due(trainer.step, self.every, trainer.max_steps):
            self.graph()

    def state_dict(self) -> dict[str, Any]:
        """Return the global model and the velocity."""
        return {"model": self.graph.model.state_dict(), "velocity": self.graph.velocity.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        self.graph.model.load_state_dict(state["model"])
        self.graph.velocity.load_state_dict(state["velocity"])


class OuterStepGraph(nn.Graph):
    """The outer step as one program; see `OuterStep`."""

    def __init__(self, replicas: Replicas, lr: float, momentum: float):
        super().__init__()
        self.lr, self.momentum = lr, momentum
        self.model, self.stacked, self.velocity = replicas.model, replicas.stacked, copy.deepcopy(replicas.model)
        for velocity in self.velocity.parameters():
            velocity.data = flow.zeros_like(velocity.data)

    @flow.no_grad()
    def build(self) -> None:
        """Update the global model, the velocity and all replicas."""
        modules = (self.model, self.stacked, self.velocity)
        for anchor, replicas, velocity in zip(*(m.parameters() for m in modules), strict=True):
            difference = anchor - replicas.mean(0)
            velocity.copy_(self.momentum * velocity + difference)
            anchor.copy_(anchor - self.lr * (difference + self.momentum * velocity))
            replicas.copy_(anchor.expand(replicas.shape))


def mean_loss(
    model: nn.Module,
    parameters: dict[str, flow.Tensor],
    count: int,
    batch: Sequence[flow.Tensor],
    named: Mapping[str, flow.Tensor],
) -> flow.Tensor:
    """Return the mean of the losses of replicas, each on its part of a batch.

    Args:
        model: with the method ``loss``.
        parameters: of all replicas by name, each `(count, …)`.
        count: the number of replicas.
        batch: tensors `(B, …)`, cut into `count` parts in order.
        named: the same by name.
    """

    def loss(own: dict[str, flow.Tensor], *batch: flow.Tensor, **named: flow.Tensor) -> flow.Tensor:
        return func.functional_call(_Loss(model), {f"model.{name}": p for name, p in own.items()}, batch, named)

    parts = {name: _divide(x, count) for name, x in named.items()}
    return func.vmap(loss, randomness="different")(parameters, *(_divide(x, count) for x in batch), **parts).mean()


def table_of(model: nn.Module, sharding: models.Sharding | None) -> models.Sharding:
    """Return a table, by default that of a model's family, or one that leaves every parameter whole."""
    if sharding is not None:
        return sharding
    try:
        return sharding_of(model)
    except PlacementError:
        whole = {name: ("whole",) * p.ndim for name, p in model.named_parameters()}
        return models.Sharding(logical_axes=whole, axis_sizes=lambda config: {})


def nest_table(sharding: models.Sharding, child: str, leading: tuple[str, ...] = ()) -> models.Sharding:
    """Return the table of a module whose submodule `child` has a table, with axes in front of the parameters' own."""
    blocks = (sharding.blocks,) if isinstance(sharding.blocks, str) else sharding.blocks
    return dataclasses.replace(
        sharding,
        logical_axes={f"{child}.{name}": (*leading, *axes) for name, axes in sharding.logical_axes.items()},
        blocks=tuple(f"{child}.{name}" for name in blocks),
    )


def check_mesh(model: nn.Module, count: int, spec: models.Parallel) -> None:
    """Raise for a mesh that does not fit a number of replicas.

    Raises:
        TrainError: the mesh has a pipeline, or ``data`` does not divide the replicas.
    """
    if spec.pipeline > 1 or count % spec.data:
        seen = f"{count} replicas on {spec.equation}"
        rule = "each rank of data has whole replicas, in one stage"
        raise TrainError(f"Trainer(model={type(model).__name__}(...))", seen, rule, f"Parallel(data={count}, fsdp=…)")


def _divide(x: flow.Tensor, count: int) -> flow.Tensor:
    """Return the parts `(count, B / count, …)` of a batch `(B, …)`."""
    if x.is_global:  # gathered within a slice first: cut by two axes, the reshape would move rows across slices
        x = x.to_global(sbp=[x.sbp[0], *(sbp.broadcast if s == sbp.split(0) else s for s in x.sbp[1:])])
    return x.reshape(count, x.shape[0] // count, *x.shape[1:])


class _Loss(nn.Module):
    """The loss of a model as a forward, for `functional_call`."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, *batch: Any, **named: Any) -> flow.Tensor:
        return sum_losses(self.model.loss(*batch, **named))
