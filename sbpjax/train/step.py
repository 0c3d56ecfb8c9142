"""Compiled programs of a run, each one `nn.Graph`: the training step and the prediction.

    batch                          the step calls                 a prediction calls
    (input_ids, labels)            model.loss(input_ids, labels)  model(input_ids)
    {"input_ids": …, "labels": …,  model.loss(input_ids=…,        model(input_ids=…, attention_mask=…): the
     "attention_mask": …}            labels=…, attention_mask=…)    entries that are arguments of `forward`

`StepOptions` configures the graphs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.errors import TrainError
from sbpjax.graph import GraphModule
from sbpjax.utils.host import explain_arguments

Loss = Callable[..., flow.Tensor]
AMP = {"bfloat16": flow.bfloat16, "float16": flow.float16}


@explain_arguments
@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """Options of a training step; they do not change values except by the rounding of lower precision.

    With `accumulate` that holds for losses that are means over rows or over a count of the inputs, as the models' are;
    a router's load balancing loss and batch statistics are of each micro-batch. For other losses a graph warns.

    Attributes:
        amp: ``"bfloat16"`` or ``"float16"``: ops that gain from it run in it; parameters stay in float32.
        accumulate: the number of micro-batches of a batch.
        clip: the largest norm of the gradient; None for no bound.
        zero: ZeRO stage over the ranks that split the batch: 1 divides the optimizer's state, 2 gradients too, 3
            parameters too; 0 nothing.
        checkpointing: compute the activations of each block again in the backward.
        schedule: the pipeline schedule: the order of micro-batches on the stages.
        auto: let the planner choose the layouts of parameters and optimizer state, instead of the model's table.
    """

    amp: str | None = None
    accumulate: int = 1
    clip: float | None = 1.0
    zero: int = 0
    checkpointing: bool = False
    schedule: str = "1f1b"
    auto: bool = False

    def __post_init__(self) -> None:
        if self.amp is not None and self.amp not in AMP:
            rule = f"amp is None or one of {', '.join(AMP)}"
            raise TrainError("Trainer(amp=...)", f"amp={self.amp!r}", rule, 'amp="bfloat16"')
        if self.zero not in (0, 1, 2, 3):
            raise TrainError("Trainer(zero=...)", f"zero={self.zero!r}", "stages of ZeRO are 1, 2 and 3", "zero=1")


class TrainStep(nn.Graph):
    """A training step as one program: forward, backward, clipping, update; the schedule steps after each call.

    Args:
        model: the model, laid out.
        optimizer: of its parameters.
        schedule: of the optimizer's rates, or None.
        loss: ``loss(model, *batch)``; by default ``model.loss(*batch)``.
        guard: skips steps with invalid gradients; a loss scaler or a `GradientGuard`.
        options: how.
        blocks: the modules that `options.checkpointing` recomputes.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: optim.Optimizer,
        schedule: Any,
        loss: Loss | None,
        guard: Any,
        options: StepOptions,
        blocks: list[nn.Module],
    ):
        super().__init__()
        self.model = model
        self.loss_of = loss
        self.add_optimizer(optimizer, lr_sch=schedule)
        self.set_grad_scaler(guard)
        self.config.set_gradient_accumulation_steps(options.accumulate)
        self.config.set_clip_grad_norm(options.clip)
        self.config.set_pipeline(options.schedule)
        if options.amp:
            self.config.enable_amp(True, dtype=AMP[options.amp])
        if options.zero:
            self.config.enable_zero(True, stage=options.zero)
        if options.auto:
            self.config.enable_auto_parallel(True, placement=next(model.parameters()).placement)
        for block in blocks if options.checkpointing else ():
            self._proxy(block).to(GraphModule).activation_checkpointing = True

    def build(self, *batch: Any, **named: Any) -> flow.Tensor:
        """Return the loss of a micro-batch, differentiated."""
        loss = self.model.loss if self.loss_of is None else self.loss_of
        found = sum_losses(loss(*batch, **named) if self.loss_of is None else loss(self.model, *batch, **named))
        found.backward()
        return found


class PredictStep(nn.Graph):
    """The model's outputs for a batch, without gradients.

    Args:
        model: the trained model itself.
        predict: ``predict(model, *batch)``, or ``predict(model, **batch)``.
        options: how.
    """

    def __init__(self, model: nn.Module, predict: Callable[..., Any], options: StepOptions):
        super().__init__()
        self.model = model
        self.predict = predict
        if options.amp:
            self.config.enable_amp(True, dtype=AMP[options.amp])

    @flow.no_grad()
    def build(self, *batch: Any, **named: Any) -> Any:
        """Return the result of `predict`."""
        return self.predict(self.model, *batch, **named)


def loss_of(model: Any, *batch: Any, **named: Any) -> flow.Tensor:
    """Return the loss of a batch, which an evaluation without an evaluator averages."""
    return sum_losses(model.loss(*batch, **named))


def sum_losses(loss: Any) -> flow.Tensor:
    """Return a loss, for a dict of losses their sum: detectors have one for classes and one for boxes."""
    return sum(loss.values()) if isinstance(loss, Mapping) else loss  # type: ignore[return-value]


def outputs_of(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that calls a model with those parts of a batch that its `forward` takes."""
    taken = inputs_of(forward)

    def outputs(model: Any, *batch: Any, **named: Any) -> Any:
        return model(*batch[:1], **{name: part for name, part in named.items() if name in taken})

    return outputs


def inputs_of(forward: Callable[..., Any]) -> frozenset[str]:
    """Return the names of a forward's arguments."""
    return frozenset(inspect.signature(forward).parameters)


def call(graph: Callable[..., Any], batch: Any) -> Any:
    """Call a graph with a batch: the parts of a dict by name, those of a list or tuple in their order."""
    if isinstance(batch, Mapping):
        return graph(**batch)
    return graph(*batch) if isinstance(batch, (list, tuple)) else graph(batch)
