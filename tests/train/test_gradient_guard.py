"""Steps with bad gradients change nothing, under every mesh; after some in a row the run ends, its batch saved."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models
from sbpjax.errors import TrainError
from sbpjax.train import Checkpoints, GradientGuard, Hook, StepOptions
from tests.train.cases import WIDTH, Points, losses, records, trainer

MESHES = {"one": {}, "3d": {"data": 2, "fsdp": 2, "tensor": 2}, "pipeline": {"data": 2, "pipeline": 2}}


class Wrong(Points):
    """Points of which some are wrong: from sample `first` to `last`, `value` times what they were."""

    def __init__(self, first, last, value):
        super().__init__(400)
        self.wrong, self.value = range(first, last), value

    def sample(self, number):
        x, y = super().sample(number)
        return x, y * np.float32(self.value if number in self.wrong else 1)


class State(Hook):
    """Keeps the first parameter behind each step."""

    def __init__(self):
        self.seen = []

    def after_step(self, trainer):
        self.seen.append(next(trainer.model.parameters()).numpy())


@pytest.mark.parametrize("mesh", MESHES)
def test_a_step_without_a_number_is_left_out(mesh, tmp_path):
    state = State()
    options = StepOptions(accumulate=2 if mesh == "pipeline" else 1)
    made = trainer(
        tmp_path, data=Wrong(16, 24, np.nan), hooks=[state], options=options,
        parallel=models.Parallel(**MESHES[mesh], device="cpu"),
    )  # fmt: skip
    made.fit()
    moved = [bool((a != b).any()) for a, b in zip(state.seen, state.seen[1:])]
    assert moved == [True, False, True, True, True]  # the third step is left out
    found = records(tmp_path)
    assert found[3]["grad_norm"] == "nan" and np.isfinite(found[6]["grad_norm"])
    assert [one["steps_left_out"] for one in found.values()] == [0, 0, 1, 1, 1, 1]
    assert made.guard.state_dict()["good"] == 5 and made.guard.state_dict()["in_row"] == 0


def test_a_spike_is_left_out(tmp_path):
    made = trainer(tmp_path, steps=32, data=Wrong(30 * 8, 31 * 8, 1e3), guard=GradientGuard(spike=10.0))
    made.fit()
    found = records(tmp_path)
    assert found[31]["grad_norm"] > 100 and found[32]["steps_left_out"] == 1 and found[30]["steps_left_out"] == 0
    trainer(tmp_path / "without", steps=32, data=Wrong(30 * 8, 31 * 8, 1e3)).fit()
    assert records(tmp_path / "without")[32]["steps_left_out"] == 0


def test_the_run_ends_with_the_batch_saved(tmp_path):
    hooks = [Checkpoints(every=1)]
    made = trainer(tmp_path, steps=20, data=Wrong(16, 400, np.nan), guard=GradientGuard(patience=3), hooks=hooks)
    with pytest.raises(TrainError, match="3 steps in a row left out; at step 5 the norm is nan") as error:
        made.fit()
    path = tmp_path / "left_out_5.npz"
    assert f"look at the batch in {path}" in str(error.value)
    with np.load(path) as file:
        assert file["0"].shape == (8, WIDTH) and np.isnan(file["1"]).all()
    assert np.isfinite(next(made.model.parameters()).numpy()).all()
    assert hooks[0].manager(made).latest() == 5 and len(losses(tmp_path)) >= 5


@pytest.mark.parametrize(("every", "step"), [(1, 6), (2, 6), (5, 10)])
def test_losses_that_are_no_numbers_end_the_run_too(every, step, tmp_path):
    """A label outside the classes makes such a loss, with gradients that are numbers."""

    def loss(model, x, y):
        return model.loss(x, y).detach() * 0 + flow.where(y.max() > 1e6, float("nan"), model.loss(x, y))

    hooks = [State()]
    made = trainer(
        tmp_path,
        steps=20,
        data=Wrong(16, 400, 1e9),
        loss=loss,
        guard=GradientGuard(patience=4),
        log_every=every,
        hooks=hooks,
    )
    with pytest.raises(TrainError, match=r"(?s)losses of \d+ steps in a row are nan.*gradients are not.*left_out_"):
        made.fit()
    assert made.step in (step, step + 1) and (tmp_path / f"left_out_{step}.npz").exists()
    assert np.isfinite(hooks[0].seen[-1]).all()


def test_its_counts_come_back(tmp_path):
    hooks = lambda: [Checkpoints(every=2, keep_last=None)]  # noqa: E731
    trainer(tmp_path, data=Wrong(8, 16, np.nan), hooks=hooks()).fit()
    whole = records(tmp_path)
    again = trainer(tmp_path, data=Wrong(8, 16, np.nan), hooks=hooks(), parallel=models.Parallel(data=2, device="cpu"))
    assert again.resume(2) and again.guard.state_dict()["left_out"] == 1
    again.fit()
    for step, one in records(tmp_path).items():
        assert one["steps_left_out"] == whole[step]["steps_left_out"]
        assert step == 2 or one["grad_norm"] == pytest.approx(whole[step]["grad_norm"], rel=1e-4)


def test_float16_has_a_scaler(tmp_path):
    made = trainer(tmp_path, options=StepOptions(amp="float16"))
    made.fit()
    trainer(tmp_path / "wide").fit()
    np.testing.assert_allclose(list(losses(tmp_path).values()), list(losses(tmp_path / "wide").values()), rtol=2e-2)
    assert made.guard.state_dict()["scaler"]["scale"] == 2.0**16
    assert trainer(guard=False).guard is None


def test_wrong_arguments():
    for wrong in ({"spike": 0.5}, {"patience": 0}):
        with pytest.raises(TrainError, match="spike=10.0, patience=5"):
            GradientGuard(**wrong)
    assert flow.is_grad_enabled()
