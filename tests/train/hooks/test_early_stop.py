"""A run ends when its metric gets no better."""

import pytest

from sbpjax.errors import TrainError
from sbpjax.train import Checkpoints, EarlyStop, Evaluation
from tests.train.cases import Points, trainer


class Scripted:
    """An evaluator that says what it was told to."""

    def __init__(self, values):
        self.values = iter(values)

    def reset(self):
        pass

    def update(self, outputs, batch):
        pass

    def compute(self):
        return {"score": next(self.values)}


def run(values, out=None, steps=6, **chosen):
    hooks = [Evaluation(Points(8), Scripted(values), every=1), EarlyStop("validation/score", **chosen)]
    made = trainer(out, steps=steps, hooks=hooks + ([Checkpoints(every=1)] if out else []))
    return made


@pytest.mark.parametrize(
    ("values", "chosen", "ends"),
    [
        ([3, 2, 2, 2, 1, 0], {"patience": 2}, 4),
        ([3, 2, 4, 1, 4, 4], {"patience": 2}, 6),
        ([1, 2, 3, 3, 3, 3], {"patience": 2, "better": "max"}, 5),
        ([3, 2.9, 2.8, 0, 0, 0], {"patience": 2, "least": 0.5}, 3),
    ],
)
def test_it_ends(values, chosen, ends):
    made = run(values, **chosen)
    made.fit()
    assert made.step == ends


def test_patience_goes_on_behind_a_resume(tmp_path):
    run([1, 2], tmp_path, steps=2, patience=3).fit()
    made = run([2, 2, 2, 2], tmp_path, patience=3)
    assert made.resume()
    made.fit()
    assert made.step == 4


def test_wrong_arguments():
    with pytest.raises(TrainError, match="patience=5"):
        EarlyStop("validation/loss", patience=0)
