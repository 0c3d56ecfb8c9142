"""`Evaluation`: evaluate the model on held-out data periodically.

    Evaluation(pages, every=500)                                     # validation/loss: model.loss(*batch)
    Evaluation(reviews, Accuracy(), every=500, name="reviews")       # the evaluator's metrics of model(input_ids)

An evaluator has three methods, and may be used without a trainer: ``reset()``; ``update(outputs, batch)``, once per
batch, with the model's outputs; ``compute()``, which returns numbers by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import TYPE_CHECKING, Any, Protocol

import sbpjax as flow
from sbpjax.errors import TrainError
from sbpjax.train.batches import evaluation_loader, take_samples
from sbpjax.train.checks import check_data, check_same_classes, check_tokens
from sbpjax.train.step import PredictStep, call, loss_of, outputs_of

from .hook import Hook, is_due

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer


class Evaluator(Protocol):
    """Interface of evaluators."""

    def reset(self) -> None:
        """Reset the state."""

    def update(self, outputs: Any, batch: Any) -> None:
        """Add the outputs of the model for a batch; all processes call it, with global tensors."""

    def compute(self) -> dict[str, float]:
        """Return the metrics of all batches since `reset`, the same in all processes."""
        ...


class MeanLoss:
    """Default evaluator: the mean of the batches' losses."""

    def __init__(self) -> None:
        self.losses: list[flow.Tensor] = []

    def reset(self) -> None:
        """Reset the state."""
        self.losses = []

    def update(self, outputs: Any, batch: Any) -> None:
        """Add the loss of a batch."""
        self.losses.append(outputs)

    def compute(self) -> dict[str, float]:
        """Return ``{"loss": mean}``."""
        return {"loss": sum(loss.item() for loss in self.losses) / max(len(self.losses), 1)}


class Evaluation(Hook):
    """Evaluate the model at regular intervals, and at the end.

    Without an evaluator the metric is the mean of the batches' losses, and a last batch that is shorter is left out.
    An evaluator sees every sample once: the last batch is filled up for the model, and cut for the evaluator.

    Args:
        data: a dataset; its samples are those of the training data.
        evaluator: computes the metrics; see above.
        every: steps between two evaluations; None for the end of the run alone.
        batch_size: samples of a batch; by default that of the training.
        batches: how many batches at most; None for all.
        name: prefix of the names of the metrics.
        predict: ``predict(model, *batch)``, the input of the evaluator; by default the model's outputs.

    Example:
        >>> Evaluation(range(8), every=100, name="held_out").every
        100
    """

    def __init__(
        self,
        data: Sized,
        evaluator: Evaluator | None = None,
        *,
        every: int | None = None,
        batch_size: int | None = None,
        batches: int | None = None,
        name: str = "validation",
        predict: Callable[..., Any] | None = None,
    ):
        self.data, self.every, self.batch_size, self.batches = data, every, batch_size, batches
        self.name = name
        self.evaluator: Evaluator = MeanLoss() if evaluator is None else evaluator
        self.predict = predict
        self._graph: PredictStep | None = None
        self._model: Any = None

    def set_up(self, trainer: Trainer) -> None:
        """Raise for data that does not fit this model."""
        check_tokens(trainer.model, self.data)
        check_same_classes(trainer.loader, self.data, self.name)
        if self.predict is None and trainer.loss_function is None:
            check_data(trainer.model, self.data)

    def after_step(self, trainer: Trainer) -> None:
        """Evaluate if it is due."""
        if is_due(trainer.step, self.every, trainer.max_steps):
            for hook in trainer.hooks:
                hook.before_evaluation(trainer)
            trainer.report_evaluation(self.run(trainer))

    def run(self, trainer: Trainer) -> dict[str, float]:
        """Return the metrics of the model in its present state; all processes call it."""
        size = trainer.batch_size if self.batch_size is None else self.batch_size
        averaging = isinstance(self.evaluator, MeanLoss)
        check = trainer.loader.check if self.predict is None else None
        loader, padded = evaluation_loader(self.data, size, trainer.parallel, self.batches, trainer.batch_sbp, check)
        whole = sum(padded.real(i) == size for i in range(len(padded)))
        if averaging and not whole:
            rule = "without an evaluator, the loss is averaged over whole batches"
            seen = f"{len(self.data)} samples, batch_size={size}"
            raise TrainError("Evaluation(data)", seen, rule, f"batch_size={trainer.parallel.data}")
        model = trainer.evaluated_model
        if self._graph is None or self._model is not model:
            self._graph, self._model = PredictStep(model, self._function(model, averaging), trainer.options), model
        self.evaluator.reset()
        training = model.training
        model.eval()
        random = flow.get_rng_state()  # of the training, which an evaluation is not to disturb
        try:
            for number, batch in enumerate(loader):
                real = padded.real(number)
                if averaging and real < size:
                    break
                outputs = call(self._graph, trainer.to_stages(batch))
                if real < size:
                    outputs, batch = take_samples(outputs, real), take_samples(batch, real)
                self.evaluator.update(outputs, batch)
            return {f"{self.name}/{key}": value for key, value in self.evaluator.compute().items()}
        finally:
            model.train(training)
            flow.set_rng_state(random)

    def _function(self, model: Any, averaging: bool) -> Callable[..., Any]:
        if self.predict is not None:
            return self.predict
        return loss_of if averaging else outputs_of(model.forward)
