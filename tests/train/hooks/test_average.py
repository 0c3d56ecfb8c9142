"""A moving average of the parameters, which evaluations use."""

import functools

import numpy as np
import pytest

from sbpjax import models, nn, optim
from sbpjax.errors import TrainError
from sbpjax.train import Average, Checkpoints, Evaluation, Hook, StepOptions, Trainer
from tests.train.cases import Points, trainer

MESHES = {"one": {}, "fsdp": {"fsdp": 2}, "pipeline": {"data": 2, "pipeline": 2}}


class ModuleTensor(Hook):
    """Keeps all parameters behind each step."""

    def __init__(self):
        self.values = []

    def set_up(self, trainer):
        self.after_step(trainer)

    def after_step(self, trainer):
        self.values.append([p.numpy() for p in trainer.model.parameters()])


@pytest.mark.parametrize("mesh", MESHES)
def test_it_is_the_average(mesh):
    seen, average = ModuleTensor(), Average(0.8)
    options = StepOptions(accumulate=2 if mesh == "pipeline" else 1)
    made = trainer(parallel=models.Parallel(**MESHES[mesh], device="cpu"), hooks=[seen, average], options=options)
    made.fit()
    expected = seen.values[0]
    for values in seen.values[1:]:
        expected = [0.8 * a + 0.2 * p for a, p in zip(expected, values, strict=True)]
    for ours, theirs, own in zip(average.model.parameters(), expected, made.model.parameters(), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-7)
        assert ours.sbp == own.sbp and ours.placement == own.placement


def test_evaluations_use_it_and_it_comes_back(tmp_path):
    hooks = lambda: [Average(0.8), Evaluation(Points(8), every=2), Checkpoints(every=2, keep_last=None)]  # noqa: E731
    made = trainer(tmp_path, hooks=hooks())
    made.fit()
    plain = trainer(hooks=[Evaluation(Points(8))])
    plain.fit()
    assert plain.metrics["validation/loss"] != made.metrics["validation/loss"]
    again = trainer(tmp_path, hooks=hooks(), parallel=models.Parallel(fsdp=2, device="cpu"))
    assert again.resume(4)
    again.fit()
    assert again.metrics["validation/loss"] == pytest.approx(made.metrics["validation/loss"], rel=1e-5)


def test_the_order_of_hooks_changes_nothing(tmp_path):
    def run(folder, order, steps):
        hooks = {"a": Average(0.8), "e": Evaluation(Points(8), every=2), "c": Checkpoints(every=2, keep_last=None)}
        made = trainer(folder, hooks=[hooks[letter] for letter in order])
        made.resume(steps) if steps else None
        made.fit()
        return made.metrics["validation/loss"]

    first = run(tmp_path / "aec", "aec", None)
    for order in ("cea", "eca"):
        assert run(tmp_path / order, order, None) == first
        assert run(tmp_path / order, order, 4) == first


class Normed(nn.Module):
    """A batch norm, whose running statistics and counter are its state too."""

    def __init__(self):
        super().__init__()
        self.norm, self.out = nn.BatchNorm1d(4), nn.Linear(4, 4)

    def forward(self, x):
        return self.out(self.norm(x))

    def loss(self, x, y):
        return nn.functional.mse_loss(self(x), y)


@pytest.mark.parametrize("mesh", ["one", "data"])
def test_statistics_of_batch_norms_belong_to_it(mesh):
    average, means = Average(0.8, warm_up=True), []

    class Means(Hook):
        def after_step(self, trainer):
            means.append(trainer.model.norm.running_mean.numpy())

    parallel = models.Parallel(data=4 if mesh == "data" else 1, device="cpu")
    parts = {"model": Normed(), "optimizer": functools.partial(optim.SGD, lr=0.1), "data": Points(40), "max_steps": 6}
    Trainer(**parts, batch_size=8, parallel=parallel, hooks=[average, Means()], writers=[]).fit()
    expected = np.zeros(4)
    for step, values in enumerate(means, 1):
        decay = min(0.8, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * values
    np.testing.assert_allclose(average.model.norm.running_mean.numpy(), expected, rtol=1e-5, atol=1e-7)
    assert average.model.norm.num_batches_tracked.item() == len(means) > 4


def test_wrong_decays():
    with pytest.raises(TrainError, match="decay=0.999"):
        Average(1.0)
