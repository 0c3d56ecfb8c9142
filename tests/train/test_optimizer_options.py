"""A resumed run takes the options of its optimizer that were changed, and keeps all others as they were."""

import functools

import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.optim import lr_scheduler as schedules
from sbpjax.train import Checkpoints, Hook
from sbpjax.train.optimizer_options import made_with, take_changed
from sbpjax.train.writers import JsonLines, Writer
from tests.train.cases import records, trainer

SCHEDULES = {
    "lambda": lambda made: schedules.LambdaLR(made, schedules.warmup_cosine(3, 12, final=0.1)),
    "steps": lambda made: schedules.StepLR(made, 2, gamma=0.5),
    "cosine": lambda made: schedules.CosineAnnealingLR(made, 12),
    "sequence": lambda made: schedules.SequentialLR(
        made, [schedules.ConstantLR(made, 0.5, 3), schedules.ExponentialLR(made, 0.9)], [3]
    ),
}


DECAY = "weight_decay of group 0: 0.1 → 0.5"


class Texts(Writer):
    """Collects what a run writes besides its metrics."""

    def __init__(self):
        self.lines = []

    def write_text(self, text):
        self.lines.append(text)


def run(out, steps, *, schedule=True, **options):
    """Train up to a step, with a checkpoint at its end; go on from one that is there. Return the trainer."""
    optimizer = functools.partial(optim.AdamW, **{"lr": 1e-2, "weight_decay": 0.1} | options)
    factor = {} if schedule else {"schedule": None}
    hooks, writers = [Checkpoints(every=2, keep_last=None)], [JsonLines(), Texts()]
    made = trainer(out, steps=8, hooks=hooks, writers=writers, optimizer=optimizer, **factor)
    made.max_steps = steps
    made.resume()
    made.fit()
    return made


@pytest.mark.parametrize("schedule", [True, False], ids=["schedule", "constant"])
def test_a_changed_rate_and_decay_are_taken(schedule, tmp_path):
    begun, never, always = tmp_path / "begun", tmp_path / "never", tmp_path / "always"
    for out in (begun, never):
        run(out, 4, schedule=schedule)
    made = run(begun, 8, schedule=schedule, lr=1e-3, weight_decay=0.5)
    run(never, 8, schedule=schedule)
    run(always, 8, schedule=schedule, lr=1e-3)
    rates = {out: {step: one["lr"] for step, one in records(out).items()} for out in (begun, never, always)}
    for step in range(1, 9):
        like = never if step <= 4 else always
        assert rates[begun][step] == pytest.approx(rates[like][step], rel=1e-12), step
    assert [group["weight_decay"] for group in made.optimizer.param_groups] == [0.5, 0.0]
    assert made.writers[1].lines == [
        f"changed since the checkpoint: {change}"
        for change in (
            "lr of group 0: 0.01 → 0.001",
            "weight_decay of group 0: 0.1 → 0.5",
            "lr of group 1: 0.01 → 0.001",
        )
    ]


def test_a_change_lasts_and_can_be_taken_back(tmp_path):
    run(tmp_path, 2, schedule=False)
    for steps, rate in ((4, 1e-3), (6, 1e-3), (8, 1e-2)):
        run(tmp_path, steps, schedule=False, lr=rate)
    assert [one["lr"] for one in records(tmp_path).values()] == [1e-2] * 2 + [1e-3] * 4 + [1e-2] * 2


def test_values_that_hooks_changed_stay(tmp_path):
    class Halve(Hook):
        """Halves the rate, as a hook may that waits for a plateau."""

        def after_step(self, trainer):
            if trainer.step == 2:
                for group in trainer.optimizer.param_groups:
                    group["lr"] /= 2

    hooks = lambda: [Halve(), Checkpoints(every=2, keep_last=None)]  # noqa: E731
    trainer(tmp_path, steps=4, schedule=None, hooks=hooks()).fit()
    again = trainer(tmp_path, steps=6, schedule=None, hooks=hooks())
    assert again.resume()
    again.fit()
    assert [one["lr"] for one in records(tmp_path).values()] == [1e-2] * 2 + [5e-3] * 4


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_rate_of_a_schedule_goes_on_as_from_the_new_base(name):
    def make(rate):
        made = optim.SGD([nn.Parameter(flow.ones(1))], lr=rate)
        given = made_with(made)
        return made, SCHEDULES[name](made), given

    (old, before, was), (new, after, _), (changed, rescaled, now) = make(0.3), make(0.02), make(0.02)
    for _ in range(5):
        for made, schedule in ((old, before), (new, after)):
            made.step()
            schedule.step()
    changed.load_state_dict(old.state_dict())
    rescaled.load_state_dict(before.state_dict())
    assert take_changed(changed, rescaled, was, now) == ["lr: 0.3 → 0.02"]
    for _ in range(6):
        assert changed.param_groups[0]["lr"] == pytest.approx(new.param_groups[0]["lr"], rel=1e-12)
        for made, schedule in ((new, after), (changed, rescaled)):
            made.step()
            schedule.step()
