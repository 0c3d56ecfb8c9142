"""A run that misses its score fails."""

import pytest

from sbpjax.errors import TrainError
from sbpjax.train import Evaluation, Goal
from tests.train.cases import Points, trainer


def run(goal):
    trainer(steps=2, hooks=[Evaluation(Points(8)), goal]).fit()


def test_goals():
    run(Goal("validation/loss", most=100.0))
    run(Goal("validation/loss", least=0.0))
    with pytest.raises(TrainError, match="validation/loss of at most 0.001"):
        run(Goal("validation/loss", most=1e-3))
    with pytest.raises(TrainError, match="validation/loss of at least 100"):
        run(Goal("validation/loss", least=100.0))
    with pytest.raises(TrainError, match="validation/los is None"):
        run(Goal("validation/los", most=1.0))
