"""Replicas that train apart against the same training by hand; the bytes that cross; resuming."""

import copy
import functools

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models, optim
from sbpjax.errors import TrainError
from sbpjax.train import Checkpoints, Evaluation, Hook, OuterStep, Replicas, StepOptions, Trainer
from tests.support.slices import bytes_across
from tests.train.cases import TOWER, Points, Tower

LR, MOMENTUM = 0.7, 0.9


class Batches(Hook):
    """Keeps the batch of each step."""

    def __init__(self):
        self.seen = []

    def before_step(self, trainer):
        self.seen.append([x.numpy() for x in trainer.batch])


def replicas_trainer(out=None, hooks=(), every=2, **parallel):
    flow.manual_seed(3)
    return Trainer(
        model=Replicas(Tower(), 2),
        optimizer=functools.partial(optim.AdamW, lr=1e-2, weight_decay=0.1),
        data=Points(64),
        batch_size=16,
        max_steps=4,
        parallel=models.Parallel(**(parallel or {"data": 2, "fsdp": 4}), device="cpu"),
        sharding=TOWER,
        hooks=[OuterStep(every=every, lr=LR, momentum=MOMENTUM), *hooks],
        writers=[],
        out=out,
        options=StepOptions(clip=None),
    )


@pytest.fixture(scope="module")
def finished():
    batches = Batches()
    made = replicas_trainer(hooks=[batches, Evaluation(Points(16))])
    start = copy.deepcopy([p.numpy() for p in made.model.model.parameters()])
    made.fit()
    return made, start, batches.seen


def train_by_hand(start, batches):
    """Return the global parameters: two models of their own, halves of each batch, an outer step every two steps."""
    copies = [Tower() for _ in range(2)]
    optimizers = []
    for model in copies:
        for p, value in zip(model.parameters(), start, strict=True):
            p.data = flow.tensor(value)
        groups = flow.train.parameter_groups(model)
        optimizers.append(optim.AdamW(groups, lr=1e-2, weight_decay=0.1))
    anchor, velocity = start, [np.zeros_like(p) for p in start]
    for step, (x, y) in enumerate(batches):
        for k, (model, optimizer) in enumerate(zip(copies, optimizers, strict=True)):
            optimizer.zero_grad()
            model.loss(flow.tensor(x[8 * k : 8 * k + 8]), flow.tensor(y[8 * k : 8 * k + 8])).backward()
            optimizer.step()
        if step % 2 == 1:
            values = zip(*(model.parameters() for model in copies), strict=True)
            mean = [np.mean([p.numpy() for p in pair], axis=0) for pair in values]
            differences = [a - m for a, m in zip(anchor, mean, strict=True)]
            velocity = [MOMENTUM * v + d for v, d in zip(velocity, differences, strict=True)]
            anchor = [a - LR * (d + MOMENTUM * v) for a, d, v in zip(anchor, differences, velocity, strict=True)]
            for model in copies:
                for p, value in zip(model.parameters(), anchor, strict=True):
                    p.data = flow.tensor(value)
    return anchor


def test_it_is_diloco(finished):
    made, start, batches = finished
    assert len(batches) == 4 and "validation/loss" in made.metrics
    by_hand = train_by_hand(start, batches)
    replicas = made.model
    for ours, theirs, stacked in zip(replicas.model.parameters(), by_hand, replicas.stacked.parameters(), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(stacked.numpy(), np.stack([ours.numpy()] * 2))
        assert stacked.sbp[0] == flow.sbp.split(0) and ours.sbp[0] == flow.sbp.broadcast


def test_only_the_outer_step_crosses_slices(finished):
    made, *_ = finished
    (outer,) = [hook for hook in made.hooks if isinstance(hook, OuterStep)]
    across = [bytes_across(text) for text in (made.train_step.hlo(*made.batch), outer.graph.hlo())]
    whole = sum(p.numel() for p in made.model.model.parameters()) * 4
    assert across[0] <= 8  # the mean loss, and whether gradients are finite
    assert whole / 4 <= across[1] <= whole / 3  # biases of 8 are cut in 4, too


@pytest.mark.exhaustive
def test_a_resumed_run_goes_on_with_its_velocity(tmp_path, finished):
    hooks = [Checkpoints(every=2, keep_last=None)]
    replicas_trainer(tmp_path, hooks).fit()
    again = replicas_trainer(tmp_path, [Checkpoints(every=2, keep_last=None)], data=2, fsdp=2)
    assert again.resume(2)
    again.fit()
    for ours, theirs in zip(again.model.model.parameters(), finished[0].model.model.parameters(), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


def test_weight_decay_is_of_matrices():
    groups = flow.train.parameter_groups(Replicas(flow.nn.Linear(3, 2), 2))
    assert [[p.ndim for p in group["params"]] for group in groups] == [[3], [2]]


def test_replicas_fit_the_mesh():
    with pytest.raises(TrainError, match="2 replicas on data=4 × fsdp=2 = 8"):
        replicas_trainer(data=4, fsdp=2)
    with pytest.raises(TrainError, match="in one stage"):
        replicas_trainer(data=2, pipeline=2)


def test_an_outer_step_is_of_replicas():
    with pytest.raises(TrainError, match="an outer step averages replicas"):
        Trainer(
            model=Tower(),
            optimizer=functools.partial(optim.AdamW, lr=1e-2),
            data=Points(64),
            batch_size=16,
            max_steps=4,
            sharding=TOWER,
            hooks=[OuterStep()],
            parallel=models.Parallel(device="cpu"),
        )
