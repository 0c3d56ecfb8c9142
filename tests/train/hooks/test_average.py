"""A moving average of the parameters, which evaluations use."""

import numpy as np
import pytest

from sbpjax import models
from sbpjax.errors import TrainError
from sbpjax.train import Average, Checkpoints, Evaluation, Hook, StepOptions
from tests.train.cases import Points, trainer

MESHES = {"one": {}, "fsdp": {"fsdp": 2}, "pipeline": {"data": 2, "pipeline": 2}}


class Seen(Hook):
    """Keeps all parameters behind each step."""

    def __init__(self):
        self.values = []

    def set_up(self, trainer):
        self.after_step(trainer)

    def after_step(self, trainer):
        self.values.append([p.numpy() for p in trainer.model.parameters()])


@pytest.mark.parametrize("mesh", MESHES)
def test_it_is_the_average(mesh):
    seen, average = Seen(), Average(0.8)
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


def test_wrong_decays():
    with pytest.raises(TrainError, match="decay=0.999"):
        Average(1.0)
