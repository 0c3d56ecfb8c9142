"""Configuration shared by the runs on digits: all of a trainer but the model, the mesh and the rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from examples.recipe import plot
from examples.vision.digits import digits
from sbpjax import env, models, nn, optim, vision
from sbpjax.train import Checkpoints, Evaluation, Hook, TargetMetric, Trainer
from sbpjax.train.config import LazyCall
from sbpjax.train.evaluation import Accuracy

Groups = list[dict[str, Any]]
BOUND = 0.97  # of the held-out accuracy; guessing gives 10 of 100


class Curves(Hook):
    """Draw ``OUT/loss.png`` at the end of a run.

    Args:
        title: of the picture.
        score: the metric that is drawn beside the loss.
    """

    def __init__(self, title: str = "digits", score: str = "held_out/accuracy"):
        self.title, self.score = title, score

    def after_run(self, trainer: Trainer) -> None:
        """Draw."""
        if trainer.out is None or env.get_rank() != 0:
            return
        loss, score = (trainer.out, "loss"), (trainer.out, self.score)
        plot(trainer.out / "loss.png", {f"{self.title}: loss": {"loss": loss}, "held out": {self.score: score}})


def classifier(
    name: str,
    num_classes: int,
    checkpoint: str | None = None,
    trained_classes: int = 1000,
    options: Mapping[str, Any] | None = None,
) -> nn.Module:
    """Return a model of the zoo: a fresh one, or one with weights from a file and a fresh classifier.

    Parameters from a file are marked for `adamw`: ``parameter.is_trained``.

    Args:
        name: a name of `vision.list_models`.
        num_classes: classes.
        checkpoint: the file.
        trained_classes: classes of the model in it.
        options: fields of the model's configuration that differ from those of the name.
    """
    if checkpoint is None:
        return vision.create_model(name, num_classes=num_classes, **options or {})
    model = vision.create_model(name, num_classes=trained_classes, checkpoint=checkpoint, **options or {})
    for parameter in model.parameters():
        parameter.is_trained = True
    model.reset_classifier(num_classes)
    return model


def adamw(groups: Groups, *, lr: float, weight_decay: float, backbone_lr_scale: float = 1.0) -> optim.AdamW:
    """Return AdamW with its own rate for parameters from a file: the groups named ``backbone``.

    Args:
        groups: of parameters.
        lr: the rate of the others.
        weight_decay: of groups without one.
        backbone_lr_scale: the factor of the rate.
    """
    found: Groups = []
    for name, rate in (("head", lr), ("backbone", lr * backbone_lr_scale)):
        for group in groups:
            own = [p for p in group["params"] if getattr(p, "is_trained", False) == (name == "backbone")]
            found += [{**group, "params": own, "lr": rate, "name": name}] if own else []
    return optim.AdamW(found, lr=lr, weight_decay=weight_decay)


class Freeze(Hook):
    """Freeze the groups named ``backbone`` for the first steps: their rate is 0.

    Args:
        steps: how many.
    """

    def __init__(self, steps: int):
        self.steps = steps

    def before_step(self, trainer: Trainer) -> None:
        """Set the rate, which the schedule resets after the step."""
        if trainer.step < self.steps:
            for group in trainer.optimizer.param_groups:
                group["lr"] = 0.0 if group.get("name") == "backbone" else group["lr"]


def rise_and_fall(steps: int, warmup: int | None = None) -> Callable[[int], float]:
    """Return the factor of the rate: a rise, then a cosine's fall to a thousandth.

    Args:
        steps: of the run.
        warmup: steps of the rise; by default a twentieth of the run, 500 at most.
    """
    rise = max(1, min(500, steps // 20)) if warmup is None else warmup
    return optim.lr_scheduler.warmup_cosine(rise, steps, final=0.001)


def trained_on_digits(model: Any, name: str, *, size: int, lr: float, margin: int, **parallel: int) -> Any:
    """Return the configuration of a run on the digits, as a tree that a command line may change.

    Args:
        model: the call that makes it.
        name: of the directory in ``runs/``.
        size: height and width of images.
        lr: highest learning rate.
        margin: by how many points at most an image of the training is moved.
        **parallel: axes of the mesh, as ``data=8``.
    """
    return LazyCall(Trainer)(
        model=model,
        optimizer=LazyCall(optim.AdamW, partial=True)(lr=lr, weight_decay=0.05),
        schedule=LazyCall(optim.lr_scheduler.warmup_cosine)(warmup=50, total="${steps}", final=0.01),
        data=LazyCall(digits)(part="train", size=size, samples="${samples}", margin=margin),
        batch_size=64,
        max_steps="${steps}",
        parallel=LazyCall(models.Parallel)(**parallel, device="cpu"),
        hooks={
            "held_out": LazyCall(Evaluation)(
                data=LazyCall(digits)(part="held_out", size=size),
                evaluator=LazyCall(Accuracy)(k=[1, 3]),
                every=100,
                name="held_out",
            ),
            "checkpoints": LazyCall(Checkpoints)(
                every=200, keep_last=1, keep_best=1, metric="held_out/accuracy", better="max"
            ),
            "curves": LazyCall(Curves)(title=name),
            "goal": LazyCall(TargetMetric)(metric="held_out/accuracy", at_least=BOUND),
        },
        out=f"runs/{name}",
    )
