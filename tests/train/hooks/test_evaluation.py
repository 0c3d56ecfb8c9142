"""Evaluations: an evaluator sees each sample once, without one the loss is averaged."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models, optim
from sbpjax.errors import DataError, TrainError
from sbpjax.train import Evaluation, Trainer
from sbpjax.train.data import ArrayImages
from sbpjax.train.evaluation import Accuracy
from tests.train.cases import Points, Tower, losses, records, trainer


class ModuleTensor:
    """An evaluator that counts, and adds up what the model says."""

    def reset(self):
        self.inputs, self.total = [], 0.0

    def update(self, outputs, batch):
        assert outputs.shape == batch[0].shape and not outputs.requires_grad
        self.inputs += batch[0].numpy()[:, 0].tolist()
        self.total += outputs.sum().item()

    def compute(self):
        return {"count": float(len(self.inputs)), "total": self.total}


@pytest.mark.parametrize("mesh", [{}, {"data": 4}, {"data": 2, "pipeline": 2}])
def test_an_evaluator_sees_each_sample_once(mesh):
    made = trainer(parallel=models.Parallel(**mesh, device="cpu"))
    evaluator = ModuleTensor()
    found = Evaluation(Points(21), evaluator, name="held_out").run(made)
    points = Points(21)
    assert evaluator.inputs == [float(points[i][0][0]) for i in range(21)]
    assert found["held_out/count"] == 21
    again = Evaluation(Points(21), ModuleTensor(), batch_size=4).run(made)  # the batches do not matter
    assert again["validation/total"] == pytest.approx(found["held_out/total"], rel=1e-4)


def test_without_an_evaluator_it_is_the_mean_loss():
    made = trainer()
    points = Points(16)
    model = Tower()
    model.load_state_dict({name: value.to_local() for name, value in made.model.state_dict().items()})
    x, y = (np.stack(part) for part in zip(*(points[i] for i in range(16)), strict=True))
    expected = model.loss(flow.tensor(x), flow.tensor(y))
    found = Evaluation(Points(20)).run(made)  # the last four are no whole batch
    assert found == {"validation/loss": pytest.approx(expected.item(), rel=1e-5)}
    with pytest.raises(TrainError, match="averaged over whole batches"):
        Evaluation(Points(7)).run(made)


def test_dropout_is_off_and_training_is_not_disturbed(tmp_path):
    trainer(tmp_path / "a", drop=0.5).fit()
    made = trainer(tmp_path / "b", drop=0.5, hooks=[Evaluation(Points(16), every=2)])
    made.fit()
    assert losses(tmp_path / "a") == losses(tmp_path / "b") and made.model.training
    assert [step for step, one in records(tmp_path / "b").items() if "validation/loss" in one] == [2, 4, 6]
    assert made.evaluate() == made.evaluate() == {"validation/loss": made.metrics["validation/loss"]}


def test_labels_of_held_out_data_are_checked():
    pixels, labels = np.zeros((8, 32, 32, 3), np.uint8), np.arange(8) % 3
    model = flow.vision.create_model("resnet18", num_classes=3, depths=(1, 1, 1, 1), width=4)
    held_out = ArrayImages(pixels, labels + 1)
    made = Trainer(
        model=model, optimizer=lambda groups: optim.SGD(groups, lr=0.1), data=ArrayImages(pixels, labels),
        batch_size=4, max_steps=1, hooks=[Evaluation(held_out, Accuracy())], writers=[],
    )  # fmt: skip
    with pytest.raises(DataError, match="labels are 0 to 2"):
        made.fit()
